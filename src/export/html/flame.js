// SPDX-License-Identifier: MIT
//
// The flame graph: an icicle on a canvas that is as large as what can be seen
// of it.

const ROW = 19, GAP = 1, WIDTH_MIN = 1, TEXT_MIN = 28;
const FLAME_FONT = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';

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

// A place is {layer, node}, where the node may be the place of several
// (layer.js).
class Flame extends Drawing {
	// on: {hover(place, event), leave(), select(place), zoom(place),
	//      focus(function)}
	constructor(box, model, on) {
		super(box, model);
		this.spacer = box.querySelector('.spacer');
		this.on = on;
		this.layers = [];
		this.matches = null;
		this.selected = null;
		this.hovered = null;
		this.isTouched = false;
		this.labels = new Map();
		box.addEventListener('scroll', () => this.left());
		box.addEventListener('pointerdown', (e) => {
			this.isTouched = e.pointerType === 'touch';
		});
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
		this.layOut(this.width);
		this.height = Math.min(this.nRows * ROW,
			Math.max(Math.round(0.62 * window.innerHeight), 12 * ROW));
		this.spacer.style.height = `${this.nRows * ROW}px`;
		this.box.style.height = `${this.height}px`;
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		this.canvas.style.width = `${this.width}px`;
		this.canvas.style.height = `${this.height}px`;
		this.palette = readPalette();
		this.labels.clear();
		this.draw();
	}

	// What zooming leaves empty takes no room.
	layOut(width) {
		const last = this.layers[this.layers.length - 1];
		const rowsOf = (layer) =>
			layer.rows.findLastIndex((row) => row.length) + 1;

		for (const layer of this.layers)
			layer.layOut(WIDTH_MIN / width);
		this.upRows = this.isAround
			? Math.max(rowsOf(this.layers[0]) - 2, 0) : 0;
		this.nRows = this.isAround
			? this.upRows + Math.max(rowsOf(last) - 1, 1)
			: Math.max(rowsOf(last), 1);
	}

	// Callers and callees of a function, which both layers have as node 1.
	get isAround() {
		return this.layers.length > 1;
	}

	// Around a function: its row in the middle.
	centre() {
		this.box.scrollTop = this.upRows * ROW - this.height / 2;
	}

	// The row on the screen, from the top of the graph; null for what is not
	// drawn: around a function there are no roots, and the function is drawn
	// with its callees.
	rowOf(layer, depth) {
		if (!this.isAround)
			return depth;
		if (depth < (layer.goesUp ? 2 : 1))
			return null;
		return layer.goesUp ? this.upRows - depth + 1
			: this.upRows + depth - 1;
	}

	// visit(layer, node, row, x, width) for all that has a place, of a graph
	// of that width.
	eachFrame(width, visit, isRowSeen = () => true) {
		for (const layer of this.layers)
			layer.rows.forEach((places, depth) => {
				const row = this.rowOf(layer, depth);

				if (row === null || !isRowSeen(row))
					return;
				for (let i = 0; i < places.length; i += 3)
					visit(layer, places[i + 2], row,
					      places[i] * width,
					      Math.max(places[i + 1] * width - GAP,
						       0.6));
			});
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
		this.eachFrame(this.width, (layer, node, row, x, w) =>
			this.paintFrame(g, layer, node, x, row * ROW - top, w),
		(row) => row * ROW - top > -ROW && row * ROW - top < this.height);
	}

	paintFrame(g, layer, node, x, y, w) {
		const {fill, opacity, text} = this.look(layer, node);
		const h = ROW - GAP;

		g.fillStyle = fill;
		g.globalAlpha = opacity;
		g.fillRect(x, y, w, h);
		g.globalAlpha = 1;
		if (this.isAround && node === 1) {
			g.fillStyle = this.palette.accent;
			g.fillRect(x, y, w, 2);
			g.fillRect(x, y + h - 2, w, 2);
		}
		if (this.isMarked(layer, node, this.hovered) ||
		    this.isMarked(layer, node, this.selected)) {
			g.lineWidth = 2;
			g.strokeStyle = this.palette.outline;
			g.strokeRect(x + 1, y + 1, Math.max(w - 2, 1), h - 2);
		}
		if (w < TEXT_MIN)
			return;
		g.fillStyle = text;
		g.fillText(this.label(layer, node, w), x + 5, y + h / 2 + 0.5);
	}

	// The colours of a frame.
	look(layer, node) {
		const {palette, matches} = this;

		if (isGathered(node))
			return {fill: palette.gathered, text: palette.faintText,
				opacity: matches ? 0.45 : 1};
		const f = layer.tree.fn[node];
		const isFaintNode = this.isFaintNode(layer, node);
		const isMatch = matches && f >= 0 && matches[f];
		const isAbove = layer.tree.end[layer.zoom] <= node ||
			node < layer.zoom;

		return {
			fill: isMatch ? palette.match
				: layer.verdicts ? this.changeFill(layer, node)
					: palette.colourOf(f),
			opacity: isFaintNode && !layer.verdicts ? 0.3
				: matches && !isMatch ? 0.45 : isAbove ? 0.6 : 1,
			text: isFaintNode ? palette.faintText
				: isMatch ? palette.matchText : palette.text,
		};
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

	// What fits of a name, as often as it is painted made once.
	label(layer, node, w) {
		const room = Math.floor((w - 8) / this.letter);

		if (isGathered(node)) {
			const n = layer.counts.get(node);

			return cutText([`${count(n)} more`, `+${count(n)}`], room);
		}
		const f = layer.tree.fn[node], arrow = this.arrow(layer, node);
		const left = room - arrow.length, key = left * 2 ** 32 + f;
		if (!this.labels.has(key))
			this.labels.set(key, shorten(f < 0 ? 'all'
				: visible(this.model.functions[f].name), left));
		const name = this.labels.get(key);
		return name && arrow + name;
	}

	// What is drawn at a point of the page.
	at(event) {
		const r = this.box.getBoundingClientRect();
		const x = (event.clientX - r.left) / this.width;
		const row = Math.floor((event.clientY - r.top +
			this.box.scrollTop) / ROW);

		for (const layer of this.layers)
			for (let d = 0; d < layer.rows.length; d++) {
				if (this.rowOf(layer, d) !== row)
					continue;
				const node = findAt(layer.rows[d], x);
				if (node !== null)
					return {layer, node};
			}
		return null;
	}

	// ---- pointer ----

	// A finger has no place before it touches one: what it touches is said
	// below the graph.
	pointed(event) {
		const found = event.pointerType === 'touch' ? null
			: this.at(event);

		if (!this.isMarked(found && found.layer, found && found.node,
			this.hovered)) {
			this.hovered = found;
			this.draw();
		}
		this.box.style.cursor = found ? 'pointer' : 'default';
		if (found)
			this.on.hover(found, event);
		else
			this.on.leave();
	}

	left() {
		this.hovered = null;
		this.on.leave();
		this.draw();
	}

	// The first touch of a frame says what it has, the second one zooms.
	clicked(event) {
		const found = this.at(event);

		if (!found || (event.detail > 1 && !this.isTouched))
			return;
		const isNew = !this.isMarked(found.layer, found.node,
			this.selected);
		this.select(found);
		if (!this.isTouched || !isNew)
			this.on.zoom(found);
	}

	clickedTwice(event) {
		const found = this.at(event);

		if (found && !this.isTouched && !isGathered(found.node) &&
		    found.layer.tree.fn[found.node] >= 0)
			this.on.focus(found.layer.tree.fn[found.node]);
	}

	select(place) {
		this.selected = place;
		this.draw();
		this.on.select(place);
	}

	// ---- keyboard ----

	// Move the selection on the screen by an arrow key: to the caller, to the
	// heaviest callee, or among the callees of one caller.
	move(key) {
		const down = this.layers[this.layers.length - 1];
		const top = this.isAround ? 1 : 0;
		let {layer, node} = this.selected ||
			{layer: down, node: down.zoom || top};

		if (isGathered(node))
			node = callerOfGathered(node);
		if (this.selected) {
			if (this.isAround && node === 1 && key === 'ArrowUp')
				[layer] = this.layers;
			node = Math.max(neighbour(layer.tree, layer.sums.est, node,
				MOVES[layer.goesUp ? 1 : 0][key]), top);
			if (layer.goesUp && node === 1)
				layer = down;
		}
		this.select({layer, node});
		this.reveal();
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

// Where a key moves to in a layer that goes down, and in one that goes up.
const MOVES = [
	{ArrowUp: 'out', ArrowDown: 'in', ArrowLeft: 'before', ArrowRight: 'after'},
	{ArrowUp: 'in', ArrowDown: 'out', ArrowLeft: 'before', ArrowRight: 'after'},
];

// The first of the texts that fits.
const cutText = (texts, room) =>
	texts.find((text) => text.length <= room) ?? '';
