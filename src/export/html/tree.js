// SPDX-License-Identifier: MIT
//
// Call paths as a tree.  Nodes are numbered in the order of a walk that sees
// the children with most bytes first: node n and what is below it are n up to
// end[n], and so are the paths that pass through it, order[lo[n]..hi[n]).  Node
// 0 is the root, all of them.

// sequences(p, visit) calls visit(function) from the root of path p on.
function growTrie(paths, sequences) {
	const parent = [-1], fn = [-1], leaf = new Int32Array(paths.length);
	let slots = new Int32Array(1024), used = 0;
	const hash = (node, f) =>
		(Math.imul(node, 0x9e3779b1) ^ Math.imul(f, 0x85ebca6b)) >>> 7;
	const place = (node, f) => {
		let at = hash(node, f) & (slots.length - 1);

		while (slots[at] && (parent[slots[at]] !== node ||
		       fn[slots[at]] !== f))
			at = (at + 1) & (slots.length - 1);
		return at;
	};
	const grow = () => {
		slots = new Int32Array(2 * slots.length);
		for (let n = 1; n < parent.length; n++)
			slots[place(parent[n], fn[n])] = n;
	};

	paths.forEach((p, i) => {
		let node = 0;

		sequences(p, (f) => {
			const at = place(node, f);

			if (slots[at]) {
				node = slots[at];
				return;
			}
			slots[at] = parent.length;
			parent.push(node);
			fn.push(f);
			node = slots[at];
			if (2 * ++used > slots.length)
				grow();
		});
		leaf[i] = node;
	});
	return {parent, fn, leaf};
}

// Sums over the nodes below each one.
function addUp(parent, values) {
	for (let n = parent.length - 1; n > 0; n--)
		values[parent[n]] += values[n];
	return values;
}

// The children of each node, heaviest first, as lists one after the other.
function orderChildren(parent, weights) {
	const n = parent.length, start = new Int32Array(n + 2);

	for (let i = 1; i < n; i++)
		start[parent[i] + 2]++;
	for (let i = 2; i < n + 2; i++)
		start[i] += start[i - 1];
	const list = new Int32Array(n - 1);
	for (let i = 1; i < n; i++)
		list[start[parent[i] + 1]++] = i;
	for (let i = 0; i < n; i++)
		if (start[i + 1] - start[i] > 1)
			list.subarray(start[i], start[i + 1]).sort(
				(a, b) => weights[b] - weights[a] || a - b);
	return {start, list};
}

function buildTree(paths, sequences, weightOfPath) {
	const grown = growTrie(paths, sequences);
	const n = grown.parent.length;
	const weights = new Float64Array(n);
	const tree = {
		n, fn: new Int32Array(n), parent: new Int32Array(n),
		depth: new Int32Array(n), end: new Int32Array(n),
		lo: new Int32Array(n), hi: new Int32Array(n), maxDepth: 0,
	};

	paths.forEach((p, i) => { weights[grown.leaf[i]] += weightOfPath[p]; });
	const children = orderChildren(grown.parent,
		addUp(grown.parent, weights));
	const number = new Int32Array(n);
	const stack = [0];
	for (let next = 0; stack.length; next++) {
		const old = stack.pop(), up = number[grown.parent[old]] || 0;

		number[old] = next;
		tree.fn[next] = grown.fn[old];
		tree.parent[next] = old ? up : -1;
		tree.depth[next] = old ? tree.depth[up] + 1 : 0;
		tree.maxDepth = Math.max(tree.maxDepth, tree.depth[next]);
		for (let i = children.start[old + 1] - 1;
		     i >= children.start[old]; i--)
			stack.push(children.list[i]);
	}
	for (let i = n - 1; i >= 0; i--) {
		tree.end[i] = Math.max(tree.end[i], i + 1);
		if (i)
			tree.end[tree.parent[i]] =
				Math.max(tree.end[tree.parent[i]], tree.end[i]);
	}
	orderPaths(tree, paths, grown.leaf, number);
	return tree;
}

function orderPaths(tree, paths, leaf, number) {
	const start = new Int32Array(tree.n + 1);

	for (const old of leaf)
		start[number[old] + 1]++;
	for (let i = 0; i < tree.n; i++)
		start[i + 1] += start[i];
	const fill = start.slice();
	tree.order = new Int32Array(paths.length);
	paths.forEach((p, i) => {
		tree.order[fill[number[leaf[i]]]++] = p;
	});
	for (let i = 0; i < tree.n; i++) {
		tree.lo[i] = start[i];
		tree.hi[i] = start[tree.end[i]];
	}
	tree.own = start; // order[own[n]..own[n + 1]) end at node n
}

const pathsOfNode = (tree, node) =>
	tree.order.subarray(tree.lo[node], tree.hi[node]);

// What each node has of the choice: of a profile est, seen, samples.
function sumTree(tree, model) {
	const sums = {};

	for (const what of model.summed) {
		const values = new Float64Array(tree.n), of = model[what];

		for (let n = 0; n < tree.n; n++)
			for (let i = tree.own[n]; i < tree.own[n + 1]; i++)
				values[n] += of[tree.order[i]];
		sums[what] = addUp(tree.parent, values);
	}
	return sums;
}

// ---- the trees of the page ----

// Of a path the frames from..to, either way, without what recedes if only the
// program's `own` functions are shown; `kept` is there in any case.
function visitFrames({frames, foreign}, from, to, own, visit, kept = -1) {
	const step = from < to ? 1 : -1;

	for (let i = from; i !== to + step; i += step)
		if (!own || !foreign[i] || i === kept)
			visit(frames[i]);
}

function treeOfCalls(model, weights, own) {
	const {paths} = model;

	return buildTree(model.allPaths, (p, visit) => visitFrames(paths,
		paths.start[p], paths.start[p + 1] - 1, own, visit), weights);
}

// From the function that allocates outwards; what only passes allocations on
// is left out.
function treeOfCallers(model, weights, own) {
	const {paths} = model;

	return buildTree(model.allPaths, (p, visit) => visitFrames(paths,
		paths.flatAt[p], paths.start[p], own, visit), weights);
}

// What calls a function, and what it calls, from its outermost call on.  Both
// have the function as the only child of the root.
function treesAround(model, f, weights, own) {
	const {paths} = model;
	const tree = (end) => buildTree(model.pathsWith(f), (p, visit) => {
		const at = paths.frames.indexOf(f, paths.start[p]);

		visitFrames(paths, at, end(p), own, visit, at);
	}, weights);

	return [tree((p) => paths.start[p]), tree((p) => paths.start[p + 1] - 1)];
}
