// SPDX-License-Identifier: MIT
//
// What is said of a frame of the flame graph: as a tooltip, for the frame that
// is selected below the graph, and as text to take away.

const NAME_MAX = 240, GATHERED_NAMES = 3;

// {name, where, lines} of a place, lines as [class, text].
function describePlace(model, {layer, node}) {
	const f = isGathered(node) ? -1 : layer.tree.fn[node];

	return {...isGathered(node) ? nameGathered(model, layer, node)
		: nameFunction(model, f),
	lines: model.isPair ? pairLines(model, layer, node)
		: placeLines(model, layer, node)};
}

function nameFunction({functions}, f) {
	const fn = f < 0 ? {name: 'all', module: '', place: ''} : functions[f];

	return {name: visible(fn.name),
		where: visible([fn.module && baseName(fn.module), fn.place]
			.filter(Boolean).join(' · '))};
}

function nameGathered({functions}, layer, node) {
	const nodes = layer.gathered(node);
	const most = nodes.slice(0, GATHERED_NAMES).map(
		(n) => shorten(visible(functions[layer.tree.fn[n]].name), 60));

	if (nodes.length > most.length)
		most.push('…');
	return {
		name: plural(nodes.length, layer.isCallers ? 'more caller'
			: 'more callee') + ', each too narrow to be shown',
		where: most.join(', '),
	};
}

function placeLines(model, layer, node) {
	const {ofObjects} = model.choice;
	const e = model.estimate(layer.pathsOf(node));
	const whole = model.estimate(model.allPaths);
	const [first, second] = estimateText(e, ofObjects);
	const lines = [['figure', first + (ofObjects ? ' objects' : '')]];

	if (second)
		lines.push(['interval', second]);
	lines.push(['share', `${percent(e.value, whole.value)} of the view`]);
	lines.push(['samples', plural(e.samples, 'sample')]);
	if (isFaint(...['est', 'seen', 'samples'].map(
		(what) => layer.sumOf(what, node))))
		lines.push(['faint', 'too few samples to be significant']);
	return lines;
}

function pairLines(model, layer, node) {
	const row = model.compare(layer.pathsOf(node));

	return changeLines(isGathered(node)
		? {...row, isTold: isNotZero(row.change)}
		: {...row, ...layer.verdicts.of(node)}, model.choice.ofObjects);
}

// A frame in one line, by its sums alone: there may be thousands.
function placeTitle(model, whole, {layer, node}) {
	const {ofObjects} = model.choice;
	const name = isGathered(node)
		? nameGathered(model, layer, node).name
		: nameFunction(model, layer.tree.fn[node]).name;
	const est = layer.sumOf('est', node);

	return `${name}: ${amount(est, ofObjects)}` +
		(ofObjects ? ' objects' : '') + ` (${percent(est, whole)})`;
}

// The names of its functions from the one that allocates outwards, as far as
// the graph has them, as the report writes a stack.
function stackOf(model, {layer, node}) {
	const {tree, isCallers} = layer, lines = [];
	const first = isGathered(node) ? callerOfGathered(node) : node;

	for (let n = first; n > 0; n = tree.parent[n]) {
		const {name, module, place} = model.functions[tree.fn[n]];

		lines.push([name, place, module && `(${baseName(module)})`]
			.filter(Boolean).map(visible).join('  '));
	}
	return (isCallers ? lines.reverse() : lines).join('\n');
}

// The frame that is selected, below the graph, with what can be done with it.
class Selection {
	// on: {zoom(place), focus(function)}
	constructor(box, model, on) {
		const button = (name) => box.querySelector(`[data-do=${name}]`);

		this.box = box;
		this.model = model;
		this.place = null;
		this.buttons = {zoom: button('zoom'), focus: button('focus'),
			name: button('name'), stack: button('stack')};
		this.on = on;
		box.addEventListener('click', (e) => this.act(e.target.dataset.do));
	}

	key(key) {
		this.act({Enter: 'zoom', s: 'focus', c: 'name', C: 'stack'}[key]);
	}

	act(what) {
		const button = this.buttons[what];

		if (!button || button.disabled)
			return;
		if (what === 'zoom')
			this.on.zoom(this.place);
		else if (what === 'focus')
			this.on.focus(this.functionNumber);
		else
			this.copy(what, button);
	}

	get functionNumber() {
		const {layer, node} = this.place;

		return isGathered(node) ? -1 : layer.tree.fn[node];
	}

	// null: nothing is selected.
	show(place) {
		const {box, buttons} = this;

		this.place = place;
		box.hidden = !place;
		if (!place)
			return;
		const {name, where, lines} = describePlace(this.model, place);
		box.querySelector('strong').textContent = shorten(name, NAME_MAX);
		box.querySelector('.where').textContent = where;
		box.querySelector('.figures').replaceChildren(...figures(lines));
		buttons.zoom.disabled = place.layer.zoom === place.node;
		buttons.focus.disabled = buttons.name.disabled =
			this.functionNumber < 0;
		buttons.stack.disabled = place.node === 0;
	}

	// The text goes to the clipboard, as far as the browser lets it.
	async copy(what, button) {
		const {functions} = this.model, label = button.textContent;
		const text = what === 'name'
			? visible(functions[this.functionNumber].name)
			: stackOf(this.model, this.place);

		if (button.dataset.said)
			return;
		button.dataset.said = 'yes';
		try {
			await navigator.clipboard.writeText(text);
			button.textContent = 'Copied';
		} catch {
			button.textContent = 'Not allowed by the browser';
		}
		setTimeout(() => {
			button.textContent = label;
			delete button.dataset.said;
		}, 1500);
	}
}

const figures = (lines) => lines.map(
	([kind, text]) => element('span', {class: kind}, text));

// The box beside the pointer.
class Tip {
	constructor(box) {
		this.box = box;
	}

	hide() {
		this.box.hidden = true;
	}

	// Beside the pointer, and inside of the window.
	show({clientX, clientY}, {name, where = '', lines}) {
		const {box} = this;

		box.replaceChildren(
			element('strong', null, shorten(name, NAME_MAX)),
			element('span', {class: 'where'}, where),
			element('div', {class: 'figures'}, ...figures(lines)));
		box.hidden = false;
		this.scrolled = scrollY; // of the window, when this was right
		const {clientWidth, clientHeight} = document.documentElement;
		const {offsetWidth, offsetHeight} = box;
		const below = clientY + 18;

		box.style.left = `${Math.max(Math.min(clientX + 12,
			clientWidth - offsetWidth - 8), 8)}px`;
		box.style.top = `${below + offsetHeight > clientHeight
			? Math.max(clientY - offsetHeight - 12, 0) : below}px`;
	}
}
