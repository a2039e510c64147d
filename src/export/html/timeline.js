// SPDX-License-Identifier: MIT
//
// Live bytes over the run with their confidence band, made by the report; and
// the brush that picks a window, from one edge of the bins to another.  Without
// frees nothing is known of what is alive: then it is what was allocated in
// each bin.

const TIME = 0, VALUE = [2, 5], RSS = 8;
const MARGIN = {left: 70, right: 14, top: 10, bottom: 24};
// Between two ticks of the axis, at least; in pixels.
const TICK_WIDTH = 80;
// RSS that is higher than so many times the curve would flatten it, as in the
// report.
const RSS_TIMES_MAX = 4;

class Timeline extends Drawing {
	// on.window(from, to)
	constructor(box, model, on) {
		super(box, model);
		this.points = model.data.timeline;
		this.on = on;
		this.window = [0, model.bins];
		this.ofObjects = false;
		box.addEventListener('pointerdown', (e) => this.pressed(e));
		box.addEventListener('pointermove', (e) => this.pointed(e));
		box.addEventListener('pointerup', (e) => this.released(e));
		box.addEventListener('pointerleave', (e) => {
			// A finger leaves as it is lifted.
			if (e.pointerType !== 'touch')
				this.left();
		});
		box.addEventListener('pointercancel', () => {
			this.drag = null;
			this.left();
		});
		box.addEventListener('keydown', (e) => this.key(e));
		new ResizeObserver(() => this.draw()).observe(box);
	}

	use(model) {
		this.model = model;
		this.points = model.data.timeline;
		this.series = null;
	}

	show(from, to, ofObjects) {
		this.window = [from, to];
		if (ofObjects !== this.ofObjects || !this.series)
			this.series = null;
		this.ofObjects = ofObjects;
		this.series ||= this.makeSeries();
		this.top = this.scale();
		this.draw();
	}

	// At each edge, or of each bin, {value, lo, hi}.
	makeSeries() {
		const at = VALUE[this.ofObjects ? 1 : 0];

		if (this.model.data.has_frees)
			return this.points.map((p) =>
				({value: p[at], lo: p[at + 1], hi: p[at + 2] ?? Infinity}));
		return this.model.allocatedByBin(this.ofObjects);
	}

	get isByBin() {
		return !this.model.data.has_frees;
	}

	x(edge) {
		return MARGIN.left + edge / this.model.bins *
			(this.width - MARGIN.left - MARGIN.right);
	}

	y(value) {
		const h = this.height - MARGIN.top - MARGIN.bottom;

		return MARGIN.top + h * (1 - value / this.top);
	}

	edgeAt(event) {
		const x = event.clientX - this.box.getBoundingClientRect().left;
		const share = (x - MARGIN.left) /
			(this.width - MARGIN.left - MARGIN.right);

		return Math.min(Math.max(Math.round(share * this.model.bins), 0),
			this.model.bins);
	}

	paint() {
		const ratio = window.devicePixelRatio || 1;

		// Nothing is shown of a difference.
		if (!this.series)
			return;
		const g = this.canvas.getContext('2d');
		const style = getComputedStyle(document.documentElement);
		const get = (name) => style.getPropertyValue(name).trim();

		this.width = this.box.clientWidth;
		this.height = this.box.clientHeight;
		// Hidden, or no room for an axis, whose ticks would have no end.
		if (!(this.width > MARGIN.left + MARGIN.right))
			return;
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		g.setTransform(ratio, 0, 0, ratio, 0, 0);
		g.clearRect(0, 0, this.width, this.height);
		g.font = '12px system-ui, sans-serif';
		this.paintValues(g, get);
		this.paintTimes(g, get);
		this.paintSeries(g, get);
		if (this.showsRss)
			this.paintRss(g, get);
		this.paintPeak(g, get);
		this.paintWindow(g, get);
	}

	// The largest limit, but a band that is mostly doubt is cut off; RSS may
	// make it larger, but not so much that the curve becomes flat.
	scale() {
		const rss = this.rssMax;
		let most = 0, value = 0;

		for (const p of this.series) {
			most = Math.max(most,
				Number.isFinite(p.hi) ? p.hi : p.value);
			value = Math.max(value, p.value);
		}
		most = Math.min(most, 2 * value || most);
		this.showsRss = rss > 0 && rss <= RSS_TIMES_MAX * most;
		return Math.max(most, this.showsRss ? rss : 0) * 1.05 || 1;
	}

	// 0 if none was recorded, or objects are counted.
	get rssMax() {
		return this.ofObjects || this.isByBin ? 0
			: Math.max(0, ...this.points.map((p) => p[RSS]));
	}

	line(g, x0, y0, x1, y1) {
		g.beginPath();
		g.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
		g.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
		g.stroke();
	}

	paintValues(g, get) {
		const step = niceStep(this.top / 5, this.ofObjects);
		const right = this.width - MARGIN.right;

		g.lineWidth = 1;
		g.textBaseline = 'middle';
		g.textAlign = 'right';
		g.fillStyle = get('--muted');
		for (let v = 0; v <= this.top; v += step) {
			g.strokeStyle = get(v ? '--grid' : '--muted');
			this.line(g, MARGIN.left, this.y(v), right, this.y(v));
			g.fillText(amount(v, this.ofObjects).replace(/\.0+(?= |$)/, ''),
				MARGIN.left - 8, this.y(v));
		}
	}

	// A tick at each round moment, and text where there is room.
	paintTimes(g, get) {
		const first = this.points[0][TIME];
		const last = this.points[this.points.length - 1][TIME];
		const room = this.width - MARGIN.left - MARGIN.right;
		const bottom = this.y(0);
		const step = niceTime((last - first) * TICK_WIDTH / room);

		g.textBaseline = 'alphabetic';
		g.textAlign = 'center';
		if (!(last > first))
			return;
		for (let t = Math.ceil(first / step) * step; t <= last; t += step) {
			const x = MARGIN.left + (t - first) / (last - first) * room;
			const text = tickText(t, last);
			const half = g.measureText(text).width / 2;

			g.strokeStyle = get('--grid');
			this.line(g, x, MARGIN.top, x, bottom - 1);
			g.strokeStyle = get('--muted');
			this.line(g, x, bottom, x, bottom + 4);
			g.fillText(text, Math.min(x, this.width - half),
				this.height - 5);
		}
	}

	// A band, and the line of values in it.
	paintSeries(g, get) {
		const path = (what, from, step) => {
			const n = this.series.length;

			for (let k = 0; k < n; k++) {
				const i = step > 0 ? k : n - 1 - k;
				const y = this.y(Math.min(this.series[i][what],
					this.top));

				if (this.isByBin) {
					g.lineTo(this.x(step > 0 ? i : i + 1), y);
					g.lineTo(this.x(step > 0 ? i + 1 : i), y);
				} else {
					g.lineTo(this.x(i), y);
				}
			}
		};

		g.fillStyle = get('--band');
		g.beginPath();
		path('hi', 0, 1);
		path('lo', 0, -1);
		g.fill();
		g.strokeStyle = get('--accent');
		g.lineWidth = 1.75;
		g.lineJoin = 'round';
		g.beginPath();
		path('value', 0, 1);
		g.stroke();
	}

	paintRss(g, get) {
		g.strokeStyle = get('--rss');
		g.lineWidth = 1.5;
		g.setLineDash([4, 3]);
		g.beginPath();
		this.points.forEach((p, i) => {
			if (p[RSS] !== null)
				g.lineTo(this.x(i), this.y(p[RSS]));
		});
		g.stroke();
		g.setLineDash([]);
	}

	paintPeak(g, get) {
		const {data} = this.model;
		const [first, last] = [this.points[0][TIME],
			this.points[this.points.length - 1][TIME]];

		if (!data.peak_bytes || !data.peak_samples || last <= first ||
		    data.peak_ns < first)
			return;
		const x = this.x((data.peak_ns - first) / (last - first) *
			this.model.bins);
		g.fillStyle = get('--peak');
		g.beginPath();
		g.moveTo(x - 5, 1);
		g.lineTo(x + 5, 1);
		g.lineTo(x, 9);
		g.fill();
	}

	paintWindow(g, get) {
		const [from, to] = this.drag || this.window;
		const [a, b] = [this.x(from), this.x(to)];
		const h = this.height - MARGIN.bottom;

		if (from > 0 || to < this.model.bins) {
			g.fillStyle = get('--shade');
			g.fillRect(MARGIN.left, 0, a - MARGIN.left, h);
			g.fillRect(b, 0, this.width - MARGIN.right - b, h);
			g.fillStyle = get('--accent');
			g.fillRect(a - 1, 0, 2, h);
			g.fillRect(b - 1, 0, 2, h);
		}
		if (this.hovered !== undefined && !this.drag) {
			g.strokeStyle = get('--muted');
			g.lineWidth = 1;
			g.beginPath();
			g.moveTo(Math.round(this.x(this.hovered)) + 0.5, 0);
			g.lineTo(Math.round(this.x(this.hovered)) + 0.5, h);
			g.stroke();
		}
	}

	// What is drawn, as [class, text].
	get legend() {
		const rss = this.rssMax;
		const keys = [['live-key', this.isByBin
			? 'allocated in each step' : 'alive, with its interval']];

		if (this.showsRss)
			keys.push(['rss-key', 'resident memory (RSS)']);
		else if (rss)
			keys.push(['', `RSS, up to ${amount(rss, false)}, is ` +
				'beyond the scale']);
		if (this.model.data.peak_samples)
			keys.push(['peak-key', 'peak']);
		return keys;
	}

	// ---- pointer and keys ----

	pressed(event) {
		const edge = this.edgeAt(event);

		if (event.button)
			return;
		this.box.setPointerCapture(event.pointerId);
		this.anchor = edge;
		this.drag = [edge, edge];
	}

	pointed(event) {
		this.hovered = event ? this.edgeAt(event) : undefined;
		if (this.drag && event)
			this.drag = [Math.min(this.anchor, this.hovered),
				Math.max(this.anchor, this.hovered)];
		this.on.hover(event, this.hovered);
		this.draw();
	}

	// A drag is a window, a click the window from the beginning until then;
	// the first touch says what was there then.
	released(event) {
		if (!this.drag)
			return;
		const [from, to] = this.drag;
		const isFirst = event.pointerType === 'touch' &&
			Math.abs(to - (this.touched ?? -Infinity)) > TOUCH_EDGES;

		this.drag = null;
		this.touched = from === to ? to : undefined;
		if (from < to)
			this.on.window(from, to);
		else if (to > 0 && !isFirst)
			this.on.window(0, to);
		this.pointed(event);
	}

	// Another window is shown: what was said of the one before is stale.
	left() {
		this.hovered = undefined;
		this.on.hover(null);
		this.draw();
	}

	key(event) {
		const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
		let [from, to] = this.window;

		if (!step)
			return;
		event.preventDefault();
		event.stopPropagation();
		if (event.shiftKey)
			from += step;
		else
			to += step;
		if (from >= 0 && from < to && to <= this.model.bins)
			this.on.window(from, to);
	}
}

// Touches so far from each other, in edges, are of one moment.
const TOUCH_EDGES = 5;

// Round steps between two moments, in nanoseconds: 1, 2, 5 up to 10 s, then what
// a minute, an hour and a day are divided by.
const TIME_STEPS = [
	...Array.from({length: 10}, (_, e) => [1, 2, 5].map((n) => n * 10 ** e))
		.flat(),
	...[10, 15, 30].map((n) => n * 1e9),
	...[1, 2, 5, 10, 15, 30].map((n) => n * 60e9),
	...[1, 2, 3, 6, 12].map((n) => n * 3600e9),
];

function niceTime(least) {
	const days = least / DAY_NS;

	return TIME_STEPS.find((step) => step >= least) ??
		DAY_NS * niceStep(days, true);
}

// A moment of an axis that ends at `last`: all in one unit.
function tickText(ns, last) {
	const [name, size] = [['days', 2 * DAY_NS, DAY_NS],
		['h', 2 * 3600e9, 3600e9], ['min', 600e9, 60e9],
		['s', 1e9, 1e9], ['ms', 1e6, 1e6], ['us', 1e3, 1e3], ['ns', 0, 1]]
		.filter(([, least]) => last >= least)
		.map(([unit, , length]) => [unit, length])[0];

	return ns ? `${Number((ns / size).toPrecision(6))} ${name}` : '0';
}

// A round step of at least that size.
function niceStep(least, ofObjects) {
	const base = ofObjects ? 1000 : 1024;
	let unit = 1;

	while (least >= base * unit)
		unit *= base;
	for (const n of [1, 2, 5, 10, 20, 50, 100, 200, 500])
		if (n * unit >= least)
			return n * unit;
	return base * unit;
}
