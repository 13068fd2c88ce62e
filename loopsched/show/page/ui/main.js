// The start: what the address asks for, then the first drawing.

function drawTotals() {
  const sums = DATA.totals;
  byId('origin').replaceChildren(...[DATA.arch.title, `loopsched ${DATA.version}`, DATA.command && el('code', {}, ...commandWords(DATA.command))]
    .filter(Boolean).flatMap((part, place) => [place ? ' · ' : '', part]));
  const bounds = sums.bound_by.map(([name, count]) => `${name} ${count}`);
  const tiles = [
    ['layers', String(LAYERS.length), sums.n_proven === LAYERS.length ? 'all proven best' : `${sums.n_proven} proven best`],
    ['time', scaled(sums.time_s, 's'), `at least ${scaled(sums.time_bound_s, 's')}`, 'no run of these schedules is faster'],
    [BOUNDARIES[0].outer, scaled(sums.dram_bytes, 'B'), `at least ${scaled(sums.least_dram_bytes, 'B')}`, 'what no order of execution avoids'],
    ['rate', scaled(sums.flops / sums.time_s, 'FLOP/s'), `of ${DATA.peaks.map((one) => scaled(one.flops_per_s, 'FLOP/s')).join(', ')}`],
    ['bound by', bounds[0], bounds.slice(1).join(', ')],
    ['schedules', scaled(sums.space_size), `${scaled(sums.nodes)} nodes visited`],
  ];
  if (sums.energy_pj !== null) tiles.splice(3, 0, ['energy', scaled(sums.energy_pj * 1e-12, 'J'), 'of arithmetic and traffic']);
  byId('totals').replaceChildren(...tiles.map(([title, value, more, about]) => el('div', { class: 'tile', title: about },
    el('dt', {}, title), el('dd', {}, el('span', { class: 'value' }, value), el('span', { class: 'change' }, more)))));
  byId('footer').textContent = `Schedules of ${goal()} by ${DATA.strategy ? `the ${DATA.strategy}` : 'a'} search of loopsched ${DATA.version}. kB, MB and GB are powers of 1,000; KiB, MiB and GiB of 1,024. This page is one file and asks nothing of any network.`;
}

function followAddress() {
  const asked = readAddress();
  if (asked) follow(asked);
}

function follow({ index, text, fault }) {
  chooseLayer(index, text);
  byId('notice').textContent = fault || '';
}

function start() {
  drawTotals();
  startTable();
  startRoofline();
  startLayer();
  startEditor();
  startNest();
  startLevels();
  startAlternatives();
  startSlope();
  startHelp();
  startMore();
  follow(readAddress() || { index: 0 });
  addEventListener('hashchange', followAddress);
  let width = document.documentElement.clientWidth;
  let waiting = 0;
  addEventListener('resize', () => {
    if (width === document.documentElement.clientWidth) return;
    width = document.documentElement.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => changed('size'), 60);
  });
}

start();
