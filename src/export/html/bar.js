// SPDX-License-Identifier: MIT
//
// Bars beside figures.

// A bar up to the value, and a line from one limit to the other.
function whisker({value, lo, hi}, most) {
	const part = (x) => `${100 * Math.min(most > 0 ? x / most : 0, 1)}%`;
	const bar = element('i', {class: 'value'});
	const line = element('i', {class: 'limits'});

	bar.style.width = part(value);
	line.style.left = part(lo);
	line.style.right = `calc(100% - ${part(hi)})`;
	return element('span', {class: 'bar', 'aria-hidden': 'true'}, bar, line);
}

function exactBar(value, most) {
	const bar = element('i', {class: 'value'});

	bar.style.width = `${most > 0 ? 100 * value / most : 0}%`;
	return element('span', {class: 'bar', 'aria-hidden': 'true'}, bar);
}
