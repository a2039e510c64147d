// SPDX-License-Identifier: MIT
//
// Two profiles side by side: what both have in common, and the differences with
// their intervals, as src/stats/compare.c and src/gate make them ((E27), (E31)
// of docs/statistics.md).  tests/programs/test_page_diff.py compares the two.

const UNKNOWN = '[unknown]', ANONYMOUS = '[anonymous]';

// ---- code that both have: by names, not by addresses or lines ----

const homeOf = (data, module) =>
	module === data.main_module ? '' : baseName(module);

// Functions of both, each once, and of each side the number of its functions.
// The program itself is the same module whatever its file is called.
function joinFunctions(sides) {
	const functions = [], known = new Map();
	const numbers = sides.map(({data, code}) => {
		const unnamed = new Set(data.unnamed);

		return Int32Array.from(code.functions, (fn, f) => {
			const isUnnamed = unnamed.has(f);
			const name = !isUnnamed ? fn.name
				: fn.module ? UNKNOWN : ANONYMOUS;
			const module = homeOf(data, fn.module);
			const key = `${module}\0${name}`;

			if (!known.has(key)) {
				known.set(key, functions.length);
				functions.push({name, module: fn.module,
					home: module, place: isUnnamed ? '' : fn.place});
			}
			return known.get(key);
		});
	});

	return {functions, numbers};
}

// Path p in joint numbers, what is repeated in a row once; returns where its
// flat function is.
function visitOnce({start, frames, foreign, flatAt}, numbers, p, visit) {
	let last = -1, n = 0, flat = 0;

	for (let i = start[p]; i < start[p + 1]; i++) {
		const f = numbers[frames[i]];

		if (f !== last) {
			visit(f, foreign[i]);
			n++;
		}
		if (i === flatAt[p])
			flat = n - 1;
		last = f;
	}
	return flat;
}

// Paths of both, each once, and of each side the number of its paths.
function joinPaths(sides, numbers) {
	const all = sides.flatMap(({code}, s) =>
		Array.from({length: code.paths.flatAt.length}, (_, p) => [s, p]));
	const flats = new Int32Array(all.length);
	const {leaf} = growTrie([...all.keys()], (i, visit) => {
		const [s, p] = all[i];

		flats[i] = visitOnce(sides[s].code.paths, numbers[s], p, visit);
	});
	const start = [0], frames = [], foreign = [], flatAt = [];
	const known = new Map();
	const places = sides.map(({code}) =>
		new Int32Array(code.paths.flatAt.length));

	all.forEach(([s, p], i) => {
		const key = leaf[i] * 2 ** 20 + flats[i];

		if (!known.has(key)) {
			known.set(key, flatAt.length);
			flatAt.push(frames.length + flats[i]);
			visitOnce(sides[s].code.paths, numbers[s], p,
				(f, isForeign) => {
					frames.push(f);
					foreign.push(isForeign);
				});
			start.push(frames.length);
		}
		places[s][p] = known.get(key);
	});
	return {
		paths: {start: Int32Array.from(start),
			frames: Int32Array.from(frames),
			foreign: Uint8Array.from(foreign),
			flatAt: Int32Array.from(flatAt)},
		places,
	};
}

// Cells by the number of another path: places[p] instead of p.
function moveCells(cells, places, nPaths) {
	const moved = {...cells, start: new Int32Array(nPaths + 1)};
	const columns = ['kind', 'born', 'freed', 'flags', 'count'];

	for (let p = 0; p < places.length; p++)
		moved.start[places[p] + 1] += cells.start[p + 1] - cells.start[p];
	for (let p = 0; p < nPaths; p++)
		moved.start[p + 1] += moved.start[p];
	const fill = moved.start.slice();
	for (const name of columns)
		moved[name] = cells[name].slice();
	for (let p = 0; p < places.length; p++)
		for (let c = cells.start[p]; c < cells.start[p + 1]; c++) {
			const to = fill[places[p]]++;

			for (const name of columns)
				moved[name][to] = cells[name][c];
		}
	return moved;
}

function joinModels(sides, functions, numbers) {
	const {paths, places} = joinPaths(sides, numbers);
	const index = indexFunctions(functions.length, paths);

	return sides.map(({data, code}, s) => {
		const model = new Model(data, {
			functions, paths, index,
			cells: moveCells(code.cells, places[s], paths.flatAt.length),
		});

		model.choose({view: 'alloc', ofObjects: false, from: 0,
			to: model.bins});
		return model;
	});
}

// A model of each, with functions and paths of both; what was renamed has its
// new name on both sides.
function joinPair(data, base) {
	const sides = [data, base].map((of) => ({data: of, code: readCode(of)}));
	const {functions, numbers} = joinFunctions(sides);
	let [newer, older] = joinModels(sides, functions, numbers);
	const renamed = findRenamed(older, newer);

	if (renamed.size) {
		numbers[1] = numbers[1].map((f) => renamed.get(f) ?? f);
		[newer, older] = joinModels(sides, functions, numbers);
	}
	return new Pair(newer, older, [...renamed].map(([a, b]) =>
		`${functions[a].name} → ${functions[b].name}`));
}

// ---- differences ----

// Both tails of an interval that is missed with probability p.
function levelOf(p) {
	const t = normalQuantile(p / 2);

	return {half: p / 2, lo: t, hi: -t};
}

// (E27) of two estimates.
function changeOf(a, b) {
	const value = b.value - a.value;

	return {
		value,
		lo: value - Math.hypot(b.value - b.lo, a.hi - a.value),
		hi: value + Math.hypot(b.hi - b.value, a.value - a.lo),
	};
}

const isNotZero = ({lo, hi}) => lo > 0 || hi < 0;

// (E31) of n rows, of which isTold(i, level) says whether row i is told at a
// level: the largest k such that k rows are told at k/n of the rate.  `told`
// are these, and p what a row needs to be one of them.
function falseDiscoveries(n, isTold, rate) {
	let told = Array.from({length: n}, (_, i) => i), k;

	do {
		k = told.length;
		const level = levelOf(rate * k / n);

		told = k ? told.filter((i) => isTold(i, level)) : [];
	} while (told.length < k);
	return {told, p: rate * Math.max(k, 1) / Math.max(n, 1)};
}

// What Model is for one profile.  `est` of a path is how much it changed,
// either way, which is what frames are as wide as.
class Pair extends Code {
	constructor(newer, older, renamed) {
		super(newer.data, newer);
		this.renamed = renamed;
		this.opening = 'alloc';
		this.sides = [older, newer];
		this.rate = 1 - newer.data.confidence;
		this.level = levelOf(this.rate);
		this.net = new Float64Array(this.nPaths);
		this.caveats = new Caveats(this);
	}

	get isPair() {
		return true;
	}

	get summed() {
		return ['est', 'net', 'samples'];
	}

	// Of both together, so that no side is out of order.
	get weights() {
		const [older, newer] = this.sides;

		return newer.est.map((est, p) => est + older.est[p]);
	}

	get views() {
		const [older, newer] = this.sides;

		return newer.views.filter((view) => older.views.includes(view));
	}

	choose({view, ofObjects}) {
		const [older, newer] = this.sides;

		this.choice = {view, ofObjects, from: 0, to: this.bins};
		this.accs = this.sides.map((model) => {
			model.choose({view, ofObjects, from: 0, to: model.bins});
			return model.accsOfPaths();
		});
		for (let p = 0; p < this.nPaths; p++) {
			this.net[p] = newer.est[p] - older.est[p];
			this.est[p] = Math.abs(this.net[p]);
			this.samples[p] = newer.samples[p] + older.samples[p];
		}
	}

	// The sums of some paths, old and new.
	sumsOf(paths) {
		return this.accs.map((accs, s) => {
			const acc = emptyAcc(this.sides[s].data.period_bytes);

			for (const p of paths)
				for (let j = 0, at = p * ACC_TERMS; j < ACC_TERMS; j++)
					acc[j] = j === PERIOD
						? Math.max(acc[j], accs[at + j])
						: acc[j] + accs[at + j];
			return acc;
		});
	}

	estimateOf(acc, level) {
		const e = this.choice.ofObjects ? objectsOf(acc, level)
			: bytesOf(acc, level);

		return {...e, samples: acc[SAMPLES]};
	}

	changeOfSums(sums, level) {
		const [a, b] = sums.map((acc) => this.estimateOf(acc, level));

		return changeOf(a, b);
	}

	// Would it be told if all its samples were on one side?  What could not
	// be told whatever happened is no test (E31).
	isTestable([a, b]) {
		const all = a.map((term, j) => j === PERIOD
			? Math.max(term, b[j]) : term + b[j]);
		const none = emptyAcc(all[PERIOD]);

		return [[a, b], [none, all], [all, none]].some((sums) =>
			isNotZero(this.changeOfSums(sums, this.level)));
	}

	// {old, new, change} of some paths.
	compare(paths) {
		const [a, b] = this.sumsOf(paths).map((acc) =>
			this.estimateOf(acc, this.level));

		return {old: a, new: b, change: changeOf(a, b)};
	}

	// The rows of a table, {f, old, new, change, isTold, why}: functions with
	// a sample on either side.
	rows(pathsOf) {
		const list = [];

		for (let f = 0; f < this.functions.length; f++) {
			const sums = this.sumsOf(pathsOf(f));

			if (sums[0][SAMPLES] + sums[1][SAMPLES] > 0)
				list.push({f, sums});
		}
		const tests = list.filter(({sums}) => this.isTestable(sums));
		const {told} = falseDiscoveries(tests.length, (i, level) =>
			isNotZero(this.changeOfSums(tests[i].sums, level)),
		this.rate);
		const isTold = new Set(told.map((i) => tests[i]));

		return list.map((row) => {
			const {f, sums} = row;
			const [a, b] = sums.map((acc) =>
				this.estimateOf(acc, this.level));

			return {f, old: a, new: b, change: changeOf(a, b),
				...this.caveats.verdict(this.caveats.isMixed(f),
					isTold.has(row), pathsOf(f))};
		});
	}
}

// Which frames of a tree have changed: those that can be seen when nothing is
// zoomed are tested together (E31), the smaller ones as strictly as that.
class Verdicts {
	constructor(pair, tree, sums) {
		const nodes = [], least = sums.est[0] * SEEN_SHARE;

		this.pair = pair;
		this.tree = tree;
		this.known = new Map();
		for (let n = 1; n < tree.n;) {
			if (!(sums.est[n] > least)) {
				n = tree.end[n];
				continue;
			}
			nodes.push(n++);
		}
		const rows = nodes.map((node) =>
			({node, sums: pair.sumsOf(pathsOfNode(tree, node))}));
		const tests = rows.filter(({sums}) => pair.isTestable(sums));
		const {told, p} = falseDiscoveries(tests.length, (i, level) =>
			isNotZero(pair.changeOfSums(tests[i].sums, level)),
		pair.rate);
		this.level = levelOf(p);
		this.isTestedAs = new Map(nodes.map((n) => [n, false]));
		for (const i of told)
			this.isTestedAs.set(tests[i].node, true);
	}

	// A place of a tree is what its callers make it.
	isMixed(node) {
		const {pair: {caveats}, tree} = this;

		for (let n = node; n > 0; n = tree.parent[n])
			if (caveats.isMixed(tree.fn[n]))
				return true;
		return false;
	}

	// {isTold, why} of a frame.
	of(node) {
		if (!this.known.has(node)) {
			const paths = pathsOfNode(this.tree, node);
			const isTold = this.isTestedAs.get(node) ??
				isNotZero(this.pair.changeOfSums(
					this.pair.sumsOf(paths), this.level));

			this.known.set(node, this.pair.caveats.verdict(
				this.isMixed(node), isTold, paths));
		}
		return this.known.get(node);
	}

	isTold(node) {
		return this.of(node).isTold;
	}
}
const SEEN_SHARE = 1 / 2000;
