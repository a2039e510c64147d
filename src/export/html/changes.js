// SPDX-License-Identifier: MIT
//
// What two profiles differ in, as text, and the table of it.

// "+1.2 KiB", "−3 MiB".
function signed(value, ofObjects, rounding = nearest) {
	if (!Number.isFinite(value))
		return 'unknown';
	const text = value ? withUnit(split(Math.abs(value), rounding, true,
		ofObjects), ofObjects) : '0';

	return !parseFloat(text) ? text : (value < 0 ? '−' : '+') + text;
}

// "[−24.0, −20.6] MiB", rounded outwards; "exact" if the limits meet.
function signedInterval({lo, hi}, ofObjects) {
	const [low, lowUnit] = signed(lo, ofObjects,
		lo < 0 ? Math.ceil : Math.floor).split(' ');
	const [high, unit] = signed(hi, ofObjects,
		hi < 0 ? Math.floor : Math.ceil).split(' ');

	if (!(lo < hi))
		return 'exact';
	if (!Number.isFinite(lo) && !Number.isFinite(hi))
		return 'unknown';
	if (!Number.isFinite(lo) || !Number.isFinite(hi))
		return Number.isFinite(lo) ? `at least ${signed(lo, ofObjects,
			lo < 0 ? Math.ceil : Math.floor)}`
			: `at most ${signed(hi, ofObjects,
				hi < 0 ? Math.floor : Math.ceil)}`;
	return unit && unit === lowUnit ? `[${low}, ${high}] ${unit}`
		: `[${[low, lowUnit].filter(Boolean).join(' ')}, ${
			[high, unit].filter(Boolean).join(' ')}]`;
}

// Of the old value; "new" and "gone" where it has none.
function signedPercent(older, newer) {
	const change = 100 * (newer - older) / older;
	const size = Math.abs(change), sign = change < 0 ? '−' : '+';

	if (!Number.isFinite(change) && older > 0)
		return 'unknown';
	if (!(older > 0))
		return newer > 0 ? 'new' : '0 %';
	if (!(newer > 0))
		return 'gone';
	if (size < 1e-9)
		return '0 %';
	if (change > 999999)
		return '> +999999 %';
	return size < 0.01 ? '<0.01 %'
		: `${sign}${fixed(size, size < 1 ? 2 : size < 1000 ? 1 : 0)} %`;
}

const fromTo = (a, b, ofObjects) =>
	`${amount(a, ofObjects)} → ${amount(b, ofObjects)}`;

const isExact = ({lo, hi}) => !(lo < hi);

// Before a change that means nothing: "?" if it cannot be compared, "~" if it
// cannot be told from noise.
const mark = (row) => row.why ? '? '
	: row.isTold || isExact(row.change) ? '' : '~ ';

const rowPercent = (row) => row.why ? '?'
	: signedPercent(row.old.value, row.new.value);

// What became of something, as lines of [kind, text].
function changeLines(row, ofObjects) {
	const {old: a, new: b, change} = row;
	const lines = [
		['figure', fromTo(a.value, b.value, ofObjects) +
			(ofObjects ? ' objects' : '')],
		['figure' + (mark(row) || !change.value ? ''
			: change.value > 0 ? ' grew' : ' shrank'),
		mark(row) + signed(change.value, ofObjects)],
		['share', rowPercent(row)],
		['interval', signedInterval(change, ofObjects)],
		['samples', `${count(a.samples)} → ` + plural(b.samples, 'sample')],
	];

	if (mark(row))
		lines.push(['faint', row.why || 'cannot be told from noise']);
	return lines;
}

// ---- functions ----

const CHANGE_KEYS = ['change', 'cumChange', 'old', 'new', 'percent', 'name'];

const movedNote = (rows) => rows.length
	? '; other inlining, build flags or code that moved: ' +
		`${plural(rows.length, 'row')} marked ? ` +
		`${rows.length === 1 ? 'has' : 'have'} bytes that callers or callees ` +
		'had before'
	: '';

class ChangeTable extends Ranking {
	constructor(box, pair, on) {
		super(box, byId('more-changes'), on);
		this.pair = pair;
	}

	show(matches, {key, descending}, all) {
		const {pair} = this;

		if (this.choice !== pair.choice) {
			this.flat = new Map(pair.rows((f) => pair.pathsFlat(f))
				.map((row) => [row.f, row]));
			this.cum = pair.rows((f) => pair.pathsWith(f));
			this.choice = pair.choice;
		}
		this.matches = matches;
		this.all = all;
		this.key = CHANGE_KEYS.includes(key) ? key : 'change';
		this.descending = descending;
		this.fill();
	}

	// Of changes those that are told first: the others are of any size.
	compare(a, b) {
		const {key} = this, of = key === 'cumChange' ? 'cum' : 'flat';
		const size = (row) => row[of] ? Math.abs(row[of].change.value) : -1;
		const told = (row) => row[of] && row[of].isTold ? 1 : 0;
		const value = (row) => {
			const e = row.flat;

			if (!e)
				return -Infinity;
			if (key === 'percent' && !(e.old.value > 0))
				return e.new.value > 0 ? Infinity : 0;
			if (key === 'percent')
				return (e.new.value - e.old.value) / e.old.value;
			return e[key].value;
		};
		const [x, y] = [a, b].map((row) =>
			this.pair.functions[row.cum.f].name);
		const byName = x < y ? -1 : x > y ? 1 : 0;

		if (key === 'name')
			return byName;
		if (key === 'change' || key === 'cumChange')
			return told(a) - told(b) || size(a) - size(b) || -byName;
		const [v, w] = [value(a), value(b)];
		return v < w ? -1 : v > w ? 1 : -byName;
	}

	fill() {
		const {matches, cum, flat} = this;
		let rows = cum.filter(({f}) => !matches || matches[f])
			.map((row) => ({cum: row, flat: flat.get(row.f)}))
			.filter((row) => matches || this.isWorthARow(row));
		const n = rows.length;
		const own = rows.filter((row) => row.flat);
		const told = own.filter((row) => row.flat.isTold);

		rows.sort((a, b) => this.descending ? this.compare(b, a)
			: this.compare(a, b));
		rows = rows.slice(0, this.shown);
		const most = Math.max(...rows.map(({cum: {change}}) =>
			Math.max(...[change.value, -change.value, -change.lo,
				change.hi].filter(Number.isFinite))), 0);
		this.put(rows.map((row) => this.row(row, most)), n);
		byId('changed').textContent = `flat, ${told.length} of ` +
			plural(own.length, matches ? 'matching function'
				: 'function') +
			' changed; ~ cannot be told from noise' +
			movedNote(own.filter((row) => row.flat.why === WHY_MOVED));
		this.markOrder(this);
	}

	// What only calls others is in the order of cum.
	isWorthARow({flat, cum: {f}}) {
		return flat || ['cumChange', 'name'].includes(this.key) &&
			(this.all || this.pair.isOwn[f]);
	}

	row({flat, cum}, most) {
		return element('tr', null,
			this.nameCell(cum.f, this.pair.functions[cum.f]),
			this.figure('old', flat && flat.old),
			this.figure('new', flat && flat.new),
			this.change('Change, flat', flat, most),
			element('td', {class: 'number'}, flat ? rowPercent(flat)
				: '–'),
			element('td', {class: 'number', 'data-unit': 'samples'},
				flat ? `${count(flat.old.samples)} → ` +
					count(flat.new.samples) : '–'),
			this.change('Change, cum', cum, most));
	}

	figure(label, e) {
		const {ofObjects} = this.pair.choice;

		return element('td', {class: 'number', 'data-label': label},
			e ? amount(e.value, ofObjects) : '–');
	}

	change(label, row, most) {
		const {ofObjects} = this.pair.choice;

		if (!row)
			return element('td', {class: 'estimate'},
				element('span', {class: 'none'}, '–'));
		const {old: a, new: b, change} = row;
		return element('td', {
			class: 'estimate' + (mark(row) ? ' few' : ''),
			'data-label': label, 'data-old': a.value, 'data-new': b.value,
			'data-value': change.value,
			'data-lo': change.lo, 'data-hi': change.hi,
			'data-old-samples': a.samples,
			'data-new-samples': b.samples, 'data-told': row.isTold,
			'data-comparable': !row.why,
		}, element('b', null, mark(row) + signed(change.value, ofObjects)),
		' ', element('span', {class: 'interval'},
			signedInterval(change, ofObjects)),
		changeBar(change, most, mark(row) !== ''));
	}
}

// A bar from the middle, and a line from one limit to the other.
function changeBar({value, lo, hi}, most, isFew) {
	const part = (x) => 50 + 50 *
		Math.max(Math.min(most > 0 ? x / most : 0, 1), -1);
	const bar = element('i', {
		class: isFew ? 'value' : value < 0 ? 'value shrank' : 'value grew',
	});
	const line = element('i', {class: 'limits'});

	bar.style.left = `${Math.min(part(value), 50)}%`;
	bar.style.right = `${100 - Math.max(part(value), 50)}%`;
	line.style.left = `${part(lo)}%`;
	line.style.right = `${100 - part(hi)}%`;
	return element('span', {class: 'bar change', 'aria-hidden': 'true'}, bar,
		line);
}

// ---- the head ----

// JSON has no infinity.
const limited = (e) => ({...e, hi: e.hi ?? Infinity});

// A total that is known exactly, or {value, lo, hi} of both sides.
function totalCard(title, older, newer, ofObjects) {
	const a = typeof older === 'number'
		? {value: older, lo: older, hi: older} : limited(older);
	const b = typeof newer === 'number'
		? {value: newer, lo: newer, hi: newer} : limited(newer);
	const row = {old: a, new: b, change: changeOf(a, b)};

	row.isTold = isNotZero(row.change);
	return card(title, fromTo(a.value, b.value, ofObjects),
		`${mark(row)}${signed(row.change.value, ofObjects)}, ` +
		signedPercent(a.value, b.value) + (isExact(row.change) ? ''
			: ` · ${signedInterval(row.change, ofObjects)}`), 'change');
}

function showPairCards(box, older, newer) {
	const exact = older.is_exact && newer.is_exact ? ', exact'
		: ', at least';

	box.replaceChildren(
		totalCard('Allocated' + exact, older.exact_bytes,
			newer.exact_bytes, false),
		totalCard('Allocations' + exact, older.exact_objects,
			newer.exact_objects, true));
	if (older.live_bytes && newer.live_bytes)
		box.append(
			totalCard(older.when === newer.when ? `Alive ${newer.when}`
				: 'Alive', older.live_bytes,
				newer.live_bytes, false),
			totalCard(older.peak_is_least || newer.peak_is_least
				? 'Peak, where it is known' : 'Peak',
			older.peak_bytes, newer.peak_bytes, false));
}

function showPairRun(older, newer) {
	const name = (data) => visible(baseName(data.program));
	const isSame = name(older) === name(newer);
	const line = (what, data) => element('span', {class: 'side'},
		`${what}: ${runFacts(data)} · ${visible(data.file)}` +
		(data.files > 1 ? ` · ${count(data.files)} files added up` : ''));

	document.title = `${name(newer)}, old and new – sampleprof`;
	byId('program').textContent = isSame ? `${name(newer)}, old → new`
		: `${name(older)} → ${name(newer)}`;
	byId('command').textContent = visible(newer.command || newer.program);
	byId('facts').replaceChildren(line('old', older), line('new', newer));
	showOnly(newer);
}

// What makes the two hard to compare.
function pairNotes(older, newer) {
	const notes = [], sides = [['old', older], ['new', newer]];
	const name = (data) => baseName(data.program);
	const differ = (of) => of(older) !== of(newer);

	if (differ(name))
		notes.push(`different programs: ${name(older)}, ${name(newer)}`);
	if (differ((data) => data.period_bytes))
		notes.push(`different sampling periods: ${sides.map(([, data]) =>
			amount(data.period_bytes, false)).join(', ')}; the ` +
			'longer one limits how exact the estimates are');
	if (differ((data) => data.is_dotnet))
		notes.push('different sampling laws');
	if (differ((data) => data.files))
		notes.push(`${plural(older.files, 'file')} against ` +
			`${plural(newer.files, 'file')}: the sums of each are ` +
			'compared, not the means');
	for (const [what, data] of sides)
		if (!data.is_exact)
			notes.push(`${what}: ${data.end}: its totals are lower limits`);
	if (differ((data) => data.has_frees))
		notes.push(`${older.has_frees ? 'new' : 'old'} has no frees: ` +
			'live bytes, the peak and temporary objects cannot be ' +
			'compared');
	for (const [what, data] of sides)
		notes.push(...noteLines(data).map((line) => `${what}: ${line}`));
	return notes;
}

// Of a key, the value that both have, or both.
function pairSettings(older, newer) {
	const [a, b] = [older, newer].map(({settings}) => new Map(settings));
	const side = (map, key) => map.has(key) ? map.get(key) : 'not there';

	return [...new Set([...a.keys(), ...b.keys()])].map((key) => [key,
		side(a, key) === side(b, key) ? side(a, key)
			: `${side(a, key)} → ${side(b, key)}`]);
}

function showPairNotes(older, newer, pair) {
	showNotes(newer, [
		...pair.caveats.mixed.size ? [`${WHY_NAMES}: ? marks them`] : [],
		...pair.renamed.map((both) => `taken for renamed: ${both}`),
		...pairNotes(older, newer),
	], pairMethod(older, newer), pairSettings(older, newer),
	[...new Set([older, newer].flatMap((data) => data.remedies || []))]);
	byId('file').textContent =
		`old: ${fileText(older)}; new: ${fileText(newer)}`;
}

const PAIR_METHOD = 'The interval of a difference follows from the samples ' +
	'of both sides: it does not contain how much runs of the program ' +
	'differ. Of the rows without ~ the expected share of wrong ones is ' +
	'below ';

const pairMethod = (older, newer) =>
	`Sampling: old ${samplesOf(older)}; new ${samplesOf(newer)}. ` +
	`Intervals, in brackets, are at ${level95(newer.confidence)}. ` +
	`${PAIR_METHOD}${level95(1 - newer.confidence)}.`;
