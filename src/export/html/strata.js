// SPDX-License-Identifier: MIT
//
// Estimates that are held against the exact totals of size classes (E10, E17),
// as src/stats/strata.c makes them.

// What the smallest object is chosen for (E48).
const UNSEEN_PERIODS = 3.7;
const STRATUM_SAMPLES_MIN = 16;

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

// (E74), as weaken_phantom() has it.
function weakenPhantom(c, othersK2, t) {
	const [k1, k2, k3] = c.part.phantom;
	const f = othersK2 > 0 && k2 > 0
		? Math.min(1, 0.6 + 0.03 * t * t * t * Math.sqrt(k2 / othersK2))
		: 1;

	return {...c, part: {...c.part,
		phantom: [f * k1, f * f * k2, f * f * f * k3]}};
}

// (E74), as rise_of_tail() has it.
function riseOfTail(k2, k3, r) {
	const scale = -k3 / k2 / 2 / r, half = k2 / r / 2;

	return scale < 1e-4 ? half * (1 - scale * 2 / 3)
		: half * 2 * (scale - Math.log1p(scale)) / (scale * scale);
}

// (E74), as least_upper() has it.
function leastUpper(c, others, level) {
	const r = Math.sqrt(c.part.phantom[1]);
	const own = lawOf(c, NOWHERE, true), law = lawOf(c, ON_PART, true);
	const k3 = -endAtZero(c.unseen - law.k1, law.k2, -law.k3);
	const limit = law.lattice +
		p3Quantile(law.k1, law.k2, k3, 1 - level.half, level.hi);

	if (!(others.k3 < 0) || !(others.k2 > 0) || !(r > 0))
		return others.k1 + limit;
	const length = (limit - own.k1) * r / others.k2;
	return others.k1 + limit + riseOfTail(others.k2, others.k3, r) *
		Math.min(Math.max(length - 1, 0), 1);
}

function limitOf(cells, isUpper, level) {
	const t = isUpper ? level.hi : level.lo;
	const place = placePhantom(cells, isUpper, t);
	const all = noLaw();
	let c = cells[place], least = -Infinity, most = 0, more = 0;

	if (!c)
		return 0;
	cells.forEach((other, i) => {
		if (i !== place)
			addLaw(all, lawOf(other, NOWHERE, isUpper));
		most += other.unseen;
		more += other.more ?? 0;
	});
	if (isUpper && all.k2 > 0) {
		least = leastUpper(c, all, level);
		c = weakenPhantom(c, all.k2, t);
	}
	addLaw(all, lawOf(c, isUpper ? ON_PART : ON_REST, isUpper));
	all.k3 = isUpper ? -endAtZero(most - all.k1, all.k2, -all.k3)
		: endAtZero(all.k1, all.k2, all.k3);
	const steps = all.k2 > 0 ? all.lattice / all.k2 : 0;
	const limit = p3Quantile(all.k1, all.k2, all.k3,
		isUpper ? 1 - level.half : level.half, t);
	return isUpper ? Math.max(limit + steps, least) + all.slack + more
		: limit - steps;
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
function boundObjects({value, lo, hi}, population, sums, level) {
	const r = population.period, hits = sums.classes.size + 1;
	let most = population.slack;

	for (const i of sums.classes.keys())
		most += population.classes[i].objects;
	if (hits === 2)
		value = Math.min(value, most);
	const others = smallestBut(population, sums.classes);
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
function stratify(population, sums) {
	const {classes, period} = population;
	const strata = new Map();
	const others = newStratum(period);
	const enough = STRATUM_SAMPLES_MIN * period;

	for (const i of sums.classes.keys())
		strata.set(classes[i].stratum, newStratum(period));
	for (let i = 0; i < classes.length; i++) {
		if (!population.samples.has(i) && !classes[i].objects &&
		    !population.slack)
			continue;
		addClass(strata.get(classes[i].stratum) || others, population, i,
			sums.classes.get(i));
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
