// SPDX-License-Identifier: MIT
//
// Live bytes over the run with their confidence band, made by the report; and
// the brush that picks a window, from one edge of the bins to another.  Without
// frees nothing is known of what is alive: then it is what was allocated in
// each bin.

const TIME = 0, VALUE = [2, 5], RSS = 8;
const MARGIN = {left: 78, right: 14, top: 10, bottom: 22};

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
		box.addEventListener('pointerleave', () => this.pointed(null));
		box.addEventListener('pointercancel', () => {
			this.drag = null;
			this.pointed(null);
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
		this.draw();
	}

	// At each edge, or of each bin, {value, lo, hi}.
	makeSeries() {
		const at = VALUE[this.ofObjects ? 1 : 0];

		if (this.model.data.has_frees)
			return this.points.map((p) =>
				({value: p[at], lo: p[at + 1], hi: p[at + 2]}));
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
		const g = this.canvas.getContext('2d');
		const style = getComputedStyle(document.documentElement);
		const get = (name) => style.getPropertyValue(name).trim();

		this.width = this.box.clientWidth;
		this.height = this.box.clientHeight;
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		this.series ||= this.makeSeries();
		this.top = this.scale();
		g.setTransform(ratio, 0, 0, ratio, 0, 0);
		g.clearRect(0, 0, this.width, this.height);
		g.font = '12px system-ui, sans-serif';
		this.paintAxes(g, get);
		this.paintSeries(g, get);
		if (!this.ofObjects)
			this.paintRss(g, get);
		this.paintPeak(g, get);
		this.paintWindow(g, get);
	}

	// The largest limit, but a band that is mostly doubt is cut off.
	scale() {
		let most = 0, value = 0;

		for (const p of this.series) {
			most = Math.max(most, p.hi);
			value = Math.max(value, p.value);
		}
		return Math.min(most, 2 * value || most) * 1.05 || 1;
	}

	paintAxes(g, get) {
		const step = niceStep(this.top / 3, this.ofObjects);
		const [first, last] = [this.points[0][TIME],
			this.points[this.points.length - 1][TIME]];

		g.lineWidth = 1;
		g.textBaseline = 'middle';
		for (let v = 0; v <= this.top; v += step) {
			const y = Math.round(this.y(v)) + 0.5;

			g.strokeStyle = get('--grid');
			g.beginPath();
			g.moveTo(MARGIN.left, y);
			g.lineTo(this.width - MARGIN.right, y);
			g.stroke();
			g.fillStyle = get('--muted');
			g.textAlign = 'right';
			g.fillText(amount(v, this.ofObjects), MARGIN.left - 8, y);
		}
		g.textBaseline = 'alphabetic';
		const labels = this.width > 700 ? 4 : 2;
		for (let i = 0; i <= labels; i++) {
			const share = i / labels;

			g.textAlign = i === 0 ? 'left'
				: i === labels ? 'right' : 'center';
			g.fillText(moment(first + share * (last - first)),
				this.x(share * this.model.bins), this.height - 5);
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
		g.strokeStyle = get('--muted');
		g.lineWidth = 1;
		g.setLineDash([4, 3]);
		g.beginPath();
		this.points.forEach((p, i) => {
			if (p[RSS] !== null && p[RSS] <= this.top)
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

	// A drag is a window, a click the window from the beginning until then.
	released(event) {
		if (!this.drag)
			return;
		const [from, to] = this.drag;

		this.drag = null;
		if (from < to)
			this.on.window(from, to);
		else if (to > 0)
			this.on.window(0, to);
		this.pointed(event);
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
