// SPDX-License-Identifier: MIT
//
// The head of the page, and what is below its tables: what is known exactly,
// what was lost, how it was recorded.

function card(title, figure, detail, kind) {
	return element('div', {class: 'card ' + kind},
		element('h2', null, title),
		element('p', {class: 'figure'}, figure),
		element('p', {class: 'detail'}, detail));
}

function estimateCard(title, e, samples, when) {
	const [first, second] = estimateText({...e, samples}, false);

	return card(title, first, [second || (samples ? '' : 'no sample'),
		plural(samples, 'sample'), when].filter(Boolean).join(' · '),
	'estimated');
}

// Is it not known what was alive at the end, of any process?
const isLiveUnknown = ({whole: {live_known_until_ns: known, processes,
	processes_lacking: lacking}}) => known !== null &&
	!(processes > 1 && lacking && lacking < processes);

// What the file has of it has no limits then, as in the report.
function liveCard(data) {
	const title = data.when === 'at the end' ? 'Alive at the end' : 'Alive';

	if (!isLiveUnknown(data))
		return estimateCard(title, data.live_bytes, data.live_samples,
			data.when === 'at the end' ? '' : data.when);
	if (data.live_samples)
		return card(title, amount(data.live_bytes.value, false),
			`${plural(data.live_samples, 'sample')} · ${data.when}`,
			'estimated');
	const known = data.whole.live_known_until_ns;
	return card(title, 'not known' + (known ? ` after ${moment(known)}` : ''),
		plural(0, 'sample'), 'estimated');
}

// Is anything certain of it?
const isKnown = ({lo, hi}) => lo > 0 || Number.isFinite(hi);

// Each quantity once: what was allocated is known exactly, but for a part.
function showCards(box, data) {
	const [bytes, how] = data.is_exact
		? [amount(data.exact_bytes, false), 'exact, in ']
		: [atLeast(data.exact_bytes, false), 'counted, in at least '];

	box.replaceChildren(card('Allocated', bytes,
		data.is_exact || data.exact_objects
			? how + plural(data.exact_objects, 'allocation')
			: 'see the notes', 'exact'));
	if (data.is_subset)
		box.append(estimateCard('Chosen of it', data.alloc_bytes,
			data.alloc_samples, data.window_ns
				? `since ${moment(data.window_ns)}` : ''));
	if (!data.live_bytes)
		return;
	box.append(
		liveCard(data),
		isKnown(data.peak_bytes)
			? estimateCard('Peak', data.peak_bytes,
				data.peak_samples,
				data.peak_samples ? data.peak_when : '')
			: card('Peak', 'unknown',
				plural(data.peak_samples, 'sample'), 'estimated'));
}

// What is missing or doubtful: the notes of the report, and what this page
// leaves out.
function noteLines(data) {
	const lines = [...data.notes || []];

	if (data.discarded_bytes)
		lines.unshift(`${amount(data.discarded_bytes, false)} of what was ` +
			'allocated were discarded to keep the file to its size' +
			(data.window_ns
				? `: what was allocated before ${moment(
					data.window_ns)}, but for what was alive then`
				: ''));
	if (data.folded_paths)
		lines.unshift(`${plural(data.folded_paths, 'call stack')} with ` +
			`fewest bytes, ${percent(data.folded_bytes,
				data.alloc_bytes.value)} of what was allocated, ` +
			'are one, [other], to keep this page small: their ' +
			'functions have more than is shown');
	return lines;
}

function runFacts(data) {
	const started = new Date(data.start_ms).toISOString()
		.replace('T', ' ').slice(0, 19);

	return [
		`pid ${data.pid}` + (data.host ? ` on ${visible(data.host)}` : ''),
		`started ${started} UTC`, `ran ${runLength(data.duration_ns)}`,
		data.end, plural(data.threads, 'thread'),
	].join(' · ');
}

function showRun(data) {
	document.title = `${baseName(visible(data.program))} – sampleprof`;
	byId('program').textContent = visible(baseName(data.program));
	byId('command').textContent = visible(data.command || data.program);
	byId('facts').textContent = runFacts(data);
	showOnly(data);
}

function showOnly(data) {
	byId('only').textContent = Object.entries(data.chosen).map(
		([what, value]) => `${what} ${visible(String(value))}`).join(', ');
	byId('only').hidden = !byId('only').textContent;
}

function samplesOf(data) {
	const period = data.period_bytes === 1 ? 'every allocation is recorded'
		: `one sample in ${amount(data.period_bytes, false)}`;

	return `${period}, ${plural(data.samples, 'sample')}`;
}

function methodOf(data) {
	const bins = data.bins < 200 ? ' To keep this page small, windows ' +
		`begin and end at one of ${data.bins + 1} moments.` : '';

	return `Sampling: ${samplesOf(data)}. Intervals, in brackets, are at ` +
		`${level95(data.confidence)}, method ${data.method}: each holds ` +
		'for one row that was named in advance, not for all rows ' +
		`together.${bins}`;
}

const fileText = (data) => `${visible(data.file)}: ${visible(data.state)}`;

function showNotes(data, lines = noteLines(data), method = methodOf(data),
	settings = data.settings, remedies = data.remedies || []) {
	const notes = lines.map(visible);
	const losses = byId('losses');

	byId('notes').replaceChildren(...notes.map(
		(line) => element('li', null, line)));
	byId('remedies').textContent = remedies.map(visible).join('\n');
	byId('remedies').hidden = !remedies.length;
	byId('file').textContent = fileText(data);
	byId('method').textContent = method;
	losses.hidden = !notes.length;
	losses.textContent = plural(notes.length, 'note');
	byId('settings').replaceChildren(...settings.map(([key, value]) =>
		element('tr', null, element('th', {scope: 'row'}, visible(key)),
			element('td', null, visible(value)))));
	byId('generator').textContent = data.generator;
}

// What a view has, in words.
function describeChoice(data, choice, bins) {
	const edge = (i) => moment(data.timeline[i][0]);
	const isWhole = choice.from === 0 && choice.to === bins;
	const born = isWhole ? '' : choice.from === 0
		? `allocated before ${edge(choice.to)}`
		: `allocated from ${edge(choice.from)} to ${edge(choice.to)}`;
	const and = (text) => born ? `${born}, ${text}` : text;

	switch (choice.view) {
	case 'live':
		return and(choice.to === bins ? `alive ${data.when}`
			: `alive at ${edge(choice.to)}`);
	case 'peak':
		return and(`alive at the peak of live bytes, ${data.peak_when}`);
	case 'leaks':
		return and(`alive ${data.when}, and older than ` +
			moment(data.tail_ns));
	case 'temporary':
		return and('freed before its thread allocated anything else');
	default:
		return born || (data.window_ns
			? `everything that was allocated since ${moment(
				data.window_ns)}` : 'everything that was allocated');
	}
}
