// The start: what the address asks for, then the first drawing.

function drawTotals() {
  const sums = DATA.totals;
  byId('origin').replaceChildren(el('strong', {}, DATA.machine), ` · loopsched ${DATA.version} · `, el('code', {}, DATA.command));
  const bounds = sums.bound_by.map(([name, count]) => `${name} ${count}`);
  const tiles = [
    ['layers', String(LAYERS.length), sums.n_proven === LAYERS.length ? 'all proven best' : `${sums.n_proven} proven best`],
    ['time', scaled(sums.time_s, 's'), `at least ${scaled(sums.time_bound_s, 's')}`],
    [BOUNDARIES[0].outer, scaled(sums.dram_bytes, 'B'), `${scaled(sums.least_dram_bytes, 'B')} in any order`],
    ['rate', scaled(sums.flops / sums.time_s, 'FLOP/s'), `of ${DATA.peaks.map((one) => scaled(one.flops_per_s, 'FLOP/s')).join(', ')}`],
    ['bound by', bounds[0], bounds.slice(1).join(', ')],
    ['schedules', scaled(sums.space_size), `${scaled(sums.nodes)} nodes visited`],
  ];
  byId('totals').replaceChildren(...tiles.map(([title, value, more]) => el('div', { class: 'tile' },
    el('dt', {}, title), el('dd', {}, el('span', { class: 'value' }, value), el('span', { class: 'change' }, more)))));
  byId('footer').textContent = `${DATA.objective === 'time' ? 'Fastest' : `Least ${DATA.objective.replace('_', ' ')}`} schedules by the ${DATA.strategy} search of loopsched ${DATA.version}. kB, MB and GB are powers of 1,000; KiB, MiB and GiB of 1,024. This page is one file and asks nothing of any network.`;
}

function followAddress() {
  const asked = readAddress();
  if (!asked) return;
  chooseLayer(asked.index, asked.text);
  if (asked.fault) say(asked.fault);
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
  const asked = readAddress();
  chooseLayer(asked ? asked.index : 0, asked ? asked.text : undefined);
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
