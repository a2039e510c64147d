// SPDX-License-Identifier: MIT
//
// Figures as text, as src/text/text.c writes them.  Nothing depends on the
// language of the browser.

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
const COUNT_UNITS = ['', 'K', 'M', 'G', 'T', 'P', 'E'];
const DAY_NS = 24 * 3600e9;

// Without the noise of how it was added up.
const steady = (x) => Math.abs(x) < 1e9 ? nearest(x * 1e6) / 1e6 : x;

// To the nearest, a half to the even one, as C does.
function nearest(x) {
	const below = Math.floor(x), rest = x - below;

	return below + (rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? 1 : 0);
}

// With so many decimals.
const fixed = (x, decimals) => (nearest(steady(x) * 10 ** decimals) /
	10 ** decimals).toFixed(decimals);

// Digits and unit: one decimal where `fine`, else three digits.
function split(amount, rounding, fine, ofObjects) {
	const base = ofObjects ? 1000 : 1024;
	let unit = 0, scaled = amount, decimals;

	if (ofObjects && amount < 1e5)
		return [rounding(steady(amount)).toFixed(0), 0];
	while (scaled >= base && unit + 1 < BYTE_UNITS.length) {
		scaled /= base;
		unit++;
	}
	for (decimals = unit ? 2 : 0; decimals >= 0; decimals--) {
		const grid = 10 ** decimals;
		const rounded = rounding(steady(scaled * grid)) / grid;

		if (rounded < 10 || (decimals === 1 && (fine || rounded < 100)) ||
		    decimals === 0) {
			scaled = rounded;
			break;
		}
	}
	if (scaled >= base && unit + 1 < BYTE_UNITS.length) {
		scaled /= base;
		unit++;
		decimals = 2;
	}
	return [scaled.toFixed(decimals), unit];
}

const withCommas = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ',');

const count = (n) => withCommas(String(nearest(steady(n))));

// Bytes are below 1024 of a unit, and have none.
const grouped = (digits, ofObjects) => ofObjects ? withCommas(digits) : digits;

function withUnit([digits, unit], ofObjects) {
	const name = (ofObjects ? COUNT_UNITS : BYTE_UNITS)[unit];

	return grouped(digits, ofObjects) + (name ? ' ' + name : '');
}

// "17 B", "1.04 KiB"; of objects "1,200", "1.04 M".
function amount(value, ofObjects) {
	if (!Number.isFinite(value))
		return 'unknown';
	return value > 0
		? withUnit(split(value, nearest, true, ofObjects), ofObjects)
		: '0';
}

// What there is without an upper limit: a profile may lack something.
const atLeast = (lo, ofObjects) => lo > 0 ? 'at least ' +
	withUnit(split(lo, Math.floor, true, ofObjects), ofObjects) : 'unknown';

// "[192, 231] MiB", rounded outwards; "exact" if the limits meet.
function interval({lo, hi}, ofObjects) {
	if (!Number.isFinite(hi))
		return atLeast(lo, ofObjects);
	const low = split(lo, Math.floor, false, ofObjects);
	const high = split(hi, Math.ceil, false, ofObjects);
	const unit = (ofObjects ? COUNT_UNITS : BYTE_UNITS)[high[1]];

	if (lo >= hi)
		return 'exact';
	if (lo > 0 && low[1] !== high[1])
		return `[${withUnit(low, ofObjects)}, ${withUnit(high, ofObjects)}]`;
	return `[${lo > 0 ? grouped(low[0], ofObjects) : 0}, ` +
		`${grouped(high[0], ofObjects)}]${unit ? ' ' + unit : ''}`;
}

// What to read first: the interval where there are few samples.
function estimateText(e, ofObjects) {
	if (!Number.isFinite(e.hi))
		return e.lo > 0 || !e.samples ? [interval(e, ofObjects), '']
			: [amount(e.value, ofObjects), 'limits unknown'];
	if ((e.samples > FEW_SAMPLES && e.lo > 0) || e.lo >= e.hi)
		return [amount(e.value, ofObjects), interval(e, ofObjects)];
	if (!e.samples)
		return ['\u2264 ' + withUnit(split(e.hi, Math.ceil, false, ofObjects),
			ofObjects), ''];
	return [interval(e, ofObjects), '~' + amount(e.value, ofObjects)];
}

function percent(part, whole) {
	const share = steady(100 * part / whole);

	if (!(whole > 0))
		return '–';
	if (!(part > 0))
		return '0 %';
	return share < 0.05 ? '<0.1 %' : fixed(share, 1) + ' %';
}

// A moment, with four digits.
function moment(ns) {
	const units = ['ns', 'us', 'ms', 's'];
	let scaled = ns, unit = 0, decimals = 3;

	for (; scaled >= 999.95 && unit < 3; unit++)
		scaled /= 1000;
	for (let bound = 9.9995; decimals && scaled >= bound; bound *= 10)
		decimals--;
	decimals = unit ? decimals : 0;
	// printf() sees halves only where the number is one; they go to the even.
	return (Number.isInteger(scaled * 8) ? fixed(scaled, decimals)
		: scaled.toFixed(decimals)) + ` ${ns ? units[unit] : 's'}`;
}

// Of a run: moments stand beside it, with more digits.
function runLength(ns) {
	return ns >= 1e9 && ns < 1e10
		? `${(Math.floor(ns / 1e7) / 100).toFixed(2)} s` : duration(ns);
}

// How long something took, rounded down.
function duration(ns) {
	const of = (unit, within = Infinity) => Math.floor(ns / unit) % within;
	const two = (n) => String(n).padStart(2, '0');

	if (ns < 1e6)
		return `${of(1e3)} us`;
	if (ns < 1e9)
		return `${of(1e6)} ms`;
	if (ns < 60e9)
		return `${of(1e9)}.${of(1e8, 10)} s`;
	if (ns < 3600e9)
		return `${of(60e9)} min ${two(of(1e9, 60))} s`;
	if (ns < DAY_NS)
		return `${of(3600e9)} h ${two(of(60e9, 60))} min`;
	return `${of(DAY_NS)} d ${two(of(3600e9, 24))} h`;
}

const baseName = (path) => path.slice(path.lastIndexOf('/') + 1) || path;

const plural = (n, what) => `${count(n)} ${what}${n === 1 ? '' : 's'}`;

const level95 = (confidence) =>
	`${Number((Math.floor(confidence * 1e6) / 1e4).toFixed(4))} %`;

// ---- elements ----

// What an untrusted name may do to a page: nothing.  It is only ever the text
// of an element, and what a terminal or a reader could stumble over is shown.
function visible(text) {
	return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
		(c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

function element(tag, attributes, ...children) {
	const e = document.createElement(tag);

	for (const [name, value] of Object.entries(attributes || {}))
		if (name === 'class')
			e.className = value;
		else if (value !== null)
			e.setAttribute(name, value);
	e.append(...children);
	return e;
}

const byId = (id) => document.getElementById(id);

// The other theme than what is seen, until the page is closed.
function turnTheme() {
	const root = document.documentElement;
	const isDark = getComputedStyle(root)
		.getPropertyValue('color-scheme').trim() === 'dark';

	root.dataset.theme = isDark ? 'light' : 'dark';
}
