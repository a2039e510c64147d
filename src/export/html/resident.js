// SPDX-License-Identifier: MIT
//
// What resident memory was made of, at the moments at which somebody looked:
// the rows of `sampleprof rss`, which add up.

const LEDGER_WORDS = {
	end: 'At the end', peak: 'Near the peak', now: 'While it ran',
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

function showLedger(body, ledger) {
	const most = Math.max(...ledger.rows.map((r) => r.hi), 0);

	body.replaceChildren(...orderRows(ledger.rows).map((r) =>
		element('tr', {'data-name': r.name, 'data-value': r.value},
			element('th', {scope: 'row'}, visible(r.label)),
			element('td', {class: 'estimate'},
				element('b', null, amount(r.value, false)), ' ',
				element('span', {class: 'interval'}, r.lo < r.hi
					? interval(r, false) : ''),
				element('span', {class: 'share'},
					percent(r.value, ledger.rss_bytes)),
				r.lo < r.hi ? whisker(r, most)
					: exactBar(r.value, most)))));
}

// The one that the text shows is shown first: at the end, or the last.
function showLedgers(section, data) {
	const all = data.ledgers || [];
	const first = all.findIndex(({why}) => why === 'end');
	const choices = all.map((ledger) => element('button', {type: 'button'},
		ledgerName(ledger)));
	const choose = (i) => {
		const {rss_bytes: rss, time_ns: time, confidence} = all[i];

		choices.forEach((e, k) =>
			e.setAttribute('aria-pressed', String(k === i)));
		byId('resident-hint').textContent =
			`${amount(rss, false)} at ${moment(time)}, as the kernel ` +
			'counts it; with intervals of ' +
			`${level95(confidence)} where it is estimated.`;
		showLedger(byId('resident-rows'), all[i]);
	};

	section.hidden = !all.length;
	if (!all.length)
		return;
	choices.forEach((e, i) => e.addEventListener('click', () => choose(i)));
	byId('resident-which').replaceChildren(...choices);
	byId('resident-which').hidden = all.length < 2;
	choose(first < 0 ? all.length - 1 : first);
}
