// SPDX-License-Identifier: MIT
//
// Functions that only their name tells apart, as src/compare/rename.c finds them:
// of a function that one side lacks, each path is written with a hole in its
// place; one of the other side with the same holes is the same function.

const HOLE = -1;
// Pairs that are looked at, as there.
const RENAMES_MAX = 256;
// Samples with which a function is missing from the other side for a reason, as
// there.
const RENAME_SAMPLES_MIN = 12;

// visit(frames of a path up to where it is flat, bytes, bytes of the objects
// that were sampled, samples) for all that were sampled; the model has chosen
// all that was allocated.
function eachOwn({paths: {start, frames, flatAt}, nPaths, est, seen, samples},
		 visit) {
	for (let p = 0; p < nPaths; p++)
		if (est[p] > 0)
			visit(frames.subarray(start[p], flatAt[p] + 1), est[p],
			      seen[p], samples[p]);
}

function framesOf(model) {
	const has = new Uint8Array(model.functions.length);

	eachOwn(model, (path) => path.forEach((f) => { has[f] = 1; }));
	return has;
}

// The only frame of the path that the other side lacks; HOLE if there is none,
// or more than one.
function onlyOwn(path, others) {
	let only = HOLE;

	for (const f of path) {
		if (others[f] || f === only)
			continue;
		if (only !== HOLE)
			return HOLE;
		only = f;
	}
	return only;
}

// Shapes to [old, new], each a map from functions to their bytes there; all
// bytes of each function that only one side has; and whether the other side
// lacks it for a reason, or chance may have put its few samples on one side.
function findShapes(sides) {
	const has = sides.map(framesOf), shapes = new Map();
	const [bytes, seen, samples] = [0, 1, 2].map(
		() => new Float64Array(sides[0].functions.length));

	sides.forEach((model, s) => eachOwn(model, (path, est, part, n) => {
		const others = has[1 - s], only = onlyOwn(path, others);

		for (const f of path) {
			if (others[f])
				continue;
			bytes[f] += est;
			seen[f] += part;
			samples[f] += n;
		}
		if (only === HOLE)
			return;
		const key = path.map((f) => f === only ? HOLE : f).join();
		if (!shapes.has(key))
			shapes.set(key, [new Map(), new Map()]);
		const own = shapes.get(key)[s];
		own.set(only, (own.get(only) || 0) + est);
	}));
	const isMissed = (f) =>
		samples[f] >= RENAME_SAMPLES_MIN || seen[f] >= bytes[f];

	return {shapes: [...shapes.values()], bytes, isMissed};
}

// Old functions to new ones, most of whose bytes are where the other is.
function findRenamed(older, newer) {
	const {functions} = newer;
	const {shapes, bytes, isMissed} = findShapes([older, newer]);
	const renamed = new Map(), taken = new Set();
	let tried = 0;

	for (const [olds, news] of shapes) {
		const [a] = olds.keys(), [b] = news.keys();
		let bytesOfA = 0, bytesOfB = 0;

		if (olds.size !== 1 || news.size !== 1 || renamed.has(a) ||
		    taken.has(b) || tried++ >= RENAMES_MAX)
			continue;
		for (const [old, fresh] of shapes) {
			if (fresh.has(b))
				bytesOfA += old.get(a) || 0;
			if (old.has(a))
				bytesOfB += fresh.get(b) || 0;
		}
		if (functions[a].home === functions[b].home &&
		    isMissed(a) && isMissed(b) &&
		    bytesOfA > bytes[a] / 2 && bytesOfB > bytes[b] / 2) {
			renamed.set(a, b);
			taken.add(b);
		}
	}
	return renamed;
}
