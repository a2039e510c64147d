// SPDX-License-Identifier: MIT
//
// The page of `sampleprof rss --html`: the panel of resident memory alone.

const data = JSON.parse(byId('data').textContent);
const title = `${visible(data.program)}: resident memory`;

document.title = title;
byId('program').textContent = title;
byId('facts').textContent = data.facts;
byId('generator').textContent = data.generator;
byId('theme').addEventListener('click', turnTheme);
document.addEventListener('keydown', (e) => {
	if (e.key === 'd' && !e.ctrlKey && !e.altKey && !e.metaKey)
		turnTheme();
});
showLedgers(byId('resident'), data);
document.body.dataset.state = 'ready';
