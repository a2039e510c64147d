// SPDX-License-Identifier: MIT
//
// The profile as export/html.c wrote it: functions, call paths, and cells, which
// count samples of a path and a kind (export/html_cells.h).
//
// A choice is {view, ofObjects, from, to}: which of them are looked at, by view
// and by the bins [from, to) of their birth.

const CHOSE_PEAK = 1, IS_LEAK = 2, IS_TEMPORARY = 4, AT_END = 8,
	IS_SURVIVOR = 16, AT_PEAK = 32;
const FLAGS = 64;
// Of a point of the timeline: what is alive, and its upper limit.
const LIVE = 2, LIVE_HI = 4;
// What is alive grows if it is more than so many times what it was in the middle
// of the run; a peak matters if it is that part of what was allocated.
const GROWTH = 1.25, PEAK_SHARE = 0.05;

// The numbers of a column (base/bytes.h).
function readColumn(base64) {
	const text = atob(base64);
	let at = 0;

	return () => {
		let value = 0, scale = 1, byte;

		do {
			byte = text.charCodeAt(at++);
			value += (byte & 127) * scale;
			scale *= 128;
		} while (byte & 128);
		return value;
	};
}

// frames[start[p]..start[p + 1]) of a path, outermost first; foreign: 1 for what
// recedes where the program's own functions are shown; flatAt: the frame that its
// bytes are flat for.
function readPaths(data) {
	const n = data.n_paths, next = readColumn(data.paths);
	const start = new Int32Array(n + 1), flatAt = new Int32Array(n);
	const both = [];

	for (let p = 0; p < n; p++) {
		const shared = next(), fresh = next();
		const from = p ? start[p - 1] : 0;

		start[p] = both.length;
		for (let i = 0; i < shared; i++)
			both.push(both[from + i]);
		for (let i = 0; i < fresh; i++)
			both.push(next());
		flatAt[p] = both.length - 1 - next();
	}
	start[n] = both.length;
	return {start, flatAt, frames: Int32Array.from(both, (f) => f >> 1),
		foreign: Uint8Array.from(both, (f) => f & 1)};
}

function readKinds(data) {
	const n = data.n_kinds, next = readColumn(data.kinds);
	const terms = [], classes = new Int32Array(n);

	for (let i = 0; i < n; i++) {
		const size = next(), rest = next();
		const period = data.periods[Math.floor(rest / 2)];

		terms.push(termsOf(size, period, rest % 2 === 1, data.is_dotnet));
		classes[i] = classOf(size);
	}
	return {terms: [terms, terms.map(termsChose), terms.map(termsMeasured)],
		classes};
}

// cells start[p]..start[p + 1] are those of path p
function readCells(data) {
	const n = data.n_cells, next = readColumn(data.cells);
	const cells = {
		start: new Int32Array(data.n_paths + 1), kind: new Int32Array(n),
		born: new Uint8Array(n), freed: new Uint8Array(n),
		flags: new Uint8Array(n), count: new Float64Array(n),
	};
	let at = 0;

	for (let p = 0; p < data.n_paths; p++) {
		cells.start[p] = at;
		for (let left = next(); left > 0; left--, at++) {
			cells.kind[at] = next();
			cells.born[at] = next();
			cells.freed[at] = next();
			const rest = next();
			cells.flags[at] = rest % FLAGS;
			cells.count[at] = Math.floor(rest / FLAGS) + 1;
		}
	}
	cells.start[data.n_paths] = at;
	return cells;
}

function readPopulation(data) {
	const p = data.population;
	const population = {
		useTotals: p.has_totals && data.method === 'p3t',
		hasClasses: p.has_classes,
		period: p.period_bytes,
		slack: p.slack_bytes,
		mostBytes: data.method === 'p3t' ? p.most_bytes ?? Infinity
			: Infinity,
		mostObjects: data.method === 'p3t' ? p.most_objects ?? Infinity
			: Infinity,
		gapBytes: p.gap_bytes ?? Infinity,
		gapObjects: p.gap_objects ?? Infinity,
		samples: new Map(p.samples.map(([i, ...acc]) =>
			[i, Float64Array.from(acc.slice(0, ACC_TERMS))])),
		gains: new Map(p.samples.map(([i, ...acc]) =>
			[i, acc.slice(ACC_TERMS)])),
		classes: p.classes.map(([bytes, objects, stratum, max]) =>
			({bytes, objects, stratum, max})),
		hasSizes: p.most_objects !== null,
	};
	population.smallest = smallestOfAll(population);
	return population;
}

// What a sample of each kind adds where samples are added up by themselves, as
// kinds.terms: (E46), and to what is measured at the peak (E43).
function partsOf(population, {terms, classes}) {
	return {
		once: [terms[0].map((acc, k) =>
			adjustAcc(population, classes[k], acc))],
		measured: terms,
	};
}

function readFunctions(data) {
	const functions = [];

	for (let i = 0; i < data.functions.length; i += 2)
		functions.push({
			name: data.strings[data.functions[i]],
			module: data.strings[data.functions[i + 1]],
			place: '',
		});
	for (let i = 0; i < data.places.length; i += 3) {
		const line = data.places[i + 2];

		functions[data.places[i]].place =
			data.strings[data.places[i + 1]] + (line ? ':' + line : '');
	}
	return functions;
}

// For each function the paths that it is in, each once.
function indexFunctions(n, paths) {
	const nPaths = paths.start.length - 1;
	const start = new Int32Array(n + 1), last = new Int32Array(n).fill(-1);
	const each = (visit) => {
		last.fill(-1);
		for (let p = 0; p < nPaths; p++)
			for (let i = paths.start[p]; i < paths.start[p + 1]; i++) {
				const f = paths.frames[i];

				if (last[f] !== p)
					visit(f, p);
				last[f] = p;
			}
	};

	each((f) => start[f + 1]++);
	for (let f = 0; f < n; f++)
		start[f + 1] += start[f];
	const fill = start.slice(), list = new Int32Array(start[n]);
	each((f, p) => { list[fill[f]++] = p; });
	return {start, list};
}

const readCode = (data) => ({
	functions: readFunctions(data), paths: readPaths(data),
	cells: readCells(data),
});

// Functions and call paths with a figure each, of one profile or of two.
class Code {
	constructor(data, {functions, paths, index}) {
		this.data = data;
		this.bins = data.bins;
		this.functions = functions;
		this.paths = paths;
		this.nPaths = paths.flatAt.length;
		this.index = index || indexFunctions(functions.length, paths);
		this.isOwn = new Uint8Array(functions.length);
		paths.frames.forEach((f, i) => {
			this.isOwn[f] |= 1 - paths.foreign[i];
		});
		this.allPaths = Int32Array.from({length: this.nPaths}, (_, i) => i);
		this.est = new Float64Array(this.nPaths);
		this.samples = new Float64Array(this.nPaths);
	}

	pathsWith(f) {
		return this.index.list.subarray(this.index.start[f],
			this.index.start[f + 1]);
	}

	flatOf(path) {
		return this.paths.frames[this.paths.flatAt[path]];
	}

	pathsFlat(f) {
		return this.pathsWith(f).filter((p) => this.flatOf(p) === f);
	}
}

class Model extends Code {
	constructor(data, code = readCode(data)) {
		const half = (1 - data.confidence) / 2;

		super(data, code);
		this.level = {half, lo: data.normal_lo, hi: data.normal_hi};
		this.population = readPopulation(data);
		this.kinds = readKinds(data);
		this.parts = partsOf(this.population, this.kinds);
		this.cells = code.cells;
		this.kindCounts = new Float64Array(3 * data.n_kinds);
		this.chosen = new Uint8Array(data.n_cells);
		this.seen = new Float64Array(this.nPaths);
		this.opening = this.chooseOpening();
	}

	// Of a path, what can be added up.
	get summed() {
		return ['est', 'seen', 'samples'];
	}

	// What trees and colours are ordered by.
	get weights() {
		return this.est;
	}

	get isPair() {
		return false;
	}

	get views() {
		return this.data.has_frees
			? ['alloc', 'live', 'peak', 'leaks', 'temporary']
			: ['alloc'];
	}

	// The view that a reader needs first: what is alive, if that was still
	// growing; else the peak, if it is a good part of all bytes; else what
	// costs time, objects that hardly lived or whatever was allocated.
	chooseOpening() {
		const {timeline, live_bytes: end, peak_bytes: peak} = this.data;
		const middle = timeline[timeline.length >> 1];

		if (!this.data.has_frees || !end || !peak.value)
			return 'alloc';
		// Beyond the noise of both, taken as independent: they are less far
		// apart than that, as what stays is in both.
		const noise = Math.hypot(end.value - end.lo,
			GROWTH * ((middle[LIVE_HI] ?? Infinity) - middle[LIVE]));
		if (end.value >= peak.value / 2 &&
		    end.value - GROWTH * middle[LIVE] > noise)
			return 'live';
		if (peak.value >= PEAK_SHARE * this.data.alloc_bytes.value)
			return 'peak';
		return this.shareOf(IS_TEMPORARY) > 1 / 2 ? 'temporary' : 'alloc';
	}

	// Which part of all bytes has the flag.
	shareOf(flag) {
		const {kind, count, flags} = this.cells;
		const [parts] = this.parts.once;
		let all = 0, some = 0;

		for (let c = 0; c < kind.length; c++) {
			const est = count[c] * parts[kind[c]][EST];

			if (flags[c] & IS_SURVIVOR)
				continue;
			all += est;
			some += flags[c] & flag ? est : 0;
		}
		return all > 0 ? some / all : 0;
	}

	// Is a cell in the view?  Of what is born in the window, `live` is
	// what is alive at its end.
	viewTest({view, to}) {
		const {flags, freed} = this.cells;

		switch (view) {
		case 'live':
			return to === this.bins
				? (c) => flags[c] & AT_END
				: (c) => !freed[c] || freed[c] - 1 > to;
		case 'peak':
			return (c) => flags[c] & (AT_PEAK | CHOSE_PEAK);
		case 'leaks':
			return (c) => flags[c] & IS_LEAK;
		case 'temporary':
			return (c) => flags[c] & IS_TEMPORARY;
		default:
			return (c) => !(flags[c] & IS_SURVIVOR);
		}
	}

	// Which of its terms a cell of the view adds: the whole ones, or at the
	// peak those of what chose the moment, or measures it.
	termsTest({view}) {
		const {flags} = this.cells;

		if (view !== 'peak' || !this.data.peak_is_measured)
			return () => 0;
		return (c) => flags[c] & CHOSE_PEAK ? 1 : 2;
	}

	// Is it of what was alive at a moment of which the profile does not know
	// that?
	isUnknownAt({view, to}) {
		const known = this.data.whole.live_known_until_ns;

		if (known === null || view === 'alloc' || view === 'temporary')
			return false;
		if (view === 'peak')
			return this.data.peak_ns > known;
		return view === 'leaks' || to === this.bins ||
			this.data.timeline[to][0] > known;
	}

	// What a chosen cell of each kind adds.
	get partsOfChoice() {
		return this.isMeasured ? this.parts.measured : this.parts.once;
	}

	// Sum up what is chosen, by path: `est` (E46), of which `seen` was
	// sampled itself, and `samples`.  Everything below is about the choice.
	choose(choice) {
		const {start, kind, born, count} = this.cells;
		const weight = choice.ofObjects ? COUNT : EST;
		const size = choice.ofObjects ? SAMPLES : SIZE;
		const isInView = this.viewTest(choice);
		const whichTerms = this.termsTest(choice);

		this.choice = choice;
		this.isMeasured = choice.view === 'peak' &&
			this.data.peak_is_measured;
		const {processes, processes_lacking: lacking, discarded,
			lost_samples: lost, lost_frees: lostFrees} = this.data.whole;
		const isOfMoment =
			!['alloc', 'temporary'].includes(choice.view);

		this.isUnknown = this.isUnknownAt(choice) &&
			!(processes > 1 && lacking && lacking < processes);
		this.isLeast = this.isUnknownAt(choice) ||
			isOfMoment && discarded && lost ||
			choice.view === 'temporary' && lostFrees;
		const parts = this.partsOfChoice;

		for (let p = 0; p < this.nPaths; p++) {
			let est = 0, seen = 0, samples = 0;

			for (let c = start[p]; c < start[p + 1]; c++) {
				const isIn = born[c] >= choice.from &&
					born[c] < choice.to && isInView(c);

				this.chosen[c] = isIn ? 1 + whichTerms(c) : 0;
				if (!isIn)
					continue;
				const one = parts[this.chosen[c] - 1][kind[c]];

				est += count[c] * one[weight];
				seen += count[c] * one[size];
				samples += count[c];
			}
			this.est[p] = est;
			this.seen[p] = seen;
			this.samples[p] = samples;
		}
	}

	// Sums over the chosen samples of some paths, all kinds or those of the
	// classes first..last.
	sumsOf(paths, first = 0, last = CLASSES) {
		const {start, kind, count} = this.cells;
		const sums = emptySums(this.data.period_bytes);
		const touched = [];

		sums.isMeasured = this.isMeasured;
		sums.isUnknown = this.isUnknown;
		sums.isLeast = this.isLeast;
		for (const p of paths)
			for (let c = start[p]; c < start[p + 1]; c++) {
				const i = this.kinds.classes[kind[c]];
				const k = 3 * kind[c] + this.chosen[c] - 1;

				if (!this.chosen[c] || i < first || i > last)
					continue;
				if (!this.kindCounts[k])
					touched.push(k);
				this.kindCounts[k] += count[c];
			}
		for (const k of touched) {
			this.addKind(sums, Math.floor(k / 3), k % 3,
				this.kindCounts[k]);
			this.kindCounts[k] = 0;
		}
		return sums;
	}

	addKind(sums, k, which, n) {
		const terms = this.kinds.terms[which][k];
		const i = this.kinds.classes[k];
		let acc = sums.classes.get(i);

		if (!acc) {
			acc = emptyAcc(sums.all[PERIOD]);
			sums.classes.set(i, acc);
		}
		for (let j = 0; j < PERIOD; j++) {
			acc[j] += n * terms[j];
			sums.all[j] += n * terms[j];
		}
		acc[PERIOD] = Math.max(acc[PERIOD], terms[PERIOD]);
		sums.all[PERIOD] = Math.max(sums.all[PERIOD], terms[PERIOD]);
	}

	// Sums over the chosen samples of each path, one accumulator after the
	// other.
	accsOfPaths() {
		const {start, kind, count} = this.cells;
		const accs = new Float64Array(this.nPaths * ACC_TERMS);
		const parts = this.partsOfChoice;

		for (let p = 0; p < this.nPaths; p++)
			for (let c = start[p]; c < start[p + 1]; c++) {
				const at = p * ACC_TERMS;

				if (!this.chosen[c])
					continue;
				const terms = parts[this.chosen[c] - 1][kind[c]];

				for (let j = 0; j < PERIOD; j++)
					accs[at + j] += count[c] * terms[j];
				accs[at + PERIOD] = Math.max(accs[at + PERIOD],
					terms[PERIOD]);
			}
		return accs;
	}

	// {value, lo, hi, samples} of some paths, as the report estimates it.
	estimate(paths, ofObjects = this.choice.ofObjects) {
		const sums = this.sumsOf(paths);

		return {
			...estimate(this.population, sums, this.level, ofObjects),
			samples: sums.all[SAMPLES],
		};
	}

	// The same for the sizes of the classes first..last, which have no more
	// than was allocated of them.
	estimateSizes(first, last) {
		const {population, choice} = this;
		const sums = this.sumsOf(this.allPaths, first, last);
		const e = estimate(population, sums, this.level,
			choice.ofObjects);

		if (population.mostBytes < Infinity && !choice.ofObjects) {
			let most = population.slack;

			for (let i = first; i <= last; i++)
				most += population.classes[i].bytes;
			for (const k of ['value', 'lo', 'hi'])
				e[k] = Math.min(e[k], most);
		}
		return {...e, samples: sums.all[SAMPLES]};
	}

	// What was allocated in each bin, whatever is chosen.
	allocatedByBin(ofObjects) {
		const {kind, born, count, flags} = this.cells;
		const bins = Array.from({length: this.bins},
			() => emptySums(this.data.period_bytes));

		for (let c = 0; c < kind.length; c++)
			if (!(flags[c] & IS_SURVIVOR))
				this.addKind(bins[born[c]], kind[c], 0, count[c]);
		return bins.map((sums) =>
			estimate(this.population, sums, this.level, ofObjects));
	}
}

// Is most of it extrapolated from a handful of samples?  Sampling cannot tell
// that from next to nothing.
function isFaint(est, seen, samples) {
	return samples <= FEW_SAMPLES && seen < est / 2;
}
const FEW_SAMPLES = 3;
