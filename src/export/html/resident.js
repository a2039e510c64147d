// SPDX-License-Identifier: MIT
//
// What resident memory was made of, at the moments at which somebody looked:
// the rows of `sampleprof rss`, which add up: a bar for each moment, and the
// figures of the one that is chosen.  Also on a page of its own (rss.html).

const LEDGER_WORDS = {end: 'At the end', peak: 'Near the peak', now: 'Now'};

// One for each row, the same at all moments; others are grey.
const LEDGER_HUES = {
	heap_alive: 212, heap_kept: 32, heap_rounding: 268, heap_rest: 240,
	heap_before: 186, heap: 212, anonymous: 152, huge_zero: 90,
	thread_stacks: 340, main_stack: 340, shared: 60, profile: 300,
};

function ledgerName({why, mark}) {
	return why === 'snapshot' ? `Snapshot ${visible(mark)}` : LEDGER_WORDS[why];
}

// The heap first, then the others, each by size: as in the text.
function orderRows(rows) {
	const isHeap = ({name}) => name.startsWith('heap');

	return [...rows].sort((a, b) => isHeap(b) - isHeap(a) ||
		b.value - a.value);
}

function colourOfRow(e, {name}) {
	const hue = LEDGER_HUES[name];

	e.style.setProperty('--hue', hue || 0);
	if (hue === undefined)
		e.classList.add('grey');
	return e;
}

// As long as the whole is, by which `most` is the longest of all.
function stackedBar({rows, rss_bytes: rss}, most) {
	const sum = rows.reduce((all, {value}) => all + value, 0);
	const bar = element('span', {class: 'stacked', 'aria-hidden': 'true'},
		...orderRows(rows).map((row) => {
			const part = colourOfRow(element('i', {title:
				`${visible(row.label)}: ${amount(row.value, false)}`}), row);

			part.style.width = `${sum > 0 ? 100 * row.value / sum : 0}%`;
			return part;
		}));

	bar.style.width = `${most > 0 ? 100 * rss / most : 0}%`;
	return bar;
}

function showLedger(body, ledger) {
	const most = Math.max(...ledger.rows.map((r) => r.hi), 0);

	body.replaceChildren(...orderRows(ledger.rows).map((r) =>
		element('tr', {'data-name': r.name, 'data-value': r.value},
			element('th', {scope: 'row'}, colourOfRow(element('i'), r),
				visible(r.label)),
			element('td', {class: 'estimate'},
				element('b', null, amount(r.value, false)), ' ',
				element('span', {class: 'interval'}, r.lo < r.hi
					? interval(r, false) : ''),
				element('span', {class: 'share'},
					percent(r.value, ledger.rss_bytes)),
				r.lo < r.hi ? whisker(r, most)
					: exactBar(r.value, most)))));
}

const ledgerMoment = ({why, time_ns: time}) =>
	why === 'now' ? '' : `, ${moment(time)}`;

// The one that the text shows is shown first: at the end, or the last.
function showLedgers(section, data) {
	const all = data.ledgers || [];
	const first = all.findIndex(({why}) => why === 'end');
	const most = Math.max(...all.map((l) => l.rss_bytes), 0);
	const choices = all.map((l) => element('button', {type: 'button'},
		element('span', null, ledgerName(l), ledgerMoment(l)), ' ',
		element('b', null, amount(l.rss_bytes, false)),
		stackedBar(l, most)));
	const choose = (i) => {
		choices.forEach((e, k) =>
			e.setAttribute('aria-pressed', String(k === i)));
		byId('resident-hint').textContent =
			`${amount(all[i].rss_bytes, false)}, as the kernel counts it; ` +
			`with intervals of ${level95(all[i].confidence)} where it is ` +
			'estimated.';
		showLedger(byId('resident-rows'), all[i]);
	};

	section.hidden = !all.length;
	if (!all.length)
		return;
	choices.forEach((e, i) => e.addEventListener('click', () => choose(i)));
	byId('resident-which').replaceChildren(...choices);
	choose(first < 0 ? all.length - 1 : first);
}
