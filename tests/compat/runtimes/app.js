// SPDX-License-Identifier: MIT
// What the runtimes' test runs under node: buffers, zlib, callbacks from V8's
// built-in functions, promises, and blocks of the add-on beside this file.
'use strict';
const zlib = require('zlib');
const addon = require('./addon.node');

function hold(n) {
	const all = [];
	for (let i = 0; i < n; i++)
		all.push(Buffer.allocUnsafeSlow(3000));
	return all;
}

function pack(n) {
	for (let i = 0; i < n; i++)
		zlib.deflateSync(Buffer.alloc(2000, i));
}

function native(n) {
	addon.fill(n);
}

function sorted(n) {
	return Array.from({length: n}, (_, i) => i).sort((x, y) => {
		if (x % 50 === 0)
			native(1);
		return y - x;
	});
}

function mapped(n) {
	return Array.from({length: n}, () => native(2));
}

function replaced() {
	return 'a-b-c-d'.repeat(20).replace(/b/g, () => {
		native(1);
		return 'x';
	});
}

async function later(n) {
	await null;
	for (const x of [1, 2, 3]) {
		await x;
		native(n);
	}
}

async function work() {
	const kept = [];
	for (let i = 0; i < 60; i++) {
		kept.push(hold(20));
		pack(5);
		native(20);
		sorted(500);
		mapped(20);
		replaced();
		await later(3);
	}
	return kept;
}

work();
