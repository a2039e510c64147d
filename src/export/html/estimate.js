// SPDX-License-Identifier: MIT
//
// Estimates with intervals, as src/stats/estimator.c, estimate.c and strata.c
// make them ((E3) to (E17) of docs/statistics.md; the comments there say why).
// tests/e2e/test_page.py compares the two.

// An accumulator: sums over samples, in the order in which export/html.c writes
// them.
const SAMPLES = 0, SIZE = 1, SURE = 2, EST = 3, K2 = 4, K3 = 5, KZ = 6,
	COUNT = 7, C2 = 8, C3 = 9, PERIOD = 10, ACC_TERMS = 11;

// Where nothing is known of sizes (E11).
const SMALLEST_UNKNOWN = {bytes: 16, more: 0};
// What the smallest object is chosen for (E48).
const UNSEEN_PERIODS = 3.7;
const STRATUM_SAMPLES_MIN = 16;
const MOMENTS_TOGETHER = 1.7;

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

// What it adds to the mean of two moments (E22, E43), of which it was alive at
// one: that which its own half of the samples chose, or the other.
function termsAtOwn(terms) {
	const acc = emptyAcc(terms[PERIOD]);

	acc[SAMPLES] = acc[SURE] = 1;
	acc[SIZE] = acc[EST] = terms[SIZE] / 2;
	acc[COUNT] = 1 / 2;
	return acc;
}

function termsAtOther(terms) {
	const acc = terms.slice();
	const q = terms[C2] / (terms[COUNT] * terms[COUNT]);
	const miss = 2 * q / (1 + q);
	const w = terms[EST] * (1 + q) / 2, n = terms[COUNT] * (1 + q) / 2;

	acc[SIZE] = terms[SIZE] / 2;
	acc[EST] = w;
	acc[K2] = w * w * miss;
	acc[K3] = w * w * w * miss * (1 + miss);
	acc[KZ] = w * w * miss * terms[SIZE] / 2;
	acc[COUNT] = n;
	acc[C2] = n * n * miss;
	acc[C3] = n * n * n * miss * (1 + miss);
	return acc;
}

// A mean of two moments (E43).
function widenAcc(terms) {
	const acc = terms.slice(), more = Math.sqrt(MOMENTS_TOGETHER);

	for (const j of [K2, KZ, C2])
		acc[j] *= more * more;
	for (const j of [K3, C3])
		acc[j] *= more * more * more;
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

// ---- exact totals (E10, E17) ----

// One side of a stratum, as cumulants of what was not sampled.
function sideOfBytes(acc) {
	const r = acc[PERIOD] === 1 ? 0 : acc[PERIOD];
	const step = acc[K2] > 0 ? acc[KZ] / acc[K2] : 0;
	const smooth = r > 0 ? lattice(step, r) : 0;

	return {
		seen: acc[SIZE], k1: Math.max(acc[EST] - acc[SIZE], 0),
		k2: acc[K2], k3: acc[K3], phantom: [r, r * r, 2 * r * r * r],
		rough: step / 2, smooth,
		ownSmooth: r > 0 ? smooth * acc[K2] / (acc[K2] + r * r) : 0,
		chance: acc[SAMPLES] - acc[SURE], hasSamples: acc[SAMPLES] > 0,
	};
}

function sideOfObjects(acc, smallest) {
	return {
		seen: acc[SAMPLES], k1: Math.max(acc[COUNT] - acc[SAMPLES], 0),
		k2: acc[C2], k3: acc[C3],
		phantom: phantomObject(smallest, acc[PERIOD]),
		rough: 0.5, smooth: 0.5, ownSmooth: 0.5,
		chance: acc[SAMPLES] - acc[SURE], hasSamples: acc[SAMPLES] > 0,
	};
}

function cellOf(part, rest, total, slack, isAlone) {
	const unseen = total - part.seen - rest.seen;
	const isWrong = unseen < -slack;

	return {
		part, rest, slack,
		unseen: isWrong ? Infinity : Math.max(unseen, 0),
		isAlone: isAlone || isWrong,
	};
}

const NOWHERE = 0, ON_PART = 1, ON_REST = 2;

function lawOfNothing(c, isUpper) {
	const spokenFor = !c.part.hasSamples && c.part.phantom[1] > 0;

	if (!isUpper || spokenFor)
		return {k1: 0, k2: 0, k3: 0, lattice: 0, slack: 0};
	return {k1: c.unseen, k2: 0, k3: 0, lattice: 0, slack: c.slack};
}

function freedom(c) {
	const s = c.part.chance + c.rest.chance;

	return s > 1 ? s / (s - 1) : 1;
}

// (E40)
function scaleSpread(law, c, a, b, isUpper) {
	const unseen = c.part.k1 + c.rest.k1;
	const small = unseen / (unseen + c.part.seen + c.rest.seen);
	const ofRest = isUpper && law.k3 < 0;
	const own = ofRest ? b.k1 : a.k1;
	const left = ofRest ? c.unseen - law.k1 : law.k1;
	const shift = own > 0 ? Math.max(left / own, 0) : 1;

	if (ofRest || shift > 2)
		law.slack = c.slack;
	if (isUpper && !ofRest) {
		law.k2 *= Math.max(1, shift - 2);
		law.k3 *= Math.max(1, shift - 2);
	} else if (unseen > 0) {
		law.k2 *= 1 - small + small * shift * shift;
		law.k3 *= 1 - small + small * shift * shift * shift;
	}
	return law;
}

// (E10) in one stratum.
function lawOf(c, phantom, isUpper) {
	const [a1, a2, a3] = phantom === ON_PART ? c.part.phantom : [0, 0, 0];
	const [b1, b2, b3] = phantom === ON_REST ? c.rest.phantom : [0, 0, 0];
	const a = {k1: c.part.k1 + a1, k2: c.part.k2 + a2, k3: c.part.k3 + a3};
	const b = {k1: c.rest.k1 + b1, k2: c.rest.k2 + b2, k3: c.rest.k3 + b3};
	const near = phantom === NOWHERE ? 'smooth' : 'ownSmooth';
	const fromA = isUpper ? c.part[near] : c.part.rough;
	const fromB = isUpper ? c.rest.rough : c.rest[near];
	const t = a.k2 + b.k2;

	if (c.isAlone)
		return {...a, lattice: fromA, slack: 0};
	if (!(t > 0))
		return lawOfNothing(c, isUpper);
	const k = a.k2 / t, l = b.k2 / t;
	return scaleSpread({
		k1: l * a.k1 + k * (c.unseen - b.k1),
		k2: k * b.k2 * (phantom === NOWHERE ? freedom(c) : 1),
		k3: l * l * l * a.k3 - k * k * k * b.k3,
		lattice: l * fromA + k * fromB,
		slack: k * c.slack,
	}, c, a, b, isUpper);
}

function addLaw(sum, one) {
	sum.k1 += one.k1;
	sum.k2 += one.k2;
	sum.k3 += one.k3;
	sum.lattice += one.lattice * one.k2;
	sum.slack = Math.max(sum.slack, one.slack);
}

const noLaw = () => ({k1: 0, k2: 0, k3: 0, lattice: 0, slack: 0});

function roughQuantile(k1, k2, k3, t) {
	return k2 > 0 ? k1 + t * Math.sqrt(k2) + (t * t - 1) * k3 / (6 * k2) : k1;
}

// Where the phantom moves the limit most.
function placePhantom(cells, isUpper, t) {
	const kind = isUpper ? ON_PART : ON_REST;
	const all = noLaw();
	let best = -Infinity, place = 0;

	if (cells.length === 1)
		return 0;
	for (const c of cells)
		addLaw(all, lawOf(c, NOWHERE, isUpper));
	cells.forEach((c, i) => {
		const one = lawOf(c, NOWHERE, isUpper);
		const other = lawOf(c, kind, isUpper);
		const limit = roughQuantile(all.k1 - one.k1 + other.k1,
			Math.max(all.k2 - one.k2 + other.k2, 0),
			all.k3 - one.k3 + other.k3, t);

		if ((isUpper ? limit : -limit) > best) {
			best = isUpper ? limit : -limit;
			place = i;
		}
	});
	return place;
}

function limitOf(cells, isUpper, level) {
	const t = isUpper ? level.hi : level.lo;
	const place = placePhantom(cells, isUpper, t);
	const all = noLaw();
	let most = 0, more = 0;

	cells.forEach((c, i) => {
		const kind = i !== place ? NOWHERE : isUpper ? ON_PART : ON_REST;

		addLaw(all, lawOf(c, kind, isUpper));
		most += c.unseen;
		more += c.more ?? 0;
	});
	all.k3 = isUpper ? -endAtZero(most - all.k1, all.k2, -all.k3)
		: endAtZero(all.k1, all.k2, all.k3);
	const steps = all.k2 > 0 ? all.lattice / all.k2 : 0;
	return p3Quantile(all.k1, all.k2, all.k3,
		isUpper ? 1 - level.half : level.half, t) +
		(isUpper ? steps + all.slack + more : -steps);
}

function valueOf(c, share) {
	if (c.isAlone)
		return Math.max(c.part.k1 + (c.gain ?? 0), 0);
	if (c.part.k2 + c.rest.k2 > 0)
		return lawOf(c, NOWHERE, true).k1;
	if (!c.part.hasSamples)
		return c.rest.hasSamples ? 0 : share * c.unseen;
	return c.rest.hasSamples ? c.unseen / 2 : c.unseen;
}

function shareOfPart(cells) {
	let part = 0, rest = 0;

	for (const c of cells) {
		part += c.part.seen + c.part.k1;
		rest += c.rest.seen + c.rest.k1;
	}
	return part > 0 ? part / (part + rest) : 0;
}

function lowerStrata(cells, level) {
	let seen = 0, unseen = 0;

	if (!cells.some((c) => c.part.hasSamples))
		return 0;
	for (const c of cells) {
		seen += c.part.seen;
		unseen += c.unseen;
	}
	return seen +
		Math.min(Math.max(limitOf(cells, false, level), 0), unseen);
}

// (E17)
function estimateStrata(cells, level) {
	const share = shareOfPart(cells);
	const clamp = (v, hi) => Math.min(Math.max(v, 0), hi);
	let seen = 0, unseen = 0, value = 0, slack = 0;

	for (const c of cells) {
		seen += c.part.seen;
		unseen += c.unseen;
		slack = Math.max(slack, c.slack);
		value += valueOf(c, share);
	}
	return around(seen + clamp(value, unseen), lowerStrata(cells, level),
		seen + clamp(limitOf(cells, true, level), unseen + slack));
}

// A tally: samples in all, and by size class: {all, classes: Map}.
function emptyTally(period) {
	return {all: emptyAcc(period), classes: new Map()};
}

function newStratum(period) {
	return {
		part: emptyAcc(period), rest: emptyAcc(period), bytes: 0,
		objects: 0, objectsGain: 0,
		smallest: {bytes: Infinity, more: 0},
		bytesAlone: false,
		objectsAlone: false,
	};
}

// (E48) The phantom of a number of objects, as add_smallest() has it: `below`
// is what is known of the classes before number i.
function improveSmallest(best, population, i, below) {
	const {slack, period, classes} = population;
	const total = classes[i];
	const isTiny = i === 0 && Math.floor(total.bytes / 16) < total.objects;
	const z = i ? classes[i - 1].max + 1 : 16;
	const cost = ({bytes, more}) => UNSEEN_PERIODS * period / bytes + more;
	const n = below.objects + slack / 16 + (isTiny ? total.objects : 0);
	const bytes = below.bytes + slack + (isTiny ? total.bytes : 0);
	const first = best.bytes === Infinity
		? {bytes: isTiny ? 1 : slack > 0 ? 16 : z, more: 0} : best;
	const next = {bytes: z, more: Math.max(n - bytes / z, 0)};

	return cost(next) < cost(first) ? next : first;
}

// Of all classes but those of a Map.
function smallestBut(population, classes) {
	const below = {bytes: 0, objects: 0};
	let best = {bytes: Infinity, more: 0};

	population.classes.forEach((total, i) => {
		if ((!total.objects && !population.slack) || classes.has(i))
			return;
		best = improveSmallest(best, population, i, below);
		below.bytes += total.bytes;
		below.objects += total.objects;
	});
	return best;
}

function smallestOfAll(population) {
	const best = smallestBut(population, new Map());

	return population.hasSizes && best.bytes < Infinity ? best
		: SMALLEST_UNKNOWN;
}

// (E49) What is known of the classes of which there are samples.
function boundObjects({value, lo, hi}, population, tally, level) {
	const r = population.period, hits = tally.classes.size + 1;
	let most = population.slack;

	for (const i of tally.classes.keys())
		most += population.classes[i].objects;
	if (hits === 2)
		value = Math.min(value, most);
	const others = smallestBut(population, tally.classes);
	if (others.bytes < Infinity)
		most += others.more + p3Quantile(hits * r, hits * r * r,
			2 * hits * r * r * r, 1 - level.half, level.hi) /
			others.bytes;
	return around(value, lo, Math.min(hi, most));
}

function addClass(stratum, population, i, part) {
	const all = population.samples.get(i);

	stratum.smallest = improveSmallest(stratum.smallest, population, i,
		stratum);

	if (all) {
		mergeAcc(stratum.rest, part ? subtractAcc(all, part) : all);
		if (part) {
			mergeAcc(stratum.part, part);
			stratum.objectsGain += population.gains.get(i)[3] *
				part[C2];
		}
	}
	stratum.bytes += population.classes[i].bytes;
	stratum.objects += population.classes[i].objects;
}

// The strata in which the subset has samples, and all others as one.
function stratify(population, tally) {
	const {classes, period} = population;
	const strata = new Map();
	const others = newStratum(period);
	const enough = STRATUM_SAMPLES_MIN * period;

	for (const i of tally.classes.keys())
		strata.set(classes[i].stratum, newStratum(period));
	for (let i = 0; i < classes.length; i++) {
		if (!population.samples.has(i) && !classes[i].objects &&
		    !population.slack)
			continue;
		addClass(strata.get(classes[i].stratum) || others, population, i,
			tally.classes.get(i));
	}
	const mixed = strata.get(0), tiny = strata.get(classes[0].stratum);
	if (tiny && Math.floor(classes[0].bytes / 16) < classes[0].objects)
		tiny.objectsAlone = true;
	if (mixed) {
		mixed.objectsAlone = true;
		mixed.bytesAlone = mixed.bytes < enough;
	}
	const list = [...strata.values()];
	return others.smallest.bytes === Infinity ? list : [others, ...list];
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

// Bytes of the samples of a tally, or objects, with limits that hold if the
// tally was named before it was known to have samples.
function estimateNamed(population, tally, level, ofObjects) {
	if (!population.useTotals || population.period === 1)
		return ofObjects
			? objectsOf(tally.all, level, population.smallest)
			: bytesOf(tally.all, level);
	return estimateStrata(cellsOf(population, tally, ofObjects), level);
}

function cellsOf(population, tally, ofObjects) {
	return stratify(population, tally).map((s) => ofObjects
		? {...cellOf(sideOfObjects(s.part, s.smallest.bytes),
			sideOfObjects(s.rest, s.smallest.bytes), s.objects,
			population.slack / s.smallest.bytes, s.objectsAlone),
		more: s.smallest.more, gain: s.objectsGain}
		: cellOf(sideOfBytes(s.part), sideOfBytes(s.rest), s.bytes,
			population.slack, s.bytesAlone));
}

// The same of a tally that is shown because it has samples.
function estimate(population, tally, level, ofObjects) {
	const acc = tally.isMean ? widenAcc(tally.all) : tally.all;

	if (tally.isMean) {
		// exact totals are no more than its bound
		population = {...population, useTotals: false};
		if (ofObjects)
			acc[SAMPLES] = Math.floor(acc[SAMPLES] / 2);
		tally = {all: acc, classes: tally.classes};
	}
	const e = estimateNamed(population, tally, level, ofObjects);
	const each = ofObjects ? acc[EST] / acc[COUNT] : 1;

	// (E44)
	const most = (ofObjects ? population.mostObjects
		: population.mostBytes) ?? Infinity;
	const cut = ({value, lo, hi}) => ({value: Math.min(value, most),
		lo: Math.min(lo, most), hi: Math.min(hi, most)});

	if (!acc[SAMPLES] || acc[PERIOD] === 1)
		return cut(e);
	const useTotals = population.useTotals && population.period !== 1;
	const cells = useTotals ? cellsOf(population, tally, ofObjects) : [];
	const lower = (at) => useTotals ? lowerStrata(cells, at)
		: ofObjects ? lowerObjectsOf(acc, at) : lowerBytesOf(acc, at);
	e.lo = Math.min(e.lo, lowerIfSeen(lower, level.half,
		ofObjects ? acc[SAMPLES] : acc[SIZE], each / acc[PERIOD]));
	return cut(ofObjects && most < Infinity
		? boundObjects(e, population, tally, level) : e);
}
