// SPDX-License-Identifier: MIT
//
// Colours of frames.  They tell modules apart: those with most bytes have one
// each, and shades tell functions apart.

function readPalette() {
	const style = getComputedStyle(document.documentElement);
	const get = (name) => style.getPropertyValue(name).trim();

	return {
		background: get('--panel'), text: get('--frame-text'),
		faintText: get('--frame-faint-text'), outline: get('--outline'), accent: get('--accent'),
		gathered: get('--gathered'),
		match: get('--match'), matchText: get('--match-text'),
		colourOf: coloursOf(parseFloat(get('--frame-saturation')),
			parseFloat(get('--frame-lightness'))),
		changeOf: changeColours(parseFloat(get('--pale-lightness')),
			parseFloat(get('--strong-lightness'))),
	};
}

const HUES = [212, 152, 32, 268, 340, 186, 90];
const hueOfFunction = {hues: null, shades: null};

// The colour of each function, for a saturation and a lightness in percent.
function coloursOf(saturation, lightness) {
	const {hues, shades} = hueOfFunction;
	const all = `hsl(220 8% ${lightness}%)`;
	const made = hues.map((hue, f) => hue < 0
		? `hsl(220 8% ${lightness + shades[f]}%)`
		: `hsl(${hue + 3 * shades[f]} ${saturation}% ` +
			`${lightness + shades[f]}%)`);

	return (f) => f < 0 ? all : made[f];
}

// Of a change, from -1, all of it shrank, to 1, all of it grew.
function changeColours(pale, strong) {
	return (net) => {
		const part = Math.sqrt(Math.abs(net));

		return `hsl(${net < 0 ? 214 : 6} ${(6 + 66 * part).toFixed(1)}% ` +
			`${(pale + (strong - pale) * part).toFixed(1)}%)`;
	};
}

// The modules with a colour, those with most bytes first.
function giveColours(model) {
	const bytes = new Map();

	model.functions.forEach(({module}) => bytes.set(module, 0));
	for (let p = 0; p < model.nPaths; p++) {
		const {module} = model.functions[model.flatOf(p)];

		bytes.set(module, bytes.get(module) + model.est[p]);
	}
	bytes.delete('');
	const modules = [...bytes].sort((a, b) => b[1] - a[1])
		.slice(0, HUES.length).map(([module]) => module);
	hueOfFunction.hues = model.functions.map(
		({module}) => HUES[modules.indexOf(module)] ?? -1);
	hueOfFunction.shades = model.functions.map(
		({name}) => shadeOf(name));
	return modules;
}

function shadeOf(name) {
	let h = 0;

	for (let i = 0; i < name.length; i++)
		h = (Math.imul(h, 31) + name.charCodeAt(i)) | 0;
	return ((h >>> 5) % 5 - 2) * 1.6;
}
