// SPDX-License-Identifier: MIT
//
// Puts the parts together: a change of the state goes into the address, and
// whatever is in the address is shown.

// What can be shown, by name: of two profiles their difference and each one,
// with the same functions and paths; of one that one.
function modelsOf(data) {
	if (!data.base)
		return {'': new Model(data)};
	const pair = joinPair(data, data.base), [older, newer] = pair.sides;
	return {diff: pair, new: newer, old: older};
}

class App {
	constructor(data) {
		this.data = data;
		this.models = modelsOf(data);
		this.sides = Object.keys(this.models);
		const model = this.model = this.models[this.sides[0]];

		model.choose({view: 'alloc', ofObjects: false, from: 0,
			to: model.bins});
		this.weights = model.weights.slice();
		this.trees = new Map();
		this.flame = new Flame(byId('flame'), model, {
			hover: (layer, node, e) => this.hover(layer, node, e),
			leave: () => { byId('tip').hidden = true; },
			zoom: (layer, node) => this.go({layer, node}),
			focus: (focus) => this.go({focus, layer: 0, node: 0}),
		});
		this.timeline = new Timeline(byId('timeline'), model.isPair
			? this.models.new : model, {
			window: (from, to) => this.go({from, to}),
			hover: (e, edge) => this.hoverTime(e, edge),
		});
		this.makeTables(model);
		this.modules = giveColours(model);
		this.wire();
		window.addEventListener('hashchange', () => this.show());
		this.show();
	}

	makeTables(model) {
		const on = {
			focus: (focus) => {
				this.go({focus, layer: 0, node: 0});
				byId('flame').scrollIntoView({block: 'nearest'});
			},
			sort: (key) => this.go({
				sort: key,
				descending: this.state.sort === key
					? !this.state.descending : key !== 'name',
			}),
		};

		this.table = new FunctionTable(byId('functions'), model, on);
		if (model.isPair)
			this.changes = new ChangeTable(byId('changes'), model, on);
	}

	// ---- state ----

	write(state) {
		return writeState(state, this.models[state.side], this.sides);
	}

	go(change) {
		const next = this.write({...this.state, ...change});

		if (next !== this.write(this.state))
			location.hash = next;
	}

	// Without a step back for each letter.
	replace(change) {
		history.replaceState(null, '', '#' +
			this.write({...this.state, ...change}));
		this.show();
	}

	show() {
		const hash = location.hash.slice(1), old = this.state;
		const model = this.models[sideOf(hash, this.sides)];
		const s = this.state = readState(hash, model, this.sides);
		const has = (...keys) => !old || keys.some((k) => s[k] !== old[k]);
		const isNewChoice = has('side', 'view', 'metric', 'from', 'to');
		const isNewSearch = has('search');

		if (has('side'))
			this.use(model);
		if (isNewChoice)
			model.choose({view: s.view, ofObjects: s.metric === 'objects',
				from: s.from, to: s.to});
		if (isNewSearch)
			this.search(s.search);
		if (isNewChoice || isNewSearch ||
		    has('inverted', 'focus', 'layer', 'node'))
			this.showFlame();
		if (!model.isPair && has('side', 'from', 'to', 'metric'))
			this.timeline.show(s.from, s.to, s.metric === 'objects');
		this.showControls();
		if (isNewChoice || isNewSearch || has('sort', 'descending'))
			this.later();
		// For tests: an address is not shown at once.
		document.body.dataset.shown = hash;
	}

	// Show another side from now on, from its head to its notes.
	use(model) {
		const {data} = model, {base} = this.data;

		this.model = this.flame.model = this.table.model = model;
		document.body.classList.toggle('pair', model.isPair);
		if (model.isPair) {
			showPairRun(base, data);
			showPairCards(byId('cards'), base, data);
			showPairNotes(base, data, model);
			this.showSwatches(CHANGE_SWATCHES);
			return;
		}
		this.timeline.use(model);
		showRun(data);
		showCards(byId('cards'), data);
		showNotes(data);
		this.showModules(this.modules);
	}

	// Tables after the picture, and once for many changes.
	later() {
		document.body.dataset.state = 'busy';
		clearTimeout(this.timer);
		this.timer = setTimeout(() => {
			const {sort, descending} = this.state, {model} = this;
			const table = model.isPair ? this.changes : this.table;

			table.show(this.matches, {key: sort, descending});
			if (!model.isPair)
				showSizes(byId('sizes'), model);
			document.body.dataset.state = 'ready';
			performance.mark('ready');
		}, 30);
	}

	// ---- flame graph ----

	tree(key, make) {
		if (!this.trees.has(key))
			this.trees.set(key, make());
		return this.trees.get(key);
	}

	layers() {
		const {model, weights, state} = this;
		const layer = (tree, goesUp) => {
			const sums = sumTree(tree, model);

			return new Layer(tree, sums, goesUp, model.isPair
				? new Verdicts(model, tree, sums) : null);
		};

		if (state.focus >= 0) {
			if (this.around !== state.focus)
				this.trees.set('around', treesAround(model, state.focus,
					weights));
			this.around = state.focus;
			const [callers, callees] = this.trees.get('around');
			return [layer(callers, true), layer(callees, false)];
		}
		if (state.inverted)
			return [layer(this.tree('callers',
				() => treeOfCallers(model, weights)), false)];
		return [layer(this.tree('calls',
			() => treeOfCalls(model, weights)), false)];
	}

	showFlame() {
		const layers = this.layers(), {layer, node, focus} = this.state;
		const zoomed = layers[Math.min(layer, layers.length - 1)];

		for (const l of layers)
			l.zoom = l.tree.n > 1 && focus >= 0 ? 1 : 0;
		if (node < zoomed.tree.n && node >= zoomed.zoom)
			zoomed.zoom = node;
		this.flame.show(layers, this.matches);
		if (focus >= 0)
			this.flame.centre();
	}

	// What is said of a frame: as a tooltip, and below the graph.
	describeNode(layer, node) {
		const {tree} = layer, {model} = this, {ofObjects} = model.choice;
		const f = tree.fn[node];

		if (model.isPair)
			return {f, lines: changeLines({
				...model.compare(pathsOfNode(tree, node)),
				...layer.verdicts.of(node),
			}, ofObjects, model.data.confidence)};
		const e = model.estimate(pathsOfNode(tree, node));
		const whole = model.estimate(model.allPaths);
		const [first, second] = estimateText(e, ofObjects);
		const {est, seen, samples} = layer.sums;
		const lines = [];

		lines.push(['figure', `${first} ${ofObjects ? 'objects' : ''}`]);
		if (second)
			lines.push(['interval',
				`${level95(model.data.confidence)}: ${second}`]);
		lines.push(['share', `${percent(e.value, whole.value)} of the view`]);
		lines.push(['samples', plural(e.samples, 'sample')]);
		if (isFaint(est[node], seen[node], samples[node]))
			lines.push(['faint', 'hardly to be told from nothing']);
		return {f, lines};
	}

	hover(layer, node, event) {
		const tip = byId('tip'), {f, lines} = this.describeNode(layer, node);
		const fn = f < 0 ? {name: 'all', module: '', place: ''}
			: this.model.functions[f];
		const where = [fn.module && baseName(fn.module), fn.place]
			.filter(Boolean).join(' · ');

		tip.replaceChildren(
			element('strong', null, visible(fn.name)),
			element('span', {class: 'where'}, visible(where)),
			element('div', {class: 'figures'}, ...lines.map(
				([kind, text]) => element('span', {class: kind}, text))));
		tip.hidden = false;
		placeTip(tip, event);
	}

	hoverTime(event, edge) {
		const tip = byId('tip'), {series, points, ofObjects} = this.timeline;

		if (!event || !series) {
			tip.hidden = true;
			return;
		}
		const i = Math.min(edge, series.length - 1);
		const isByBin = this.timeline.isByBin;
		const e = {...series[i],
			samples: isByBin ? Infinity : points[i][1]};
		const [first, second] = estimateText(e, ofObjects);
		tip.replaceChildren(
			element('strong', null, moment(points[edge][0])),
			element('div', {class: 'figures'},
				element('span', {class: 'figure'}, `${first} ` +
					(isByBin ? 'allocated' : 'alive')),
				element('span', {class: 'interval'}, second),
				isByBin ? '' : element('span', {class: 'samples'},
					plural(e.samples, 'sample')),
				points[i][RSS] === null || ofObjects ? ''
					: element('span', {class: 'rss'},
						`RSS ${amount(points[i][RSS], false)}`)));
		tip.hidden = false;
		placeTip(tip, event);
	}

	// ---- search ----

	search(text) {
		const {model} = this;
		let pattern;

		this.matches = null;
		byId('search').removeAttribute('aria-invalid');
		if (!text)
			return;
		try {
			pattern = new RegExp(text, /[A-Z]/.test(text) ? 'u' : 'iu');
		} catch {
			byId('search').setAttribute('aria-invalid', 'true');
			return;
		}
		this.matches = Uint8Array.from(model.functions,
			({name}) => pattern.test(name) ? 1 : 0);
	}

	describeMatches() {
		const {model, matches, state} = this;

		if (!state.search)
			return '';
		if (!matches)
			return 'not a regular expression';
		const {start, frames} = model.paths;
		const paths = model.allPaths.filter((p) => {
			for (let i = start[p]; i < start[p + 1]; i++)
				if (matches[frames[i]])
					return true;
			return false;
		});
		if (model.isPair)
			return 'matched: ' + this.describeChange(paths);
		const e = model.estimate(paths);
		const whole = model.estimate(model.allPaths);
		const [first, second] = estimateText(e, model.choice.ofObjects);
		return `${percent(e.value, whole.value)} matched: ${first} ${second}`;
	}

	// Of a pair, in one line.
	describeChange(paths) {
		const {model} = this, row = model.compare(paths);

		row.isTold = isNotZero(row.change);
		return changeLines(row, model.choice.ofObjects,
			model.data.confidence).map(([, text]) => text).join(' · ');
	}

	// ---- controls ----

	wire() {
		const search = byId('search');
		const views = byId('views');

		byId('sides').hidden = this.sides.length === 1;
		byId('sides').addEventListener('click', (e) => {
			const {side} = e.target.dataset;

			if (side)
				this.go({side, from: 0, to: this.models[side].bins,
					view: this.models[side].views.includes(
						this.state.view) ? this.state.view : 'alloc'});
		});

		for (const view of Object.keys(VIEW_NAMES).filter((v) =>
			Object.values(this.models).some((m) => m.views.includes(v))))
			views.append(element('button', {
				type: 'button', 'data-view': view,
			}, VIEW_NAMES[view]));
		views.addEventListener('click', (e) => {
			if (e.target.dataset.view)
				this.go({view: e.target.dataset.view});
		});
		byId('metrics').addEventListener('click', (e) => {
			if (e.target.dataset.metric)
				this.go({metric: e.target.dataset.metric});
		});
		search.addEventListener('input', () => {
			clearTimeout(this.searchTimer);
			this.searchTimer = setTimeout(
				() => this.replace({search: search.value}), 120);
		});
		byId('invert').addEventListener('click', () => this.invert());
		byId('reset').addEventListener('click', () => this.reset());
		byId('whole').addEventListener('click',
			() => this.go({from: 0, to: this.model.bins}));
		byId('theme').addEventListener('click', () => this.turnTheme());
		byId('help').addEventListener('click',
			() => byId('keys').showModal());
		byId('losses').addEventListener('click',
			() => byId('below').scrollIntoView());
		document.addEventListener('keydown', (e) => this.key(e));
		matchMedia('(prefers-color-scheme: dark)').addEventListener(
			'change', () => this.repaint());
	}

	invert() {
		this.go({inverted: !this.state.inverted, focus: -1, layer: 0,
			node: 0});
	}

	reset() {
		this.go({focus: -1, layer: 0, node: 0});
	}

	// The other one than what is seen, until the page is closed.
	turnTheme() {
		const root = document.documentElement;
		const isDark = getComputedStyle(root)
			.getPropertyValue('color-scheme').trim() === 'dark';

		root.dataset.theme = isDark ? 'light' : 'dark';
		this.repaint();
	}

	repaint() {
		this.flame.resize();
		if (!this.model.isPair)
			this.timeline.draw();
	}

	key(event) {
		const isTyping = event.target.closest('input, dialog');
		const {state, model} = this;
		const moves = {ArrowUp: 'out', ArrowDown: 'in', ArrowLeft: 'before',
			ArrowRight: 'after'};

		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key === 'Escape' && !event.target.closest('dialog')) {
			byId('search').blur();
			if (state.focus >= 0 || state.node)
				this.reset();
			else if (isTyping)
				this.replace({search: ''});
			return;
		}
		if (isTyping)
			return;
		const onFlame = event.target.closest('#flame');
		if (onFlame && moves[event.key]) {
			event.preventDefault();
			this.select(this.flame.move(moves[event.key]));
			return;
		}
		if (onFlame && this.flame.selected)
			this.actOn(this.flame.selected, event.key);
		const view = model.views[Number(event.key) - 1];
		if (view)
			this.go({view});
		const act = {
			'/': () => byId('search').focus(), i: () => this.invert(),
			m: () => this.go({metric: state.metric === 'bytes'
				? 'objects' : 'bytes'}),
			d: () => this.turnTheme(), '?': () => byId('keys').showModal(),
			w: () => this.go({from: 0, to: model.bins}),
		}[event.key];
		if (act) {
			event.preventDefault();
			act();
		}
	}

	actOn({layer, node}, key) {
		const f = layer.tree.fn[node];

		if (key === 'Enter')
			this.go({layer: this.flame.layers.indexOf(layer), node});
		if (key === 's' && f >= 0)
			this.go({focus: f, layer: 0, node: 0});
	}

	select({layer, node}) {
		const {f, lines} = this.describeNode(layer, node);

		byId('status').textContent = (f < 0 ? 'all'
			: visible(this.model.functions[f].name)) + ': ' +
			lines.map(([, text]) => text).join(' · ');
	}

	showControls() {
		const {state, model} = this;
		const press = (e, is) => e.setAttribute('aria-pressed', is);

		for (const b of byId('views').children)
			press(b, b.dataset.view === state.view);
		for (const b of byId('metrics').children)
			press(b, b.dataset.metric === state.metric);
		for (const b of byId('sides').children)
			press(b, b.dataset.side === state.side);
		for (const b of byId('views').children)
			b.hidden = !model.views.includes(b.dataset.view);
		press(byId('invert'), state.inverted);
		byId('reset').disabled = state.focus < 0 && !state.node;
		byId('whole').hidden = state.from === 0 && state.to === model.bins;
		if (document.activeElement !== byId('search'))
			byId('search').value = state.search;
		byId('matched').textContent = this.describeMatches();
		this.showChoice();
	}

	showChoice() {
		const {state, model} = this;

		if (model.isPair)
			byId('chosen').textContent =
				`${this.describeChange(model.allPaths)} · ` +
				PAIR_VIEWS[state.view];
		else
			this.showWhole();
		byId('around').textContent = '';
		if (state.focus >= 0) {
			let samples = 0;

			for (const p of model.pathsWith(state.focus))
				samples += model.samples[p];
			byId('around').textContent =
				'Callers (above) and callees of ' +
				visible(model.functions[state.focus].name) +
				(samples ? '' : ': no sample in this view');
		}
		byId('status').textContent = '';
	}

	showWhole() {
		const {state, model} = this;
		const whole = model.estimate(model.allPaths);
		const [first, second] = estimateText(whole, model.choice.ofObjects);

		byId('chosen').replaceChildren(
			element('b', null, first +
				(model.choice.ofObjects ? ' objects' : '')),
			` ${second} · ${plural(whole.samples, 'sample')} · ` +
			describeChoice(model.data, state, model.bins));
	}

	showModules(modules) {
		byId('legend').replaceChildren(...modules.map((module, i) => {
			const swatch = element('i', {'aria-hidden': 'true'});

			swatch.style.setProperty('--hue', HUES[i]);
			return element('span', {title: visible(module)}, swatch,
				visible(baseName(module)));
		}), element('span', {class: 'faint-key'},
			element('i', {'aria-hidden': 'true'}),
			'faded: hardly to be told from nothing'));
	}

	// [class, text]...
	showSwatches(swatches) {
		byId('legend').replaceChildren(...swatches.map(([kind, text]) =>
			element('span', {class: kind},
				element('i', {'aria-hidden': 'true'}), text)));
	}
}

const CHANGE_SWATCHES = [
	['grew-key', '▲ grew'], ['shrank-key', '▼ shrank'],
	['pale-key', 'pale: as much up as down, or not to be told from noise'],
];

const PAIR_VIEWS = {
	alloc: 'everything that was allocated', live: 'alive at the end',
	peak: 'alive at the peak of each',
	leaks: 'alive at the end, and older than 10 % of the run',
	temporary: 'freed before its thread allocated anything else',
};

const VIEW_NAMES = {
	alloc: 'Allocated', live: 'Live', peak: 'Peak', leaks: 'Leaks',
	temporary: 'Temporary',
};

// Beside the pointer, and inside of the window.
function placeTip(tip, event) {
	const {clientWidth, clientHeight} = document.documentElement;
	const {offsetWidth, offsetHeight} = tip;
	const below = event.clientY + 18;

	tip.style.left = `${Math.max(Math.min(event.clientX + 12,
		clientWidth - offsetWidth - 8), 8)}px`;
	tip.style.top = `${below + offsetHeight > clientHeight
		? Math.max(event.clientY - offsetHeight - 12, 0) : below}px`;
}

function start() {
	new App(JSON.parse(byId('data').textContent));
	requestAnimationFrame(() => performance.mark('first-frame'));
}

// So that the parts can be tried without a page.
if (typeof document !== 'undefined')
	start();
