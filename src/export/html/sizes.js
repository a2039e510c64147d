// SPDX-License-Identifier: MIT
//
// Object sizes by powers of two: what was allocated, exactly, and what is
// chosen, estimated.

// Ranges of size classes: 16 bytes wide up to 1 KiB, four to an octave beyond.
function sizeRanges(classes) {
	const ranges = [];
	let first = 0;

	for (let max = 16; first < CLASSES; max *= 2) {
		let last = first;

		while (last + 1 < CLASSES && classes[last + 1].max <= max)
			last++;
		if (max >= 2 ** 62)
			last = CLASSES - 1;
		ranges.push({first, last, max});
		first = last + 1;
	}
	return ranges;
}

// "17–32 B", "1–2 KiB", "512 KiB – 1 MiB"
function sizeName(i, ranges) {
	const {max} = ranges[i];
	const short = (n) => amount(n, false).replace(/\.0+ /, ' ');
	const [low, unit] = short(max / 2).split(' ');

	if (max <= 1024)
		return `${count(i ? ranges[i - 1].max + 1 : 1)}–${count(max)} B`;
	return short(max).endsWith(unit) ? `${low}–${short(max)}`
		: `${low} ${unit} – ${short(max)}`;
}

function showSizes(body, model) {
	const {population, choice} = model;
	const ranges = sizeRanges(population.classes);
	const exact = ranges.map(({first, last}) => {
		let sum = 0;

		for (let i = first; i <= last; i++)
			sum += choice.ofObjects ? population.classes[i].objects
				: population.classes[i].bytes;
		return sum;
	});
	const estimates = ranges.map(({first, last}) =>
		model.estimateSizes(first, last));
	const used = ranges.map((_, i) => i).filter((i) =>
		exact[i] > 0 || estimates[i].samples > 0);
	const most = Math.max(...used.filter((i) => estimates[i].samples)
		.map((i) => estimates[i].hi), 0);
	const mostExact = Math.max(...exact);

	body.replaceChildren(...used.map((i) => {
		const [first, second] = estimateText(estimates[i],
			choice.ofObjects);

		return element('tr', null,
			element('th', {scope: 'row'}, sizeName(i, ranges)),
			element('td', {class: 'estimate', 'data-value': exact[i]},
				...(population.hasClasses ? [
					element('b', null,
						amount(exact[i], choice.ofObjects)),
					exactBar(exact[i], mostExact)] : ['–'])),
			element('td', {
				class: 'estimate', 'data-value': estimates[i].value,
				'data-lo': estimates[i].lo, 'data-hi': estimates[i].hi,
				'data-max': ranges[i].max,
			}, element('b', null, first), ' ',
			element('span', {class: 'interval'}, second),
			...(estimates[i].samples
				? [whisker(estimates[i], most)] : [])));
	}));
}
