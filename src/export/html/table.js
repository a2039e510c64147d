// SPDX-License-Identifier: MIT
//
// The table of functions.  All are ranked by their weighted estimates (E3),
// which are quick sums; those that are shown get the report's estimates with
// intervals, and are ranked by these.

const PAGE_ROWS = 60;
// Letters of a name in its line.
const CELL_NAME_MAX = 72;
const FUNCTION_KEYS = ['flat', 'cum', 'flatSamples', 'cumSamples', 'name'];

// A table whose first rows are shown, more on demand, in an order that its head
// chooses; a row is a function.
class Ranking {
	// on.focus(function), on.sort(key)
	constructor(box, more, on) {
		this.box = box;
		this.body = box.querySelector('tbody');
		this.more = more;
		this.shown = PAGE_ROWS;
		for (const button of box.querySelectorAll('th button'))
			button.addEventListener('click',
				() => on.sort(button.dataset.key));
		this.more.addEventListener('click', () => {
			this.shown += PAGE_ROWS;
			this.fill();
		});
		this.body.addEventListener('click', (e) => {
			const button = e.target.closest('button');

			if (button)
				on.focus(Number(button.dataset.function));
		});
	}

	// n rows there are, of which these are shown.
	put(rows, n) {
		const buttons = rows.map((row) => row.querySelector('button'));
		const names = shortenAll(buttons.map((b) => b.textContent),
			CELL_NAME_MAX);

		buttons.forEach((b, i) => { b.textContent = names[i]; });
		this.body.replaceChildren(...rows);
		this.more.hidden = n <= rows.length;
		this.more.textContent = `Show more (${count(n - rows.length)} left)`;
	}

	markOrder({key, descending}) {
		for (const th of this.box.querySelectorAll('th')) {
			const button = th.querySelector('button');

			if (button && button.dataset.key === key)
				th.setAttribute('aria-sort', descending
					? 'descending' : 'ascending');
			else
				th.removeAttribute('aria-sort');
		}
	}

	nameCell(f, {name, module, place}) {
		const button = element('button', {
			type: 'button', 'data-function': f,
			title: visible(name) + ': callers and callees',
		}, visible(name));

		return element('td', {class: 'name'}, button,
			element('span', {class: 'where'},
				visible(baseName(place || module || ''))));
	}
}

class FunctionTable extends Ranking {
	constructor(box, model, on) {
		const n = model.functions.length;

		super(box, byId('more'), on);
		this.model = model;
		this.sums = {
			flat: new Float64Array(n), cum: new Float64Array(n),
			flatSamples: new Float64Array(n),
			cumSamples: new Float64Array(n),
		};
		this.order = {key: 'flat', descending: true};
	}

	show(matches, {key, descending}, all) {
		const order = {
			key: FUNCTION_KEYS.includes(key) ? key : 'flat', descending,
		};

		this.matches = matches;
		this.all = all;
		if (order.key !== this.order.key)
			this.shown = PAGE_ROWS;
		this.order = order;
		this.sumUp();
		this.fill();
	}

	sumUp() {
		const {model, sums} = this, {start, list} = model.index;

		for (let f = 0; f < model.functions.length; f++) {
			let cum = 0, samples = 0;

			for (let i = start[f]; i < start[f + 1]; i++) {
				cum += model.est[list[i]];
				samples += model.samples[list[i]];
			}
			sums.cum[f] = cum;
			sums.cumSamples[f] = samples;
		}
		sums.flat.fill(0);
		sums.flatSamples.fill(0);
		for (let p = 0; p < model.nPaths; p++) {
			sums.flat[model.flatOf(p)] += model.est[p];
			sums.flatSamples[model.flatOf(p)] += model.samples[p];
		}
	}

	compare(a, b, of) {
		const {key, descending} = this.order;
		const names = this.model.functions;
		let c;

		if (key === 'name')
			c = names[a].name < names[b].name ? -1
				: names[a].name > names[b].name ? 1 : 0;
		else
			c = of[key](a) - of[key](b) || of.flat(a) - of.flat(b) ||
				of.cum(a) - of.cum(b);
		return (descending ? -c : c) || a - b;
	}

	fill() {
		const {sums, model, matches} = this;
		const quick = {}, exact = new Map();

		for (const key of Object.keys(sums))
			quick[key] = (f) => sums[key][f];
		const found = model.functions.map((_, f) => f).filter((f) =>
			sums.cumSamples[f] && (!matches || matches[f]));
		let rows = matches ? found
			: found.filter((f) => this.isWorthARow(f));
		const n = rows.length;
		rows.sort((a, b) => this.compare(a, b, quick));
		rows = rows.slice(0, this.shown);
		for (const f of rows)
			exact.set(f, {
				flat: model.estimate(model.pathsFlat(f)),
				cum: model.estimate(model.pathsWith(f)),
			});
		rows.sort((a, b) => this.compare(a, b, {
			...quick,
			flat: (f) => exact.get(f).flat.value,
			cum: (f) => exact.get(f).cum.value,
		}));
		const whole = model.estimate(model.allPaths);
		const most = Math.max(...rows.map((f) => exact.get(f).cum).map(
			({value, hi}) => Number.isFinite(hi) ? hi : value), 0);
		this.put(rows.map((f) =>
			this.row(f, exact.get(f), whole.value, most)), n);
		byId('rows').textContent = matches
			? `${plural(n, 'function')} that match`
			: plural(n, 'function') + this.describeRest(found, n);
		this.markOrder(this.order);
	}

	// As in the report: what only calls others is in the order of cum.
	isWorthARow(f) {
		const {sums, model} = this;

		return sums.flatSamples[f] || this.order.key !== 'flat' &&
			this.order.key !== 'flatSamples' &&
			(this.all || model.isOwn[f]);
	}

	describeRest(found, n) {
		const callers = found.filter((f) => !this.isWorthARow(f) &&
			(this.all || this.model.isOwn[f])).length;
		const foreign = found.length - n - callers;

		return (callers ? `; ${plural(callers, 'caller')} more in the ` +
			'order of cum' : '') +
			(foreign ? `; ${count(foreign)} of libraries: ` +
			'switch “Own functions” off' : '');
	}

	row(f, {flat, cum}, whole, most) {
		return element('tr', null,
			this.nameCell(f, this.model.functions[f]),
			this.cell('Flat', flat, whole, most),
			this.cell('Cum', cum, whole, most),
			this.samplesCell(flat.samples),
			this.samplesCell(cum.samples));
	}

	// On a phone there is no head above a figure that says what it is.
	samplesCell(n) {
		return element('td', {class: 'number',
			'data-unit': n === 1 ? 'sample' : 'samples'}, count(n));
	}

	// An estimate, its interval, and both as a bar with whiskers.
	cell(label, e, whole, most) {
		const {ofObjects} = this.model.choice;
		const [first, second] = estimateText(e, ofObjects);
		const isFew = e.samples <= FEW_SAMPLES && e.lo < e.hi;
		const td = element('td', {
			class: 'estimate' + (isFew ? ' few' : ''),
			'data-label': label, 'data-value': e.value, 'data-lo': e.lo,
			'data-hi': Number.isFinite(e.hi) ? e.hi : null,
			'data-samples': e.samples,
		});

		if (!e.samples) {
			td.append(element('span', {class: 'none'}, '–'));
			return td;
		}
		td.append(element('b', null, first), ' ',
			element('span', {class: 'interval'}, second), ' ',
			element('span', {class: 'share'}, percent(e.value, whole)),
			whisker(e, most));
		return td;
	}
}
