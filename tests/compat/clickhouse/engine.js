// SPDX-License-Identifier: MIT
// Today's ClickHouse in this process (chDB).  Each line of standard input is a
// request, {sql, format, to}: its answer goes into the file `to`, and a line
// {error} or {} to standard output.
//
//     NODE_PATH=DIR/node_modules node engine.js DATA
"use strict";
const fs = require("fs");
const readline = require("readline");
const {Session} = require("chdb");

const session = new Session(process.argv[2]);

async function answer(line) {
	const {sql, format, to} = JSON.parse(line);

	try {
		const done = await session.queryAsync(sql, {format});

		fs.writeFileSync(to, done.bytes());
		return {};
	} catch (error) {
		return {error: String(error.message)};
	}
}

async function main() {
	for await (const line of readline.createInterface(process.stdin))
		console.log(JSON.stringify(await answer(line)));
	session.close();
}

main();
