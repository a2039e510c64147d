// SPDX-License-Identifier: MIT
//
// The flame graph: an icicle on a canvas that is as large as what can be seen
// of it.  A frame is drawn if it is wide enough to be seen, so that the work is
// bounded by the screen and not by the profile.

const ROW = 19, GAP = 1, WIDTH_MIN = 0.4, TEXT_MIN = 28;

// One tree with its sums, going down, or up for the callers of a function.
class Layer {
	// `verdicts` of the changes that are shown; null of one profile.
	constructor(tree, sums, goesUp, verdicts = null) {
		this.tree = tree;
		this.sums = sums;
		this.goesUp = goesUp;
		this.verdicts = verdicts;
		this.zoom = 0;
	}

	// rows[depth]: [x, width, node]..., in shares of the width.
	layOut(widthMin) {
		const {tree, sums} = this;
		const rows = Array.from({length: tree.maxDepth + 1}, () => []);
		const whole = sums.est[this.zoom];

		this.rows = rows;
		if (!(whole > 0))
			return;
		for (let n = this.zoom; n >= 0; n = tree.parent[n])
			rows[tree.depth[n]].push(0, 1, n);
		const left = new Float64Array(tree.maxDepth + 2);
		left[tree.depth[this.zoom] + 1] = 0;
		for (let n = this.zoom + 1; n < tree.end[this.zoom];) {
			const depth = tree.depth[n], w = sums.est[n] / whole;
			const x = left[depth];

			left[depth] += w;
			left[depth + 1] = x;
			if (w < widthMin) {
				n = tree.end[n];
				continue;
			}
			rows[depth].push(x, w, n);
			n++;
		}
	}
}

// What is drawn on a canvas: painted once before the screen shows it, however
// often it has changed.
class Drawing {
	constructor(box, model) {
		this.box = box;
		this.canvas = box.querySelector('canvas');
		this.model = model;
		this.frame = 0;
	}

	draw() {
		if (!this.frame)
			this.frame = requestAnimationFrame(() => {
				this.frame = 0;
				this.paint();
			});
	}
}

class Flame extends Drawing {
	// on: {hover(layer, node, event), leave(), zoom(layerIndex, node),
	//      focus(function)}
	constructor(box, model, on) {
		super(box, model);
		this.spacer = box.querySelector('.spacer');
		this.on = on;
		this.layers = [];
		this.matches = null;
		this.selected = null;
		this.hovered = null;
		box.addEventListener('scroll', () => this.draw());
		box.addEventListener('pointermove', (e) => this.pointed(e));
		box.addEventListener('pointerleave', () => this.left());
		box.addEventListener('click', (e) => this.clicked(e));
		box.addEventListener('dblclick', (e) => this.clickedTwice(e));
		new ResizeObserver(() => this.resize()).observe(box);
	}

	show(layers, matches) {
		this.layers = layers;
		this.matches = matches;
		this.selected = this.keep(this.selected);
		this.hovered = null;
		this.resize();
	}

	// The selection, if its tree is still there.
	keep(selected) {
		const layer = selected && this.layers.find(
			({tree}) => tree === selected.layer.tree);

		return layer ? {layer, node: selected.node} : null;
	}

	resize() {
		const ratio = window.devicePixelRatio || 1;

		this.width = this.box.clientWidth;
		if (!this.width || !this.layers.length)
			return;
		for (const layer of this.layers)
			layer.layOut(WIDTH_MIN / this.width);
		// What zooming leaves empty takes no room.
		for (const layer of this.layers)
			layer.used = layer.rows.findLastIndex((r) => r.length);
		this.upRows = this.layers.length > 1
			? Math.max(this.layers[0].used, 1) : 0;
		const last = this.layers[this.layers.length - 1];
		const rows = this.upRows + Math.max(last.used, 0) +
			(this.upRows ? 0 : 1);
		this.spacer.style.height = `${rows * ROW}px`;
		this.height = Math.min(rows * ROW,
			Math.max(Math.round(0.62 * window.innerHeight), 12 * ROW));
		this.box.style.height = `${this.height}px`;
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		this.canvas.style.width = `${this.width}px`;
		this.canvas.style.height = `${this.height}px`;
		this.palette = readPalette();
		this.draw();
	}

	// Around a function: the row of the function in the middle.
	centre() {
		this.box.scrollTop = this.upRows * ROW - this.height / 2;
	}

	// The row on the screen of a node, from the top of the graph.  Around a
	// function there are no roots: the function is the row where both meet.
	rowOf(layer, depth) {
		if (this.layers.length === 1)
			return depth;
		return layer.goesUp ? this.upRows - depth
			: this.upRows + depth - 1;
	}

	paint() {
		const ratio = window.devicePixelRatio || 1;
		const g = this.canvas.getContext('2d');
		const top = this.box.scrollTop;

		g.setTransform(ratio, 0, 0, ratio, 0, 0);
		g.fillStyle = this.palette.background;
		g.fillRect(0, 0, this.width, this.height);
		g.font = FLAME_FONT;
		g.textBaseline = 'middle';
		this.letter = g.measureText('mmmmmmmmmm').width / 10;
		for (const layer of this.layers)
			layer.rows.forEach((row, depth) => {
				const y = this.rowOf(layer, depth) * ROW - top;

				if (this.layers.length > 1 && !depth)
					return;
				if (y > -ROW && y < this.height)
					this.paintRow(g, layer, row, y);
			});
	}

	paintRow(g, layer, row, y) {
		for (let i = 0; i < row.length; i += 3) {
			const x = row[i] * this.width;
			const w = Math.max(row[i + 1] * this.width - GAP, 0.6);

			this.paintFrame(g, layer, row[i + 2], x, y, w);
		}
	}

	paintFrame(g, layer, node, x, y, w) {
		const f = layer.tree.fn[node], {palette} = this;
		const isFaintNode = this.isFaintNode(layer, node);
		const isMatch = this.matches && f >= 0 && this.matches[f];
		const isAbove = layer.tree.end[layer.zoom] <= node ||
			node < layer.zoom;
		const h = ROW - GAP;

		g.fillStyle = isMatch ? palette.match
			: layer.verdicts ? this.changeFill(layer, node)
				: palette.colourOf(f);
		g.globalAlpha = isFaintNode && !layer.verdicts ? 0.3 : this.matches && !isMatch
			? 0.45 : isAbove ? 0.6 : 1;
		g.fillRect(x, y, w, h);
		g.globalAlpha = 1;
		if (this.layers.length > 1 && node === 1) {
			g.fillStyle = palette.accent;
			g.fillRect(x, y, w, 2);
			g.fillRect(x, y + h - 2, w, 2);
		}
		if (this.isMarked(layer, node, this.hovered) ||
		    this.isMarked(layer, node, this.selected)) {
			g.lineWidth = 2;
			g.strokeStyle = palette.outline;
			g.strokeRect(x + 1, y + 1, Math.max(w - 2, 1), h - 2);
		}
		if (w < TEXT_MIN)
			return;
		g.fillStyle = isFaintNode ? palette.faintText
			: isMatch ? palette.matchText : palette.text;
		g.fillText(this.label(layer, node, w), x + 5, y + h / 2 + 0.5);
	}

	isFaintNode({sums, verdicts}, node) {
		return verdicts ? !verdicts.isTold(node)
			: isFaint(sums.est[node], sums.seen[node],
				sums.samples[node]);
	}

	// The more of its changes go one way, the stronger.
	changeFill({sums, verdicts}, node) {
		return this.palette.changeOf(verdicts.isTold(node)
			? sums.net[node] / sums.est[node] : 0);
	}

	isMarked(layer, node, mark) {
		return mark && mark.layer === layer && mark.node === node;
	}

	// Which way it changed, where colours may not be seen.
	arrow({sums, verdicts}, node) {
		if (!verdicts || !verdicts.isTold(node))
			return '';
		return sums.net[node] > 0 ? '▲ ' : '▼ ';
	}

	// What fits of a name: its beginning.
	label(layer, node, w) {
		const f = layer.tree.fn[node];
		const room = Math.floor((w - 8) / this.letter);
		const name = this.arrow(layer, node) + (f < 0 ? 'all'
			: visible(this.model.functions[f].name));

		if (name.length <= room)
			return name;
		return room > 2 ? name.slice(0, room - 1) + '…' : '';
	}

	// What is drawn at a point of the page.
	at(event) {
		const r = this.box.getBoundingClientRect();
		const x = (event.clientX - r.left) / this.width;
		const row = Math.floor((event.clientY - r.top +
			this.box.scrollTop) / ROW);

		for (const layer of this.layers)
			for (let d = 0; d < layer.rows.length; d++) {
				if (this.rowOf(layer, d) !== row ||
				    (this.layers.length > 1 && !d))
					continue;
				const node = findAt(layer.rows[d], x);
				if (node >= 0)
					return {layer, node};
			}
		return null;
	}

	pointed(event) {
		const found = this.at(event);

		if (!this.isMarked(found && found.layer, found && found.node,
			this.hovered)) {
			this.hovered = found;
			this.draw();
		}
		this.box.style.cursor = found ? 'pointer' : 'default';
		if (found)
			this.on.hover(found.layer, found.node, event);
		else
			this.on.leave();
	}

	left() {
		this.hovered = null;
		this.on.leave();
		this.draw();
	}

	clicked(event) {
		const found = this.at(event);

		if (!found || event.detail > 1)
			return;
		this.selected = found;
		this.on.zoom(this.layers.indexOf(found.layer), found.node);
	}

	clickedTwice(event) {
		const found = this.at(event);

		if (found && found.layer.tree.fn[found.node] >= 0)
			this.on.focus(found.layer.tree.fn[found.node]);
	}

	// ---- keyboard ----

	// Move the selection: 'out' to the caller, 'in' to the heaviest callee,
	// 'before' and 'after' among the callees of one caller.
	move(where) {
		const layer = this.selected ? this.selected.layer
			: this.layers[this.layers.length - 1];
		const {tree, sums} = layer;
		const top = this.layers.length > 1 ? 1 : 0;
		let node = this.selected ? this.selected.node : layer.zoom || top;

		if (this.selected)
			node = neighbour(tree, sums.est, node, where);
		this.selected = {layer, node: Math.max(node, top)};
		this.reveal();
		this.draw();
		return this.selected;
	}

	reveal() {
		const {layer, node} = this.selected;
		const y = this.rowOf(layer, layer.tree.depth[node]) * ROW;

		if (y < this.box.scrollTop)
			this.box.scrollTop = y;
		else if (y + ROW > this.box.scrollTop + this.height)
			this.box.scrollTop = y + ROW - this.height;
	}
}

function findAt(row, x) {
	let below = 0, above = row.length / 3;

	while (below < above) {
		const middle = (below + above) >> 1;

		if (row[3 * middle] + row[3 * middle + 1] <= x)
			below = middle + 1;
		else
			above = middle;
	}
	const found = 3 * below;
	return found < row.length && row[found] <= x ? row[found + 2] : -1;
}

function neighbour(tree, est, node, where) {
	const up = tree.parent[node];
	let best = node;

	if (where === 'out')
		return up >= 0 ? up : node;
	if (where === 'in') {
		for (let c = node + 1; c < tree.end[node]; c = tree.end[c])
			if (best === node || est[c] > est[best])
				best = c;
		return best;
	}
	if (up < 0)
		return node;
	for (let c = up + 1; c < tree.end[up]; c = tree.end[c]) {
		if (!(est[c] > 0))
			continue;
		if (where === 'after' && c > node)
			return c;
		if (where === 'before' && c < node)
			best = c;
	}
	return best;
}

const FLAME_FONT = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';

// Colours tell modules apart: those with most bytes have one each, and shades
// tell functions apart.
function readPalette() {
	const style = getComputedStyle(document.documentElement);
	const get = (name) => style.getPropertyValue(name).trim();

	return {
		background: get('--panel'), text: get('--frame-text'),
		faintText: get('--frame-faint-text'), outline: get('--outline'), accent: get('--accent'),
		match: get('--match'), matchText: get('--match-text'),
		colourOf: coloursOf(parseFloat(get('--frame-saturation')),
			parseFloat(get('--frame-lightness'))),
		changeOf: changeColours(parseFloat(get('--pale-lightness')),
			parseFloat(get('--strong-lightness'))),
	};
}

const HUES = [212, 152, 32, 268, 340, 186, 90];
const hueOfFunction = {hues: null, shades: null};

// The colour of each function, for a saturation and a lightness in percent.
function coloursOf(saturation, lightness) {
	const {hues, shades} = hueOfFunction;
	const all = `hsl(220 8% ${lightness}%)`;
	const made = hues.map((hue, f) => hue < 0
		? `hsl(220 8% ${lightness + shades[f]}%)`
		: `hsl(${hue + 3 * shades[f]} ${saturation}% ` +
			`${lightness + shades[f]}%)`);

	return (f) => f < 0 ? all : made[f];
}

// Of a change, from -1, all of it shrank, to 1, all of it grew.
function changeColours(pale, strong) {
	return (net) => {
		const part = Math.sqrt(Math.abs(net));

		return `hsl(${net < 0 ? 214 : 6} ${(6 + 66 * part).toFixed(1)}% ` +
			`${(pale + (strong - pale) * part).toFixed(1)}%)`;
	};
}

// The modules with a colour, those with most bytes first.
function giveColours(model) {
	const bytes = new Map();

	model.functions.forEach(({module}) => bytes.set(module, 0));
	for (let p = 0; p < model.nPaths; p++) {
		const {module} = model.functions[model.flatOf(p)];

		bytes.set(module, bytes.get(module) + model.est[p]);
	}
	bytes.delete('');
	const modules = [...bytes].sort((a, b) => b[1] - a[1])
		.slice(0, HUES.length).map(([module]) => module);
	hueOfFunction.hues = model.functions.map(
		({module}) => HUES[modules.indexOf(module)] ?? -1);
	hueOfFunction.shades = model.functions.map(
		({name}) => shadeOf(name));
	return modules;
}

function shadeOf(name) {
	let h = 0;

	for (let i = 0; i < name.length; i++)
		h = (Math.imul(h, 31) + name.charCodeAt(i)) | 0;
	return ((h >>> 5) % 5 - 2) * 1.6;
}
