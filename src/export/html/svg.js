// SPDX-License-Identifier: MIT
//
// The flame graph as a picture of its own: all rows, as wide as it is on the
// page or wider.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_WIDTH_MIN = 1200, SVG_MARGIN = 10, SVG_HEAD = 46;
// Of a letter of the picture, whatever fonts there are where it is looked at.
const SVG_LETTER = 7.4;

// XML has no place for these, whatever a name has in it.
const xmlText = (text) => visible(text)
	.replace(/[\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
		'\ufffd');

function svgElement(tag, attributes, ...children) {
	const e = document.createElementNS(SVG, tag);

	for (const [name, value] of Object.entries(attributes))
		e.setAttribute(name, value);
	e.append(...children);
	return e;
}

// `titleOf(place)` is what a viewer shows for a frame; the lines are the head.
function flameSvg(flame, [title, subtitle], titleOf) {
	const width = Math.max(flame.width, SVG_WIDTH_MIN);
	const {palette, letter} = flame, frames = svgElement('g', {
		transform: `translate(${SVG_MARGIN} ${SVG_HEAD})`,
	});

	flame.letter = SVG_LETTER;
	flame.layOut(width);
	flame.labels.clear();
	flame.eachFrame(width, (layer, node, row, x, w) => {
		const {fill, opacity, text} = flame.look(layer, node);
		const frame = svgElement('g', {},
			svgElement('title', {}, xmlText(titleOf({layer, node}))),
			svgElement('rect', {
				x: x.toFixed(2), y: row * ROW, width: w.toFixed(2),
				height: ROW - GAP, fill, 'fill-opacity': opacity,
			}));

		if (w >= TEXT_MIN)
			frame.append(svgElement('text', {
				x: (x + 4).toFixed(2), y: row * ROW + 13, fill: text,
			}, xmlText(flame.label(layer, node, w))));
		frames.append(frame);
	});
	const height = flame.nRows * ROW + SVG_HEAD + SVG_MARGIN;
	flame.letter = letter;
	flame.resize();
	const all = svgElement('svg', {
		width: width + 2 * SVG_MARGIN, height,
		viewBox: `0 0 ${width + 2 * SVG_MARGIN} ${height}`,
		'font-family': 'ui-monospace, "DejaVu Sans Mono", Menlo, monospace',
		'font-size': 12,
	}, svgElement('rect', {width: '100%', height: '100%',
		fill: palette.background}),
	svgElement('text', {x: SVG_MARGIN, y: 20, fill: palette.text,
		'font-size': 14, 'font-weight': 'bold'}, xmlText(title)),
	svgElement('text', {x: SVG_MARGIN, y: 37, fill: palette.text},
		xmlText(subtitle)), frames);
	return new XMLSerializer().serializeToString(all);
}

// A file for the user to keep.
function saveFile(name, type, text) {
	const link = element('a', {
		download: name, href: URL.createObjectURL(new Blob([text], {type})),
	});

	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
