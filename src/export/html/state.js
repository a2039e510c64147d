// SPDX-License-Identifier: MIT
//
// What the page shows, as the fragment of its address: a link to it, and what
// the back button goes back through.

// `sides`: what a page of two profiles can show, and that first; of one, ['']
function sideOf(text, sides) {
	const side = new URLSearchParams(text).get('side');

	return sides.includes(side) ? side : sides[0];
}

function firstState(model) {
	return {
		view: model.opening, metric: 'bytes', from: 0, to: model.bins, search: '',
		inverted: false, focus: -1, layer: 0, node: 0, sort: 'flat',
		descending: true, all: false,
	};
}

function writeState({side, ...state}, model, sides = ['']) {
	const first = firstState(model), parts = new URLSearchParams();

	if (side !== sides[0])
		parts.set('side', side);
	for (const [key, value] of Object.entries(state))
		if (value !== first[key])
			parts.set(key, String(value));
	return parts.toString();
}

// What an address says, as far as it makes sense: it is untrusted.
function readState(text, model, sides = ['']) {
	const state = {side: sideOf(text, sides), ...firstState(model)};
	const parts = new URLSearchParams(text);
	const number = (key, least, most) => {
		const n = Number(parts.get(key));

		if (parts.has(key) && Number.isInteger(n) && n >= least && n <= most)
			state[key] = n;
	};
	const word = (key, words) => {
		if (words.includes(parts.get(key)))
			state[key] = parts.get(key);
	};

	word('view', model.views);
	word('metric', ['bytes', 'objects']);
	word('sort', [...FUNCTION_KEYS, ...CHANGE_KEYS]);
	number('from', 0, model.bins - 1);
	number('to', 1, model.bins);
	if (state.from >= state.to)
		state.from = 0;
	number('focus', 0, model.functions.length - 1);
	number('layer', 0, 1);
	number('node', 0, 2 ** 31);
	state.all = parts.get('all') === 'true';
	state.inverted = parts.get('inverted') === 'true';
	state.descending = parts.get('descending') !== 'false';
	state.search = parts.get('search') || '';
	return state;
}
