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

		// Colours go by all bytes, the order of callees by those of the
		// view that is seen first; both stay as they are.
		model.choose({view: 'alloc', ofObjects: false, from: 0,
			to: model.bins});
		this.modules = giveColours(model);
		this.weights = weightsOf(model);
		this.trees = new Map();
		this.tip = new Tip(byId('tip'));
		this.makeDrawings(model);
		this.makeTables(model);
		this.wire();
		window.addEventListener('hashchange', () => this.show());
		this.show();
	}

	makeDrawings(model) {
		const zoom = (place) => this.zoom(place);
		const focus = (f) => this.go({focus: f, layer: 0, node: 0});

		this.flame = new Flame(byId('flame'), model, {
			hover: (place, e) => this.tip.show(e,
				describePlace(this.model, place)),
			leave: () => this.tip.hide(),
			select: (place) => this.selection.show(place),
			zoom, focus,
		});
		this.selection = new Selection(byId('selection'), model,
			{zoom, focus});
		this.timeline = new Timeline(byId('timeline'), model.isPair
			? this.models.new : model, {
			window: (from, to) => this.go({from, to}),
			hover: (e, edge) => this.hoverTime(e, edge),
		});
	}

	makeTables(model) {
		const on = {
			focus: (focus) => {
				this.go({focus, layer: 0, node: 0});
				byId('graph').scrollIntoView({block: 'nearest'});
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

		this.tip.hide();
		if (has('side'))
			this.use(model);
		if (isNewChoice)
			model.choose({view: s.view, ofObjects: s.metric === 'objects',
				from: s.from, to: s.to});
		if (isNewSearch)
			this.search(s.search);
		if (isNewChoice || isNewSearch ||
		    has('inverted', 'all', 'focus', 'layer', 'node'))
			this.showFlame();
		if (!model.isPair && has('side', 'from', 'to', 'metric'))
			this.showTimeline();
		this.showControls();
		if (isNewChoice || isNewSearch || has('sort', 'descending', 'all'))
			this.later();
		// For tests: an address is not shown at once.
		document.body.dataset.shown = hash;
	}

	// Show another side from now on, from its head to its notes.
	use(model) {
		const {data} = model, {base} = this.data;

		this.model = this.flame.model = this.table.model =
			this.selection.model = model;
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
		showLedgers(byId('resident'), data);
		this.showModules(this.modules);
	}

	// Tables after the picture, and once for many changes.
	later() {
		document.body.dataset.state = 'busy';
		clearTimeout(this.timer);
		this.timer = setTimeout(() => {
			const {sort, descending, all} = this.state, {model} = this;
			const table = model.isPair ? this.changes : this.table;

			table.show(this.matches, {key: sort, descending}, all);
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
		const layer = (tree, ways) => {
			const sums = sumTree(tree, model);

			return new Layer(tree, sums, ways, model.isPair
				? new Verdicts(model, tree, sums) : null);
		};

		const own = !state.all, suffix = own ? ' own' : '';
		if (state.focus >= 0) {
			const key = state.focus + suffix;

			if (this.around !== key)
				this.trees.set('around', treesAround(model, state.focus,
					weights, own));
			this.around = key;
			const [callers, callees] = this.trees.get('around');
			return [layer(callers, {goesUp: true}), layer(callees)];
		}
		if (state.inverted)
			return [layer(this.tree('callers' + suffix,
				() => treeOfCallers(model, weights, own)),
			{isCallers: true})];
		return [layer(this.tree('calls' + suffix,
			() => treeOfCalls(model, weights, own)))];
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
		if (focus >= 0 && zoomed.tree.n > 1)
			this.flame.selected ||= {layer: layers[1], node: 1};
		this.selection.show(this.flame.selected);
	}

	// Into a place; of callees that share one into their caller.
	zoom({layer, node}) {
		this.go({layer: this.flame.layers.indexOf(layer),
			node: isGathered(node) ? callerOfGathered(node) : node});
	}

	// ---- timeline ----

	showTimeline() {
		const {from, to, metric} = this.state;

		this.timeline.show(from, to, metric === 'objects');
		byId('timeline-legend').replaceChildren(
			...this.timeline.legend.map(([kind, text]) =>
				element('span', {class: kind},
					kind ? element('i', {'aria-hidden': 'true'}) : '',
					text)));
	}

	hoverTime(event, edge) {
		const {series, points, ofObjects, isByBin} = this.timeline;

		if (!event || !series) {
			this.tip.hide();
			return;
		}
		const i = Math.min(edge, series.length - 1);
		const samples = points[i][1];
		const [first, second] = estimateText({...series[i],
			samples: isByBin ? Infinity : samples}, ofObjects);
		const lines = [['figure',
			`${first} ${isByBin ? 'allocated' : 'alive'}`],
		['interval', second]];

		if (!isByBin)
			lines.push(['samples', plural(samples, 'sample')]);
		if (points[i][RSS] !== null && !ofObjects)
			lines.push(['rss', `RSS ${amount(points[i][RSS], false)}`]);
		this.tip.show(event, {name: moment(points[edge][0]), lines});
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
		return changeLines(row, model.choice.ofObjects)
			.map(([, text]) => text).join(' · ');
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
		// Numbers of nodes are those of another tree then.
		byId('own').addEventListener('click', () => this.turnOwn());
		byId('own').hidden = this.model.isOwn.every((is) => is);
		byId('reset').addEventListener('click', () => this.reset());
		byId('svg').addEventListener('click', () => this.saveSvg());
		document.addEventListener('pointerdown', () => this.tip.hide());
		// It would stay where what it is about no longer is.
		document.addEventListener('scroll',
			() => scrollY !== this.tip.scrolled && this.tip.hide(),
			{passive: true});
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

	turnOwn() {
		this.go({all: !this.state.all, layer: 0, node: 0});
	}

	reset() {
		this.go({focus: -1, layer: 0, node: 0});
	}

	// The graph as it is seen, to keep.
	saveSvg() {
		const {model, state, flame} = this;
		const program = visible(baseName(model.data.program));
		const whole = flame.layers[flame.layers.length - 1].sums.est[0];

		saveFile(`${program.replace(/[^\w.+-]/g, '_')}-${state.view}.svg`,
			'image/svg+xml', flameSvg(flame, [
				`${program}: ${VIEW_NAMES[state.view]}`,
				[byId('chosen'), byId('around')].map(
					(e) => e.textContent).filter(Boolean).join(' · '),
			], (place) => placeTitle(model, whole, place)));
	}

	turnTheme() {
		turnTheme();
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
		if (onFlame && MOVES[0][event.key]) {
			event.preventDefault();
			this.tip.hide();
			this.flame.move(event.key);
			return;
		}
		if (this.flame.selected)
			this.selection.key(event.key);
		const view = model.views[Number(event.key) - 1];
		if (view)
			this.go({view});
		const act = {
			'/': () => byId('search').focus(), i: () => this.invert(),
			o: () => this.turnOwn(),
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
		press(byId('own'), !state.all);
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
			'faded: too few samples to be significant'));
	}

	// [class, text]...
	showSwatches(swatches) {
		byId('legend').replaceChildren(...swatches.map(([kind, text]) =>
			element('span', {class: kind},
				kind ? element('i', {'aria-hidden': 'true'}) : '',
				text)));
	}
}

const CHANGE_SWATCHES = [
	['grew-key', '▲ grew'], ['shrank-key', '▼ shrank'],
	['pale-key', 'pale: increases equal decreases, or cannot be told from noise'],
	['', 'width: what changed, increases and decreases together'],
];

const PAIR_VIEWS = {
	alloc: 'everything that was allocated', live: 'alive at the end',
	peak: 'alive at the peak of live bytes of each',
	leaks: 'alive at the end, and older than 10 % of the run',
	temporary: 'freed before its thread allocated anything else',
};

const VIEW_NAMES = {
	alloc: 'Allocated', live: 'Live', peak: 'Peak', leaks: 'Old objects',
	temporary: 'Temporary',
};

// What callees of a caller are ordered by, heaviest first: what the first view
// has, then all bytes.
function weightsOf(model) {
	const all = model.weights.slice();

	model.choose({view: model.opening, ofObjects: false, from: 0,
		to: model.bins});
	const first = model.weights;
	return all.map((weight, p) => first[p] + 1e-9 * weight);
}

function start() {
	new App(JSON.parse(byId('data').textContent));
	requestAnimationFrame(() => performance.mark('first-frame'));
}

// So that the parts can be tried without a page.
if (typeof document !== 'undefined')
	start();
