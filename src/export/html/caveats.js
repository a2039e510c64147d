// SPDX-License-Identifier: MIT
//
// Which changes of a pair mean something, as src/compare/names.c and moved.c find
// them: not those of functions that have names on one side only, and not those
// that only moved between callers and callees, because one side inlines them.

// Samples with which it is no chance that none, or all, have names, as there.
const NAMES_SAMPLES_MIN = 12;

const WHY_NAMES = 'functions with names in only some runs cannot be compared';
const WHY_MOVED = 'other inlining, build flags or code that moved: ' +
	'callers or callees had these bytes before';

// "[no stack]" and "[anonymous]" are in no module.
const isInModule = ({name}) => name === UNKNOWN || name[0] !== '[';

// Of each module, what one side has on paths through it, and on those where it
// lacks names.
function sharesOf(model) {
	const {data, functions} = model, shares = new Map();
	const nameless = new Set(data.nameless.map((path) => homeOf(data, path)));

	eachOwn(model, (path, est, seen, samples) => {
		const through = new Map();

		for (const f of path) {
			const {home, name} = functions[f];

			if (isInModule(functions[f]))
				through.set(home,
					through.get(home) || name === UNKNOWN);
		}
		for (const [home, isUnnamed] of through) {
			const share = shares.get(home) || {bytes: 0, unnamed: 0,
				samples: 0, isNameless: nameless.has(home)};

			share.bytes += est;
			share.unnamed += isUnnamed ? est : 0;
			share.samples += samples;
			shares.set(home, share);
		}
	});
	return shares;
}

// Modules of which one side has names and the other has none.
function findMixed(sides) {
	const shares = sides.map(sharesOf);
	const homes = new Set(shares.flatMap((some) => [...some.keys()]));

	return new Set([...homes].filter((home) => {
		let least = 1, most = 0, leastSure = 1, mostKnown = 0;

		for (const some of shares) {
			const {bytes, unnamed, samples, isNameless} =
				some.get(home) || {bytes: 0};

			if (!(bytes > 0))
				continue;
			least = Math.min(least, unnamed / bytes);
			if (isNameless)
				mostKnown = Math.max(mostKnown, unnamed / bytes);
			if (samples < NAMES_SAMPLES_MIN)
				continue;
			leastSure = Math.min(leastSure, unnamed / bytes);
			most = Math.max(most, unnamed / bytes);
		}
		return mostKnown - least > 0.5 || most - leastSure > 0.5;
	}));
}

// Paths that are the same without the frames that one side lacks and that can
// have been inlined there, each into a caller of its module: `kinds` are lists
// of them, `kindOf` says in which one a path is.  isWhole: there is a path of
// just these frames, where what is inlined would be.
function findKinds(sides) {
	const [older, newer] = sides.map(framesOf);
	const {functions, nPaths, paths: {start, frames, flatAt}} = sides[0];
	const known = new Map(), kinds = [], kindOf = new Int32Array(nPaths);
	const isWhole = [];

	for (let p = 0; p < nPaths; p++) {
		const path = frames.subarray(start[p], flatAt[p] + 1);
		const kept = path.filter((f, i) => older[f] === newer[f] || !i ||
			functions[f].home !== functions[path[i - 1]].home);
		const key = kept.filter((f, i) => f !== kept[i - 1]).join();

		if (!known.has(key)) {
			known.set(key, kinds.length);
			kinds.push([]);
			isWhole.push(false);
		}
		kindOf[p] = known.get(key);
		kinds[kindOf[p]].push(p);
		isWhole[kindOf[p]] ||= kept.length === path.length;
	}
	return {kinds, kindOf, isWhole};
}

class Caveats {
	constructor(pair) {
		this.pair = pair;
		this.mixed = findMixed(pair.sides);
		this.alike = findKinds(pair.sides);
	}

	isMixed(f) {
		const fn = this.pair.functions[f];

		return this.mixed.has(fn.home) && isInModule(fn);
	}

	// All paths that are alike; null: there are no more than these.
	alikeOf(paths) {
		const {kinds, kindOf, isWhole} = this.alike;
		const all = new Set(paths);

		for (const p of paths)
			if (isWhole[kindOf[p]])
				kinds[kindOf[p]].forEach((q) => all.add(q));
		return all.size > paths.length ? [...all] : null;
	}

	// Has something changed together with all that is alike, too, and by half
	// of the change at least?
	isReal(paths) {
		const {pair} = this, all = this.alikeOf(paths);

		if (!all)
			return true;
		const {value} = pair.compare(paths).change;
		const sums = pair.sumsOf(all);
		const whole = pair.changeOfSums(sums, pair.level).value;
		const test = pair.changeOfSums(sums, levelOf(2 * pair.rate));

		return Math.abs(whole) >= Math.abs(value) / 2 &&
			(value < 0 ? test.hi < 0 : test.lo > 0);
	}

	// What is to be said of a change of such functions on such paths: whether
	// it is told, and why it cannot be compared, if so.
	verdict(isMixed, isTold, paths) {
		const why = isMixed ? WHY_NAMES
			: isTold && !this.isReal(paths) ? WHY_MOVED : null;

		return {isTold: isTold && !why, why};
	}
}
