// SPDX-License-Identifier: MIT
//
// Where the frames of a flame graph are.  A frame has a place if it is wide
// enough to be seen, so that the work is bounded by the screen and not by the
// profile; callees of one function that are too small for that share a place.

// A place has the number of its node; what the small callees of a node share
// has the complement of that.
const gatheredBelow = (node) => ~node;
const isGathered = (place) => place < 0;
const callerOfGathered = (place) => ~place;

// One tree with its sums.
class Layer {
	// goesUp: it is drawn from below; isCallers: a child of a node is what
	// calls it; `verdicts` of the changes that are shown, null of one profile
	constructor(tree, sums, {goesUp = false, isCallers = goesUp} = {},
		verdicts = null) {
		this.tree = tree;
		this.sums = sums;
		this.goesUp = goesUp;
		this.isCallers = isCallers;
		this.verdicts = verdicts;
		this.zoom = 0;
	}

	// rows[depth]: [x, width, place]..., in shares of the width.
	layOut(widthMin) {
		const {tree, sums, zoom} = this;
		const rows = Array.from({length: tree.maxDepth + 2}, () => []);
		const depth = tree.depth[zoom];

		this.rows = rows;
		this.widthMin = widthMin;
		this.counts = new Map();
		if (!(sums.est[zoom] > 0))
			return;
		for (let n = zoom; n >= 0; n = tree.parent[n])
			rows[tree.depth[n]].push(0, 1, n);
		for (let d = depth; rows[d].length; d++)
			for (let i = 0; i < rows[d].length; i += 3)
				if (!isGathered(rows[d][i + 2]))
					this.layOutCallees(rows[d][i],
						rows[d][i + 2], rows[d + 1]);
	}

	// The small ones are the last.
	layOutCallees(x, node, row) {
		const {tree, sums, widthMin} = this;
		const whole = sums.est[this.zoom];
		let small = 0, n = 0;

		for (let c = node + 1; c < tree.end[node]; c = tree.end[c]) {
			const w = sums.est[c] / whole;

			if (w >= widthMin) {
				row.push(x, w, c);
				x += w;
			} else if (w > 0) {
				small += w;
				n++;
			}
		}
		if (!n || small < widthMin)
			return;
		row.push(x, small, gatheredBelow(node));
		this.counts.set(gatheredBelow(node), n);
	}

	// The nodes that share a place, heaviest first.
	gathered(place) {
		const {tree, sums} = this, nodes = [];
		const node = callerOfGathered(place);
		const least = this.widthMin * sums.est[this.zoom];

		for (let c = node + 1; c < tree.end[node]; c = tree.end[c])
			if (sums.est[c] > 0 && sums.est[c] < least)
				nodes.push(c);
		return nodes.sort((a, b) => sums.est[b] - sums.est[a]);
	}

	// The call paths of a place.
	pathsOf(place) {
		const {tree} = this;

		return isGathered(place)
			? this.gathered(place).flatMap((node) =>
				[...pathsOfNode(tree, node)])
			: pathsOfNode(tree, place);
	}

	// What a place has of one of the sums.
	sumOf(what, place) {
		const values = this.sums[what];

		return isGathered(place)
			? this.gathered(place).reduce((sum, n) => sum + values[n], 0)
			: values[place];
	}
}

// The place at x; null if nothing is there.
function findAt(row, x) {
	let below = 0, above = row.length / 3;

	while (below < above) {
		const middle = (below + above) >> 1;

		if (row[3 * middle] + row[3 * middle + 1] <= x)
			below = middle + 1;
		else
			above = middle;
	}
	const found = 3 * below;
	return found < row.length && row[found] <= x ? row[found + 2] : null;
}

function neighbour(tree, est, node, where) {
	const up = tree.parent[node];
	let best = node;

	if (where === 'out')
		return up >= 0 ? up : node;
	if (where === 'in') {
		for (let c = node + 1; c < tree.end[node]; c = tree.end[c])
			if (best === node || est[c] > est[best])
				best = c;
		return best;
	}
	if (up < 0)
		return node;
	for (let c = up + 1; c < tree.end[up]; c = tree.end[c]) {
		if (!(est[c] > 0))
			continue;
		if (where === 'after' && c > node)
			return c;
		if (where === 'before' && c < node)
			best = c;
	}
	return best;
}
