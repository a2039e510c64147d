// SPDX-License-Identifier: MIT
//
// The scripts of the page that compute: statistics against the vectors that the
// C code is tested with, trees against a naive model.
//
// Usage: node test_page.js ROOT
'use strict';

const assert = require('assert').strict;
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const root = process.argv[2];
const html = path.join(root, 'src', 'export', 'html');
const names = ['special', 'estimate', 'strata', 'model', 'tree', 'format',
	'shorten', 'pair', 'table', 'changes', 'sizes', 'state', 'layer', 'colours',
	'flame', 'place', 'timeline'];
const exported = ['gammaQuantile', 'p3Quantile', 'emptyAcc', 'mergeAcc',
	'termsOf', 'bytesOf', 'objectsOf', 'estimate', 'estimateNamed', 'classOf', 'CLASSES',
	'readColumn', 'treeOfCalls', 'treeOfCallers', 'treesAround', 'buildTree', 'sumTree', 'pathsOfNode', 'amount',
	'interval', 'visible', 'sizeRanges', 'readState', 'writeState',
	'niceStep', 'Layer', 'findAt', 'neighbour', 'isFaint', 'SAMPLES', 'EST',
	'estimateText', 'emptySums', 'percent', 'normalQuantile', 'levelOf',
	'changeOf', 'falseDiscoveries', 'joinFunctions', 'joinPaths',
	'moveCells', 'shorten', 'shortenAll', 'isGathered', 'stackOf', 'niceTime', 'tickText',
	'Model', 'signed', 'signedInterval', 'signedPercent',
	'moment', 'duration'];
const page = vm.runInThisContext('(() => {' + names.map((name) =>
	fs.readFileSync(path.join(html, `${name}.js`), 'utf8')).join('') +
	`return {${exported}};})()`);
const vectors = JSON.parse(fs.readFileSync(
	path.join(root, "tests", "format", "golden", 'statistics.json'), 'utf8'));

let checks = 0;

function close(got, want, tolerance, what) {
	checks++;
	assert.ok(Math.abs(got - want) <= tolerance * Math.max(Math.abs(want), 1e-300),
		`${what}: ${got}, not ${want}`);
}

// A sequence that is the same in every run.
function random(seed) {
	let state = seed;

	return (n) => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return Math.floor(state / 2 ** 32 * n);
	};
}

// As in test_text.c: no zero with a sign, nothing infinite.
const EDGES = [0, 1e-320, 1e-17, 0.00049, 0.0005, 0.0049, 0.005, 0.0051, 0.049,
	0.05, 0.49, 0.5, 0.51, 0.99, 0.995, 0.999, 1, 9.99, 9.995, 999.949, 1023.5,
	1e6 - 1, 1e9, 1e15, 1e17, 9.3e18, 1.2e19, Infinity, NaN];

function isPlain(text) {
	checks++;
	assert.ok(!/[-+−]0+([.]0+)?(?![.0-9])|Infinity|NaN|e[+]/.test(text), text);
}

const NORMAL = {
	0.05: 1.6448536269514722, 0.025: 1.959963984540054,
	0.005: 2.5758293035489004,
};

function levelOf(confidence) {
	const half = (1 - confidence) / 2;
	const t = NORMAL[Number(half.toFixed(4))];

	assert.ok(t, `no quantile for ${confidence}`);
	return {half, lo: -t, hi: t};
}

function accOf(samples, period, isDotnet) {
	const acc = page.emptyAcc(period);

	for (const size of samples)
		page.mergeAcc(acc, page.termsOf(size, period, false, isDotnet));
	return acc;
}

const tests = {
	quantiles() {
		for (const {a, p, x} of vectors.gamma_quantile)
			close(page.gammaQuantile(a, p), x, 1e-10, `gamma ${a} ${p}`);
		for (const {k1, k2, k3, p, x} of vectors.p3_quantile) {
			const t = (p < 0.5 ? -1 : 1) *
				NORMAL[Number(Math.min(p, 1 - p).toFixed(4))];

			close(page.p3Quantile(k1, k2, k3, p, t), x, 1e-9,
				`p3 ${k1} ${k2} ${k3} ${p}`);
		}
	},

	terms() {
		const fields = {w: 3, k2: 4, k3: 5, count: 7, c2: 8, c3: 9};

		for (const v of vectors.ht)
			for (const [name, at] of Object.entries(fields))
				close(page.termsOf(v.z, v.R, v.R === 1,
					v.conv !== 'exp')[at], v[name], 1e-11,
				`${name} of ${v.z} by ${v.R} ${v.conv}`);
	},

	intervals() {
		for (const v of vectors.bytes_ci) {
			const acc = accOf(v.samples, v.R, v.conv !== 'exp');

			for (const [key, confidence] of [['bytes_ci95', 0.95],
				['bytes_ci90', 0.9], ['bytes_ci99', 0.99]]) {
				const e = page.bytesOf(acc, levelOf(confidence));

				close(e.lo, v[key][0], 1e-9, `${v.name} ${key}`);
				close(e.hi, v[key][1], 1e-9, `${v.name} ${key}`);
			}
			const n = page.objectsOf(acc, levelOf(0.95));
			close(n.lo, v.count_ci95_zmin16[0], 1e-9, v.name);
			close(n.hi, v.count_ci95_zmin16[1], 1e-9, v.name);
		}
	},

	// One class is one stratum: the vectors of a known total (E10).
	knownTotal() {
		const named = (name, period) => vectors.bytes_ci.find((v) =>
			v.name === name && v.R === period && v.conv === 'exp').samples;
		const parse = (text) => text.split(',').flatMap((part) => {
			const [n, size] = part.split('x').map(Number);

			return Array(n).fill(size);
		});

		for (const v of vectors.bytes_ci_known_total) {
			const part = accOf(named(v.A, v.R), v.R, false);
			const all = accOf([...named(v.A, v.R), ...parse(v.B)],
				v.R, false);
			const sums = page.emptySums(v.R);

			if (part[page.SAMPLES])
				sums.classes.set(0, part);
			sums.all = part;
			const e = page.estimateNamed({
				useTotals: true, period: v.R, slack: 0,
				samples: new Map([[0, all]]),
				gains: new Map([[0, Array(6).fill(0)]]),
				classes: [{bytes: v.T, objects: 1e9, stratum: 1, max: 16}],
			}, sums, levelOf(0.95), false);

			close(e.lo, v.ci95[0], 1e-9, `${v.A} in ${v.B}, lo`);
			close(e.hi, v.ci95[1], 1e-9, `${v.A} in ${v.B}, hi`);
		}
	},

	// A row that is shown (E41): the values of unit.estimate.
	shown() {
		const sumsOf = (n) => ({
			...page.emptySums(524288),
			all: accOf(Array(n).fill(16), 524288, false),
		});
		const lo = (n, confidence) => page.estimate({useTotals: false},
			sumsOf(n), levelOf(confidence), false).lo;

		close(lo(1, 0.9), 16, 0, 'one sample');
		close(lo(1, 0.99), 16, 0, 'one sample');
		close(lo(2, 0.95) / 524288, 0.0508, 0.01, 'two samples');
		close(lo(10, 0.95) / 524288, 4.789, 0.001, 'ten samples');
		close(page.estimate({useTotals: false}, sumsOf(1),
			levelOf(0.95), true).lo, 1, 0, 'one object');
	},

	// Each class ends where the next one begins.
	classes() {
		assert.equal(page.classOf(1), 0);
		for (let size = 2, last = 0; size < 2 ** 18; size++) {
			const c = page.classOf(size);

			assert.ok(c === last || c === last + 1, `size ${size}`);
			if (c !== last)
				assert.equal((size - 1) % (size <= 1024 ? 16 : 256), 0,
					`class ${c} begins at ${size}`);
			last = c;
		}
		assert.equal(page.classOf(1024), 63);
		assert.equal(page.classOf(1025), 64);
		assert.equal(page.classOf(2 ** 63), page.CLASSES - 1);
		checks++;
	},

	columns() {
		const bytes = [0, 127, 0x80, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 15];
		const next = page.readColumn(Buffer.from(bytes).toString('base64'));

		assert.deepEqual([next(), next(), next(), next()],
			[0, 127, 128, 2 ** 46 - 1]);
		checks++;
	},

	trees() {
		for (let round = 0; round < 60; round++)
			checkTree(random(round + 1), 1 + round * 5);
	},

	layout() {
		const next = random(7);
		const {tree, model} = randomTree(next, 200);
		const layer = new page.Layer(tree, page.sumTree(tree, model));

		layer.layOut(0);
		for (const [depth, row] of layer.rows.entries())
			for (let i = 0; i < row.length; i += 3) {
				const [x, w, node] = row.slice(i, i + 3);

				assert.equal(tree.depth[node], depth);
				assert.ok(!i || x >= row[i - 3] + row[i - 2] - 1e-12);
				assert.equal(page.findAt(row, x + w / 2), node);
				checks++;
			}
		// What is zoomed has the whole width, and so have its callers.
		layer.zoom = tree.n - 1;
		layer.layOut(0);
		assert.deepEqual(layer.rows[tree.depth[tree.n - 1]].slice(0, 3),
			[0, 1, tree.n - 1]);
	},

	// Whatever is too narrow: each path is in a frame or among those that
	// share one, but for less than the width of one.
	gathered() {
		for (const least of [0.002, 0.01, 0.1]) {
			const {tree, model} = randomTree(random(5), 400);
			const layer = new page.Layer(tree, page.sumTree(tree, model));
			const {est} = layer.sums;

			layer.layOut(least);
			for (const row of layer.rows)
				for (let i = 0; i < row.length; i += 3)
					checkShared(layer, row[i + 2], least * est[0]);
			assert.ok(layer.counts.size, 'nothing is too narrow');
		}
	},

	names() {
		const method = 'acme::storage::Cache<std::string, int (*)(int)>::' +
			'insert_entry(std::string const&, unsigned long)';

		for (const [name, room, want] of [
			[method, 200, method],
			[method, 50, 'acme::storage::Cache<…>::insert_entry(…)'],
			[method, 30, 'acme::storag…::insert_entry(…)'],
			[method, 14, '…insert_entry'],
			[method, 8, 'inse…try'],
			['std::map<K, V>::operator[](K const&)', 20,
				'std…::operator[](…)'],
			['a::operator<(int, long)', 15, 'a::operator<(…)'],
			['a::operator()(int, long) const', 24,
				'a::operator()(…) const'],
			['(anonymous namespace)::f(int, long)', 30,
				'(anonymous namespace)::f(…)'],
			['<Vec<Thing> as core::iter::Extend<Thing>>::extend', 42,
				'<Vec<…> as core::iter::Extend<…>>::extend'],
			['__libc_start_call_main', 9, '__li…main'],
			['f(int', 4, 'f(…t'],
			['a<b::c', 4, '…c'],
			['main', 2, ''],
			['py::<module> [in app.py]', 23, '…<module> [in app.py]'],
			['f.<locals>.<genexpr> [in a.py]', 26,
				'f.<locals>.<g…r> [in a.py]'],
		]) {
			assert.equal(page.shorten(name, room), want, `${room}`);
			checks++;
		}
		// Whatever a name has in it, it fits.
		const next = random(13), parts = ['<', '>', '(', ')', '::', 'f', '->',
			'operator', ' ', '{lambda()#1}', '…'];
		for (let round = 0; round < 2000; round++) {
			const name = Array.from({length: next(20)},
				() => parts[next(parts.length)]).join('');
			const room = next(30), short = page.shorten(name, room);

			assert.ok(short.length <= room, `${name} in ${room}: ${short}`);
			checks++;
		}
		assert.ok(page.shorten('<'.repeat(1e6), 40).length <= 40);
		// Two are never shown as one; the same one again is.
		const alike = ['call<run()::{lambda()#1}>::get', 'call<b, c>::get',
			'std::find<int>', 'call<run()::{lambda()#1}>::get'];
		assert.deepEqual(page.shortenAll(alike, 14),
			[alike[0], alike[1], 'std::find<int>', alike[0]]);
		assert.deepEqual(page.shortenAll([alike[0], alike[2], alike[0]], 14),
			['call<…>::get', 'std::find<int>', 'call<…>::get']);
	},

	axis() {
		for (const [least, want] of [[1, 1], [3, 5], [1.2e9, 2e9],
			[11e9, 15e9], [31e9, 60e9], [7 * 60e9, 600e9],
			[2e12, 3600e9], [5 * 3600e9, 6 * 3600e9],
			[13 * 3600e9, 24 * 3600e9], [30 * 3600e9, 48 * 3600e9]])
			assert.equal(page.niceTime(least), want);
		for (const [ns, last, want] of [[0, 1e9, '0'], [2e8, 1.1e9, '0.2 s'],
			[3e8, 3e8, '300 ms'], [120e9, 900e9, '2 min'],
			[5400e9, 3 * 3600e9, '1.5 h'], [150, 400, '150 ns']])
			assert.equal(page.tickText(ns, last), want);
		checks++;
	},

	// The very cases of test_text.c.
	times() {
		const text = fs.readFileSync(path.join(root, 'tests', 'unit', 'text',
			'test_text.c'), 'utf8');

		for (const name of ['moment', 'duration']) {
			const [, body] = text.match(new RegExp(
				`TEST\\(${name}\\)\n([^]*?)\n}\n`));
			const cases = [...body.matchAll(
				/[{(]([0-9]+)( [*] s)?(?:[)][.]text)?,\s*"(.*?)"[)}]/g)];

			assert.ok(cases.length > 11, name);
			for (const [, ns, of, want] of cases)
				assert.equal(page[name](ns * (of ? 1e9 : 1)), want);
			checks += cases.length;
		}
	},

	// From the one that allocates outwards, whichever way the graph goes.
	stacks() {
		const functions = ['main', 'f', 'g'].map((name) =>
			({name, module: '/bin/p', place: ''}));
		const tree = (path) => page.buildTree([0],
			(_, visit) => path.forEach(visit), [1]);
		const of = (path, node, ways) => page.stackOf({functions},
			{layer: new page.Layer(tree(path), {}, ways), node});

		assert.equal(of([0, 1, 2], 3), 'g  (p)\nf  (p)\nmain  (p)');
		assert.equal(of([0, 1, 2], 2), 'f  (p)\nmain  (p)');
		assert.equal(of([2, 1, 0], 2, {isCallers: true}), 'g  (p)\nf  (p)');
		assert.equal(of([2, 1, 0], 3, {goesUp: true}),
			'g  (p)\nf  (p)\nmain  (p)');
		assert.equal(of([0, 1, 2], ~2), 'f  (p)\nmain  (p)');
		checks++;
	},

	openings() {
		const of = (change) => page.Model.prototype.chooseOpening.call({
			data: {has_frees: true, alloc_bytes: {value: 1000},
				live_bytes: {value: 1, lo: 0}, peak_bytes: {value: 10},
				timeline: [[0, 0, 0, 0, 9], [0, 0, 50, 40, 60],
					[0, 0, 0, 0, 0]], ...change},
			shareOf: () => change.temporary ?? 0,
		});

		assert.equal(of({}), 'alloc');
		assert.equal(of({temporary: 0.6}), 'temporary');
		assert.equal(of({has_frees: false, live_bytes: null}), 'alloc');
		assert.equal(of({peak_bytes: {value: 300}}), 'peak');
		const grown = {live_bytes: {value: 90, lo: 80}};
		assert.equal(of({...grown, peak_bytes: {value: 100}}), 'live');
		assert.equal(of({...grown, peak_bytes: {value: 300}}), 'peak');
		assert.equal(of({live_bytes: {value: 90, lo: 67},
			peak_bytes: {value: 100}}), 'live');
		assert.equal(of({live_bytes: {value: 90, lo: 64},
			peak_bytes: {value: 100}}), 'peak', 'it may have stayed');
		checks++;
	},

	keys() {
		const {tree, model} = randomTree(random(3), 100);
		const {est} = page.sumTree(tree, model);

		for (let n = 1; n < tree.n; n++) {
			assert.equal(page.neighbour(tree, est, n, 'out'),
				tree.parent[n]);
			const down = page.neighbour(tree, est, n, 'in');
			assert.ok(down === n || tree.parent[down] === n);
			const after = page.neighbour(tree, est, n, 'after');
			if (after !== n)
				assert.equal(page.neighbour(tree, est, after, 'before'), n);
			checks++;
		}
	},

	texts() {
		const e = {lo: 466000, hi: 565000, value: 5e5, samples: 9};

		assert.equal(page.amount(0, false), '0');
		assert.equal(page.amount(1064, false), '1.04 KiB');
		assert.equal(page.amount(210.2 * 2 ** 20, false), '210.2 MiB');
		assert.equal(page.amount(5912331, true), '5.91 M');
		assert.equal(page.interval(e, false), '[455, 552] KiB');
		assert.equal(page.interval({lo: 5, hi: 5}, false), 'exact');
		// as unit.text has it of C: a half to the even digit, limits
		// outwards but for the noise of a sum
		assert.equal(page.amount(1.035 * 1024, false), '1.04 KiB');
		assert.equal(page.amount(1.045 * 1024, false), '1.04 KiB');
		assert.equal(page.interval({lo: 144 * 2 ** 20 * (1 - 1e-13),
			hi: 148 * 2 ** 20 * (1 + 1e-13)}, false), '[144, 148] MiB');
		assert.equal(page.interval({lo: 144 * 2 ** 20 * (1 - 1e-6),
			hi: 148 * 2 ** 20 * (1 + 1e-6)}, false), '[143, 149] MiB');
		assert.equal(page.percent(1, 16), '6.2 %');
		assert.equal(page.percent(6, 10000), '0.1 %');
		assert.equal(page.percent(0, 1), '0 %');
		assert.deepEqual(page.estimateText({...e, samples: 2}, false),
			['[455, 552] KiB', '~488.3 KiB']);
		assert.deepEqual(page.estimateText({...e, samples: 0}, false),
			['\u2264 552 KiB', '']);
		assert.equal(page.percent(1, 5000), '<0.1 %');
		assert.equal(page.visible('a\u202e\u001b[2Jb\n'),
			'a\\u202e\\u001b[2Jb\\u000a');
		assert.equal(page.niceStep(1500, false), 2048);
		checks++;
	},

	normal() {
		for (const [p, t] of Object.entries(NORMAL)) {
			close(page.normalQuantile(Number(p)), -t, 1e-13, `t ${p}`);
			close(page.normalQuantile(1 - p), t, 1e-12, `t 1 - ${p}`);
		}
		assert.equal(page.normalQuantile(0.5), 0);
		// Of tails that R's qnorm() has, too.
		close(page.normalQuantile(0.4), -0.2533471031357997, 1e-13, '0.4');
		close(page.normalQuantile(1e-6), -4.753424308822899, 1e-13, '1e-6');
		close(page.normalQuantile(1e-12), -7.034483825301131, 1e-13, '1e-12');
	},

	// Distances add up as squares, each on the side on which it counts.
	changes() {
		const c = page.changeOf({value: 10, lo: 7, hi: 14},
			{value: 20, lo: 17, hi: 32});

		assert.deepEqual(c, {value: 10, lo: 5, hi: 10 + Math.hypot(12, 3)});
		checks++;
	},

	// Against the procedure as it is published: p-values in order.
	discoveries() {
		const next = random(11);

		for (let round = 0; round < 300; round++) {
			const n = 1 + next(40), q = [0.05, 0.2, 0.5][round % 3];
			const p = Array.from({length: n}, () =>
				next(1000) ** 2 / 1e6 * (next(3) ? 1 : 0.1));
			const sorted = [...p].sort((a, b) => a - b);
			const last = sorted.findLastIndex(
				(x, i) => x <= q * (i + 1) / n);
			const want = [...p.keys()].filter(
				(i) => last >= 0 && p[i] <= sorted[last]);
			const {told} = page.falseDiscoveries(n,
				(i, level) => p[i] <= 2 * level.half, q);

			assert.deepEqual(told, want, `round ${round}`);
			checks++;
		}
		assert.deepEqual(page.falseDiscoveries(0, null, 0.05).told, []);
	},

	joined() {
		for (let round = 0; round < 40; round++)
			checkJoined(random(100 + round), 1 + round);
	},

	// The trees of own functions are those of the paths without the others.
	own() {
		for (let round = 0; round < 40; round++)
			checkOwn(random(500 + round), 30);
	},

	signs() {
		assert.equal(page.signed(1228.8, false), '+1.20 KiB');
		assert.equal(page.signed(-5e6, true), '−5.00 M');
		assert.equal(page.signed(0, false), '0');
		assert.equal(page.signedInterval({lo: -1025, hi: 1025}, false),
			'[−1.01, +1.01] KiB');
		assert.equal(page.signedInterval({lo: -(2 ** 20), hi: 1025}, false),
			'[−1.00 MiB, +1.01 KiB]');
		assert.equal(page.signedInterval({lo: 1034, hi: 1034}, false),
			'exact');
		assert.equal(page.signedInterval({lo: 1024, hi: Infinity}, false),
			'at least +1.00 KiB');
		assert.equal(page.signedInterval({lo: -Infinity, hi: -1025}, true),
			'at most −1,025');
		assert.equal(page.signedPercent(0, 5), 'new');
		assert.equal(page.signedPercent(5, 0), 'gone');
		assert.equal(page.signedPercent(200, 199), '−0.50 %');
		assert.equal(page.signedPercent(1e6, 999999), '<0.01 %');
		assert.equal(page.signedPercent(1, 21), '+2000 %');
		for (const size of EDGES) {
			for (const x of [size, -size]) {
				const about = {lo: x - size / 4, hi: x + size / 4};

				for (const ofObjects of [false, true]) {
					isPlain(page.signed(x, ofObjects));
					isPlain(page.amount(x, ofObjects));
					isPlain(page.signedInterval(about, ofObjects));
				}
				isPlain(page.signedPercent(1, 1 + x));
				isPlain(page.percent(Math.min(x, 1), 1));
			}
		}
	},

	// Whatever the address says, the state is one that there is.
	states() {
		const model = {bins: 200, views: ['alloc'], opening: 'alloc',
			functions: [1, 2]};
		const s = {...page.readState('', model), from: 3, to: 9,
			search: 'a&b=<c>', focus: 1, inverted: true};

		assert.equal(page.writeState(page.readState('', model), model), '');
		assert.deepEqual(page.readState(page.writeState(s, model), model), s);
		for (const text of ['view=live', 'from=9&to=3', 'to=201', 'focus=2',
			'node=-1', 'node=1.5', 'metric=__proto__', 'from=NaN', '%%%']) {
			const {from, to, view, focus, node} = page.readState(text, model);

			assert.ok(from >= 0 && from < to && to <= 200, text);
			assert.ok(view === 'alloc' && focus < 2 && node === 0, text);
			checks++;
		}
	},
};

function checkOwn(next, n) {
	const stacks = Array.from({length: n}, () => Array.from(
		{length: 1 + next(6)}, () => [next(5), next(2)]));
	const start = [0], flat = stacks.map((stack) => {
		start.push(start[start.length - 1] + stack.length);
		const at = next(stack.length);

		stack.forEach((frame, i) => {
			if (i >= at)
				frame[1] = i > at ? 1 : 0;
		});
		return at;
	});
	const frames = stacks.flat();
	const model = {
		allPaths: Int32Array.from(stacks.keys()),
		pathsWith: (f) => Int32Array.from([...stacks.keys()].filter(
			(p) => stacks[p].some(([g]) => g === f))),
		paths: {start: Int32Array.from(start),
			frames: Int32Array.from(frames, ([f]) => f),
			foreign: Uint8Array.from(frames, ([, is]) => is),
			flatAt: Int32Array.from(flat, (at, p) => start[p] + at)},
	};
	const weights = new Float64Array(n).fill(1);
	const leaves = (tree) => {
		const found = [];

		for (let node = 0; node < tree.n; node++) {
			const names = [];

			for (let up = node; up > 0; up = tree.parent[up])
				names.unshift(tree.fn[up]);
			for (let i = tree.own[node]; i < tree.own[node + 1]; i++)
				found[tree.order[i]] = names.join();
		}
		return found;
	};
	const want = (of) => stacks.map((stack, p) =>
		of(stack, p).map(([f]) => f).join());

	for (const own of [false, true]) {
		const isShown = ([, is]) => !own || !is;

		assert.deepEqual(leaves(page.treeOfCalls(model, weights, own)),
			want((stack) => stack.filter(isShown)));
		assert.deepEqual(leaves(page.treeOfCallers(model, weights, own)),
			want((stack, p) => stack.slice(0, flat[p] + 1).reverse()
				.filter(isShown)));
		const [callers, callees] = page.treesAround(model, 2, weights, own);
		const at = (stack) => stack.findIndex(([f]) => f === 2);
		const isWith = (_, p) => stacks[p].some(([f]) => f === 2);
		const kept = (i) => (frame, k) => k === i || isShown(frame);

		assert.deepEqual(leaves(callers).filter(isWith), want((stack) =>
			stack.slice(0, at(stack) + 1).reverse().filter(kept(0)))
			.filter(isWith));
		assert.deepEqual(leaves(callees).filter(isWith), want((stack) =>
			stack.slice(at(stack)).filter(kept(0))).filter(isWith));
		checks++;
	}
}

function randomTree(next, n) {
	const paths = Array.from({length: n}, () =>
		Array.from({length: 1 + next(6)}, () => next(4)));
	const all = Int32Array.from(paths.keys());
	const model = {
		summed: ['est', 'seen', 'samples'],
		est: Float64Array.from(paths, () => 1 + next(1000)),
		seen: new Float64Array(n), samples: new Float64Array(n).fill(1),
	};
	const tree = page.buildTree(all, (p, visit) => paths[p].forEach(visit),
		model.est);

	return {paths, model, tree};
}

// What is below a place and has none of its own is less than a frame.
function checkShared(layer, place, least) {
	const {tree, sums: {est}, rows} = layer;

	if (page.isGathered(place)) {
		const nodes = layer.gathered(place);

		assert.equal(nodes.length, layer.counts.get(place));
		assert.ok(nodes.every((n) => est[n] < least &&
			tree.parent[n] === ~place));
		assert.equal(layer.sumOf('est', place),
			nodes.reduce((sum, n) => sum + est[n], 0));
		assert.equal(layer.pathsOf(place).length,
			layer.sumOf('samples', place));
		checks++;
		return;
	}
	const below = rows[tree.depth[place] + 1].filter((n, i) => i % 3 === 2 &&
		(page.isGathered(n) ? ~n : tree.parent[n]) === place);
	let all = 0;
	for (let c = place + 1; c < tree.end[place]; c = tree.end[c])
		all += est[c];
	assert.ok(all - below.reduce((sum, n) => sum + layer.sumOf('est', n), 0) <
		least + 1e-9, 'more is lost than a frame');
	checks++;
}

// A side as export/html.c would write it, with functions of its own numbers.
function randomSide(next, n, moduleOfProgram) {
	const names = ['main', 'f', 'g', 'h', 'lib.so+0x10', 'lib.so+0x20'];
	const order = names.map((_, i) => i);

	for (let i = order.length - 1; i > 0; i--) {
		const j = next(i + 1);

		[order[i], order[j]] = [order[j], order[i]];
	}
	const functions = order.map((i) => ({name: names[i], place: '',
		module: i < 4 ? moduleOfProgram : `/${moduleOfProgram}/lib.so`}));
	const stacks = Array.from({length: n}, () =>
		Array.from({length: 1 + next(7)}, () => next(names.length)));
	const start = [0], flatAt = stacks.map(
		(stack) => start.push(start[start.length - 1] + stack.length) &&
			start[start.length - 2] + next(stack.length));
	const cellStart = [0];

	for (let p = 0; p < n; p++)
		cellStart.push(cellStart[p] + next(3));
	const total = cellStart[n];
	const column = (of) => Array.from({length: total}, of);
	return {
		stacks, flatAt: flatAt.map((at, p) => at - start[p]), functions,
		side: {
			data: {main_module: moduleOfProgram,
				unnamed: [...functions.keys()].filter(
					(f) => functions[f].name.includes('+'))},
			code: {
				functions,
				paths: {start: Int32Array.from(start),
					frames: Int32Array.from(stacks.flat()),
					foreign: new Uint8Array(stacks.flat().length),
					flatAt: Int32Array.from(flatAt)},
				cells: {start: Int32Array.from(cellStart),
					kind: Int32Array.from(column((_, i) => i)),
					born: new Uint8Array(total),
					freed: new Uint8Array(total),
					flags: new Uint8Array(total),
					count: Float64Array.from(column(() => 1))},
			},
		},
	};
}

// What a path is to a reader: names, once each in a row, and where it is flat.
function textOf(stack, flat, nameOf) {
	const kept = [];
	let at = 0;

	stack.forEach((f, i) => {
		if (!i || nameOf(stack[i - 1]) !== nameOf(f))
			kept.push(nameOf(f));
		if (i === flat)
			at = kept.length;
	});
	return `${kept.join(' ')} @${at}`;
}

function checkJoined(next, n) {
	const given = [randomSide(next, n, '/bin/new'), randomSide(next, n, 'old')];
	const sides = given.map(({side}) => side);
	const {functions, numbers} = page.joinFunctions(sides);
	const {paths, places} = page.joinPaths(sides, numbers);
	const nPaths = paths.flatAt.length, texts = new Set();

	assert.ok(functions.length <= 5);
	given.forEach(({stacks, flatAt, functions: own, side}, s) => {
		const nameOf = (f) => own[f].name.includes('+') ? '[unknown]'
			: own[f].name;
		const cells = page.moveCells(side.code.cells, places[s], nPaths);
		const where = new Map();

		for (let p = 0; p < nPaths; p++)
			for (let c = cells.start[p]; c < cells.start[p + 1]; c++)
				where.set(cells.kind[c], p);
		assert.equal(where.size, side.code.cells.kind.length);
		stacks.forEach((stack, p) => {
			const to = places[s][p];
			const joint = [...paths.frames.subarray(paths.start[to],
				paths.start[to + 1])];
			const text = textOf(stack, flatAt[p], nameOf);

			assert.equal(`${joint.map((f) => functions[f].name).join(' ')} @${
				paths.flatAt[to] - paths.start[to] + 1}`, text);
			texts.add(text);
			for (let c = side.code.cells.start[p];
			     c < side.code.cells.start[p + 1]; c++)
				assert.equal(where.get(c), to);
			checks++;
		});
	});
	assert.equal(nPaths, texts.size, 'each path once');
}

// Against sums by prefix.
function checkTree(next, n) {
	const {paths, model, tree} = randomTree(next, n);
	const want = new Map();

	paths.forEach((frames, p) => {
		for (let k = 0; k <= frames.length; k++) {
			const key = frames.slice(0, k).join();
			const sum = want.get(key) || {est: 0, samples: 0};

			sum.est += model.est[p];
			sum.samples++;
			want.set(key, sum);
		}
	});
	const sums = page.sumTree(tree, model);
	assert.equal(tree.n, want.size);
	for (let node = 0; node < tree.n; node++) {
		const frames = [];

		for (let up = node; up > 0; up = tree.parent[up])
			frames.unshift(tree.fn[up]);
		const sum = want.get(frames.join());
		assert.ok(sum, `a node that is no prefix: ${frames}`);
		assert.equal(sums.est[node], sum.est);
		assert.equal(sums.samples[node], sum.samples);
		assert.equal(page.pathsOfNode(tree, node).length, sum.samples);
		for (const p of page.pathsOfNode(tree, node))
			assert.deepEqual(paths[p].slice(0, frames.length), frames);
		let before = Infinity;
		for (let c = node + 1; c < tree.end[node]; c = tree.end[c]) {
			assert.equal(tree.parent[c], node);
			assert.ok(sums.est[c] <= before, 'heaviest first');
			before = sums.est[c];
		}
		checks++;
	}
}

for (const [name, test] of Object.entries(tests)) {
	test();
	console.log(`ok ${name}`);
}
assert.ok(checks > 1000, `only ${checks} checks`);
