// SPDX-License-Identifier: MIT
//
// The incomplete gamma function and its quantile, as src/stats/special.c has
// them (E13 of docs/statistics.md; the comments there say why): tails are
// logarithms along u = log x, and Newton's method climbs to the root.

const EPSILON = 2.220446049250313e-16;
const SADDLE_ORDER = 16;

// log(k!) minus Stirling's formula, for k >= SADDLE_ORDER.
function stirlingRest(k) {
	const r = 1 / (k * k);

	return (1 / 12 - r * (1 / 360 -
		r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / k;
}

// log Gamma(x) for x > 0: up to where Stirling's formula is exact.
function logGamma(x) {
	let product = 1;

	while (x < SADDLE_ORDER + 1)
		product *= x++;
	x -= 1;
	return (x + 0.5) * Math.log(x) - x + Math.log(2 * Math.PI) / 2 +
		stirlingRest(x) - Math.log(product);
}

// k log(k / m) + m - k, which is small where k and m are close.
function deviance(k, m) {
	const d = k - m, v = d / (k + m);
	let term = 2 * k * v, sum = d * v;

	if (Math.abs(v) > 0.1)
		return k * Math.log(k / m) - d;
	for (let i = 3; Math.abs(term) > EPSILON * sum; i += 2) {
		term *= v * v;
		sum += term / i;
	}
	return sum;
}

// log of m^k e^-m / Gamma(k + 1).
function logPoisson(k, m, logM) {
	if (k < SADDLE_ORDER)
		return k * logM - m - logGamma(k + 1);
	return -stirlingRest(k) - deviance(k, m) - Math.log(2 * Math.PI * k) / 2;
}

function gammaSeries(a, x) {
	let term = 1, sum = 1;

	for (let k = a + 1; term > sum * EPSILON / 4; k++) {
		term *= x / k;
		sum += term;
	}
	return sum;
}

function gammaFraction(a, x) {
	let b = x + 1 - a, c = Infinity, d = 1 / b, h = d, step = 0;

	for (let i = 1; Math.abs(step - 1) > EPSILON; i++) {
		const num = i * (a - i);

		b += 2;
		d = 1 / (b + num * d);
		c = b + num / c;
		step = c * d;
		h *= step;
	}
	return h;
}

// The logarithms of the lower tail of Gamma(a) at exp(u) and of its slope.
function gammaTail(a, u) {
	const x = Math.exp(u);
	const power = logPoisson(a, x, u);
	const slope = power + Math.log(a);
	let lower;

	if (x < a + 1)
		lower = power + Math.log(gammaSeries(a, x));
	else
		lower = Math.log1p(-Math.exp(Math.min(
			slope + Math.log(gammaFraction(a, x)), 0)));
	return [Math.min(lower, 0), slope];
}

// x with P(Gamma(a) <= x) = p.
function gammaQuantile(a, p) {
	let u = Math.log(a), step = Infinity;

	if (p <= 0 || !(a > 0))
		return 0;
	for (let i = 0; i < 400 &&
	     Math.abs(step) > 1e-12 * Math.max(1, Math.abs(u)); i++) {
		const [lower, slope] = gammaTail(a, u);

		step = (Math.log(p) - lower) * Math.exp(lower - slope);
		u += step;
	}
	return Math.exp(u);
}

// log of the normal distribution's tail below -t, t >= 0: half of what
// Gamma(1/2) has above t^2/2.
function normalTail(t) {
	const x = t * t / 2;

	if (x < 1.5)
		return Math.log(-Math.expm1(gammaTail(0.5, Math.log(x))[0]) / 2);
	return logPoisson(0.5, x, Math.log(x)) +
		Math.log(0.5 * gammaFraction(0.5, x)) - Math.LN2;
}

function normalQuantile(p) {
	let t, step = Infinity;

	if (p > 0.5)
		return -normalQuantile(1 - p);
	if (p === 0.5)
		return 0;
	t = -Math.sqrt(-2 * Math.log(2 * p));
	for (let i = 0; i < 100 && Math.abs(step) > 1e-14 * -t; i++) {
		const tail = normalTail(-t);

		step = (Math.log(p) - tail) *
			Math.exp(tail + t * t / 2) * Math.sqrt(2 * Math.PI);
		t += step;
	}
	return t;
}

// (E7) of the probability prob, whose normal quantile is t.
function p3Quantile(k1, k2, k3, prob, t) {
	if (!(k2 > 0))
		return k1;
	const scale = k3 / k2 / 2;
	const skewness = 2 * scale / Math.sqrt(k2);
	if (Math.abs(skewness) < 0.01) {
		const h = skewness / 6, t2 = t * t;

		return k1 + Math.sqrt(k2) * (t + (t2 - 1) * h +
			t * (t2 - 6) * h * h / 3 - (t2 - 1) * h * h * h);
	}
	if (skewness < 0)
		return 2 * k1 - p3Quantile(k1, k2, -k3, 1 - prob, -t);
	return k1 - k2 / scale +
		scale * gammaQuantile(4 / (skewness * skewness), prob);
}
