// SPDX-License-Identifier: MIT
//
// Names for little room.  What tells least goes first: template arguments and
// parameters, then the middle of the scopes.  The last part, which is the
// method, stays as long as there is room for it.

const OPERATOR = /operator(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|<=?|>=?)/y;
const CLOSING = {'<': '>', '(': ')'};
// Longer ones are not looked into: brackets cost as much as their square.
const PARSED_MAX = 2000;

// The end of the operator whose name begins at `at`, or `at`.
function skipOperator(name, at) {
	OPERATOR.lastIndex = at;
	return name[at] === 'o' && !/\w/.test(name[at - 1] ?? ' ') &&
		OPERATOR.test(name) ? OPERATOR.lastIndex : at;
}

// Where the bracket at `at` is closed; -1 if it is not.
function closingOf(name, at) {
	const open = [];

	for (let i = at; i < name.length; i++) {
		const after = skipOperator(name, i), c = name[i];

		if (after > i)
			i = after - 1;
		else if (CLOSING[c])
			open.push(CLOSING[c]);
		else if (c === '>' && name[i - 1] === '-')
			continue;
		else if (c === open[open.length - 1]) {
			open.pop();
			if (!open.length)
				return i;
		}
	}
	return -1;
}

// Parts between "::" outside of brackets: [text, isBracket]...  What is in
// brackets is one piece, and "::" is one.
function piecesOf(name) {
	const pieces = [];
	let from = 0;

	for (let i = 0; i < name.length; i++) {
		const after = skipOperator(name, i);
		const end = after > i || !CLOSING[name[i]] ? -1
			: closingOf(name, i);
		const length = end >= 0 ? end - i + 1
			: name.startsWith('::', i) ? 2 : 0;

		if (after > i) {
			i = after - 1;
		} else if (length) {
			if (i > from)
				pieces.push(name.slice(from, i));
			pieces.push(name.slice(i, i + length));
			from = i + length;
			i = from - 1;
		}
	}
	if (from < name.length)
		pieces.push(name.slice(from));
	return pieces;
}

// What is in brackets as "…", but for brackets that are a scope themselves, as
// "(anonymous namespace)" and Rust's "<T as Trait>", and Python's "<module>".
function foldBrackets(pieces) {
	return pieces.map((piece, i) => {
		const isScope = (!i || pieces[i - 1] === '::') &&
			pieces[i + 1] === '::';

		if (!CLOSING[piece[0]] || piece.length <= 3 ||
		    /^<[a-z]+>$/.test(piece) &&
		    /^$|::$|\.$/.test(pieces[i - 1] ?? ''))
			return piece;
		return isScope ? piece[0] +
			foldBrackets(piecesOf(piece.slice(1, -1))).join('') +
			piece[piece.length - 1]
			: `${piece[0]}…${piece[piece.length - 1]}`;
	});
}

function cutMiddle(text, room) {
	const head = Math.ceil((room - 1) / 2), tail = room - 1 - head;

	return text.length <= room ? text : room < 3 ? ''
		: `${text.slice(0, head)}…${text.slice(text.length - tail)}`;
}

// A name in at most so many letters; '' where nothing of it can be told.
function shorten(name, room) {
	if (name.length <= room)
		return name;
	if (name.length > PARSED_MAX)
		return cutMiddle(name, room);
	const pieces = foldBrackets(piecesOf(name));
	const folded = pieces.join('');
	if (folded.length <= room)
		return folded;
	const at = pieces.lastIndexOf('::') + 1;
	const own = pieces.slice(at);
	const last = [own, own.filter((p) => p !== '(…)'),
		own.filter((p) => p !== '(…)' && p !== '<…>')]
		.map((part) => part.join(''))
		.find((text, i) => text.length <= room - 2 || i === 2);
	if (!at || last.length > room - 2)
		return cutMiddle(last, room);
	const left = room - last.length - 3;
	const head = pieces.slice(0, at - 1).join('').slice(0, Math.max(left, 0))
		.replace(/:+$/, '');
	return head.length < 3 ? `…${last}` : `${head}…::${last}`;
}

// Names that stand together: two different ones are never shown as one.
function shortenAll(names, room) {
	const short = names.map((name) => shorten(name, room));
	const of = new Map(), told = new Set();

	short.forEach((text, i) => {
		if (of.has(text) && of.get(text) !== names[i])
			told.add(text);
		of.set(text, names[i]);
	});
	return short.map((text, i) => told.has(text) ? names[i] : text);
}
