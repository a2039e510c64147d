// SPDX-License-Identifier: MIT
//
// Estimates with intervals, as src/stats/estimator.c, estimate.c and strata.c
// make them ((E3) to (E17) of docs/statistics.md; the comments there say why).
// tests/programs/test_page.py compares the two.

// An accumulator: sums over samples, in the order in which export/html.c writes
// them.
const SAMPLES = 0, SIZE = 1, SURE = 2, EST = 3, K2 = 4, K3 = 5, KZ = 6,
	COUNT = 7, C2 = 8, C3 = 9, PERIOD = 10, ACC_TERMS = 11;

// Where nothing is known of sizes (E11).
const SMALLEST_UNKNOWN = {bytes: 16, more: 0};
// One in so many samples chooses the moment of the peak (SP_PEAK_CHOOSES).
const CHOOSES = 4;

function emptyAcc(period) {
	const acc = new Float64Array(ACC_TERMS);

	acc[PERIOD] = period;
	return acc;
}

function mergeAcc(dst, src) {
	for (let i = 0; i < PERIOD; i++)
		dst[i] += src[i];
	dst[PERIOD] = Math.max(dst[PERIOD], src[PERIOD]);
}

// a - b, of which b's samples are a subset.
function subtractAcc(a, b) {
	const rest = emptyAcc(a[PERIOD]);

	if (a[SAMPLES] <= b[SAMPLES])
		return rest;
	for (let i = 0; i < PERIOD; i++)
		rest[i] = Math.max(a[i] - b[i], 0);
	if (rest[SAMPLES] === rest[SURE])
		rest[K2] = rest[K3] = rest[KZ] = rest[C2] = rest[C3] = 0;
	return rest;
}

// What one sample of a size adds to an accumulator (E2, E3, E4, E15, E16).
function termsOf(size, period, isSure, isDotnet) {
	const acc = emptyAcc(period);
	const x = isDotnet ? -size * Math.log1p(-1 / period) : size / period;
	const pi = isSure ? 1 : -Math.expm1(-x);
	const q = isSure ? 0 : Math.exp(-x);
	const w = size / pi, n = 1 / pi;

	acc[SAMPLES] = 1;
	acc[SIZE] = size;
	acc[SURE] = isSure ? 1 : 0;
	acc[EST] = w;
	acc[K2] = w * w * q;
	acc[K3] = w * w * w * q * (1 + q);
	acc[KZ] = w * w * q * size;
	acc[COUNT] = n;
	acc[C2] = n * n * q;
	acc[C3] = n * n * n * q * (1 + q);
	return acc;
}

// What it adds at the moment of the peak, which it chose, or which it measures
// (E22, E43).
function measuredPeriod(period) {
	return period === 1 ? 1 : Math.ceil(period * CHOOSES / (CHOOSES - 1));
}

function termsChose(terms) {
	const acc = emptyAcc(measuredPeriod(terms[PERIOD]));

	acc[SAMPLES] = acc[SURE] = acc[COUNT] = 1;
	acc[SIZE] = acc[EST] = terms[SIZE];
	return acc;
}

function termsMeasured(terms) {
	const acc = terms.slice();
	const f = 1 - 1 / CHOOSES;
	const q = terms[C2] / (terms[COUNT] * terms[COUNT]);
	const d = f + (1 - f) * q, miss = q / d;
	const w = terms[EST] * d / f, n = terms[COUNT] * d / f;

	acc[EST] = w;
	acc[K2] = w * w * miss;
	acc[K3] = w * w * w * miss * (1 + miss);
	acc[KZ] = w * w * miss * terms[SIZE];
	acc[COUNT] = n;
	acc[C2] = n * n * miss;
	acc[C3] = n * n * n * miss * (1 + miss);
	acc[PERIOD] = measuredPeriod(terms[PERIOD]);
	return acc;
}

// sp_adjust() of samples of a size class (E46).
function adjustAcc({useTotals, gains}, i, terms) {
	const acc = terms.slice();

	if (!useTotals)
		return acc;
	const [bytes, bytes2, bytes3, count, count2, count3] = gains.get(i);

	acc[EST] = Math.max(acc[EST] + bytes * acc[K2], acc[SIZE]);
	acc[K2] *= bytes2;
	acc[KZ] *= bytes2;
	acc[K3] *= bytes3;
	acc[COUNT] = Math.max(acc[COUNT] + count * acc[C2], acc[SAMPLES]);
	acc[C2] *= count2;
	acc[C3] *= count3;
	return acc;
}

// sp_format_class()
function classOf(size) {
	const v = size - 1;

	if (v < 1024)
		return Math.floor(v / 16);
	let e = 10;
	while (v >= 2 ** (e + 1))
		e++;
	return Math.min(64 + (e - 10) * 4 + Math.floor(v / 2 ** (e - 2)) % 4,
		CLASSES - 1);
}

const CLASSES = 252;

function around(value, lo, hi) {
	return {value, lo: Math.min(lo, value), hi: Math.max(hi, value)};
}

function lattice(step, period) {
	const h = step / (2 * period);

	return step > 0 ? period * (h / Math.tanh(h) - 1) : 0;
}

// `level`: {half, lo, hi}, the probability beyond each limit and the normal
// distribution's quantiles there.

// (E42)
function endAtZero(k1, k2, k3) {
	return k1 > 0 && k2 > 0 ? Math.min(k3, 2 * k2 * (k2 / k1)) : k3;
}

// (E8)
function lowerBytesOf(acc, level) {
	const k1 = acc[EST] - acc[SIZE], k2 = acc[K2];
	const step = k2 > 0 ? acc[KZ] / k2 : 0;

	if (!acc[SAMPLES])
		return 0;
	return acc[SIZE] + Math.max(0, p3Quantile(k1, k2,
		endAtZero(k1, k2, acc[K3]), level.half, level.lo) - step / 2);
}

// (E8)
function bytesOf(acc, level) {
	const r = acc[PERIOD] === 1 ? 0 : acc[PERIOD];
	const k1 = acc[EST] - acc[SIZE], k2 = acc[K2], k3 = acc[K3];
	const step = k2 > 0 ? acc[KZ] / k2 : 0;
	const lo = lowerBytesOf(acc, level);
	let hi = acc[SIZE];

	hi += p3Quantile(k1 + r, k2 + r * r, k3 + 2 * r * r * r,
		1 - level.half, level.hi);
	if (r > 0)
		hi += lattice(step, r) * k2 / (k2 + r * r);
	return around(acc[EST], lo, hi);
}

// The phantom of a count: an object of that size, unseen.
function phantomObject(size, period) {
	const n = period === 1 ? 1 : 1 / -Math.expm1(-size / period);
	const q = period === 1 ? 0 : Math.exp(-size / period);

	return [q * n, q * n * n, q * (1 + q) * n * n * n];
}

// (E11)
function lowerObjectsOf(acc, level) {
	const s = acc[SAMPLES], unseen = acc[COUNT] - s;

	if (!s)
		return 0;
	return s + Math.max(0, p3Quantile(unseen, acc[C2],
		endAtZero(unseen, acc[C2], acc[C3]), level.half, level.lo) - 0.5);
}

// (E11)
function objectsOf(acc, level, smallest = SMALLEST_UNKNOWN) {
	const s = acc[SAMPLES], unseen = acc[COUNT] - s;
	const extra = phantomObject(smallest.bytes, acc[PERIOD]);

	if (acc[PERIOD] === 1)
		return {value: s, lo: s, hi: s};
	return around(acc[COUNT], lowerObjectsOf(acc, level), s + 0.5 +
		smallest.more + p3Quantile(unseen + extra[0], acc[C2] + extra[1],
			acc[C3] + extra[2], 1 - level.half, level.hi));
}

// Class sums: samples in all, and by size class: {all, classes: Map}.
function emptySums(period) {
	return {all: emptyAcc(period), classes: new Map()};
}

// (E41) The lower limit of what is shown because it has a sample; lower(level)
// is that of what was named before.
function lowerIfSeen(lower, half, seen, hits) {
	const at = (prob) => lower({half: prob, lo: normalQuantile(prob)});
	let prob = half, lo = at(prob);

	for (let i = 0; i < 40 && lo > seen; i++) {
		const next = half * -Math.expm1(-lo * hits);

		if ((lo - seen) * hits < 1e-3)
			return seen;
		if (next > prob * (1 - 1e-3))
			break;
		prob = next;
		lo = at(prob);
	}
	return lo;
}

// Bytes of the samples of class sums, or objects, with limits that hold if these
// sums were named before they were known to have samples.
function estimateNamed(population, sums, level, ofObjects) {
	if (!population.useTotals || population.period === 1)
		return ofObjects
			? objectsOf(sums.all, level, population.smallest)
			: bytesOf(sums.all, level);
	return estimateStrata(cellsOf(population, sums, ofObjects), level);
}

function cellsOf(population, sums, ofObjects) {
	return stratify(population, sums).map((s) => ofObjects
		? {...cellOf(sideOfObjects(s.part, s.smallest.bytes),
			sideOfObjects(s.rest, s.smallest.bytes), s.objects,
			population.slack / s.smallest.bytes, s.objectsAlone),
		more: s.smallest.more, gain: s.objectsGain}
		: cellOf(sideOfBytes(s.part), sideOfBytes(s.rest), s.bytes,
			population.slack, s.bytesAlone));
}

// The same of class sums that is shown because it has samples.
function estimate(population, sums, level, ofObjects) {
	const acc = sums.all;

	// exact totals are no more than its bound
	if (sums.isMeasured)
		population = {...population, useTotals: false};
	const e = estimateNamed(population, sums, level, ofObjects);
	const each = ofObjects ? acc[EST] / acc[COUNT] : 1;

	// (E44)
	const most = (ofObjects ? population.mostObjects
		: population.mostBytes) ?? Infinity;
	const cut = ({value, lo, hi}) => ({value: Math.min(value, most),
		lo: Math.min(lo, most), hi: Math.min(hi, most)});

	// (E61)
	const gap = ofObjects ? population.gapObjects : population.gapBytes;
	const withGap = ({value, lo, hi}) => ({value,
		lo: sums.isUnknown ? 0 : lo,
		hi: sums.isLeast ? Infinity : hi + gap});

	if (!acc[SAMPLES] || acc[PERIOD] === 1)
		return cut(withGap(e));
	const useTotals = population.useTotals && population.period !== 1;
	const cells = useTotals ? cellsOf(population, sums, ofObjects) : [];
	const lower = (at) => useTotals ? lowerStrata(cells, at)
		: ofObjects ? lowerObjectsOf(acc, at) : lowerBytesOf(acc, at);
	e.lo = Math.min(e.lo, lowerIfSeen(lower, level.half,
		ofObjects ? acc[SAMPLES] : acc[SIZE], each / acc[PERIOD]));
	if (sums.isLeast || gap > 0)
		return cut(withGap(e));
	return cut(ofObjects && most < Infinity
		? boundObjects(e, population, sums, level) : e);
}
