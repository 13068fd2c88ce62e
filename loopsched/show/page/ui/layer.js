// The head of the layer's view: what it is, what its schedule promises, against the best.

function drawHead() {
  const one = layer();
  byId('layer-title').textContent = one.name;
  byId('layer-facts').textContent = [
    `Layer ${one.number}`,
    one.count > 1 ? `occurs ${one.count} times` : '',
    `${one.kind}: ${one.dims.map(([dim, size]) => `${dim} ${size}`).join(' ')}`,
    scaled(one.flops, 'FLOP'),
  ].filter(Boolean).join(' · ');
  const place = shownOrder.indexOf(state.layer);
  byId('layer-previous').disabled = place === 0;
  byId('layer-next').disabled = place === shownOrder.length - 1;
  document.title = `${one.name} – ${DATA.title}`;
}

const GOALS = { time: 'least time', dram_bytes: 'least DRAM traffic', energy: 'least energy', edp: 'least energy times time' };

// What the search made small.
function goal() {
  const traffic = { point: ', by likely traffic,', low: ', by least traffic,' }[DATA.value] || '';
  return `${GOALS[DATA.objective] || DATA.objective}${traffic}`;
}

// One sentence that says how good the best schedule is, and why no more can be had.
function verdict() {
  const one = layer();
  const found = best();
  const parts = [el('strong', {}, scaled(found.time_s, 's')), ', bound by ', el('strong', {}, found.bound_by)];
  parts.push(one.proven
    ? one.space_size === 1 ? ': there is no other schedule. ' : `: proven ${goal()} of ${scaled(one.space_size)} schedules. `
    : `: the ${goal()} that was found${one.gap === null ? '' : `, at most ${percent(one.gap)} above the least that is possible`}. `);
  const over = found.time_s / one.problem_bound_s - 1;
  parts.push(over < 5e-4
    ? 'No implementation of this algorithm can be faster. '
    : `No implementation of this algorithm takes less than ${scaled(one.problem_bound_s, 's')}. `);
  const extra = found.dram_bytes / one.least_dram_bytes;
  parts.push(extra < 1.0005
    ? `It moves ${scaled(found.dram_bytes, 'B')} from and to ${BOUNDARIES[0].outer}, the least in any order.`
    : `It moves ${scaled(found.dram_bytes, 'B')} from and to ${BOUNDARIES[0].outer}, ${general(extra)} times the least in any order.`);
  return parts;
}

const METRICS = [
  ['time', (one) => one.time_s, (value) => scaled(value, 's'), 'what the schedule promises'],
  ['at least', (one) => one.time_bound_s, (value) => scaled(value, 's'), 'no run of this schedule is faster', 'rare'],
  ['DRAM', (one) => one.dram_bytes, (value) => scaled(value, 'B'), 'bytes from and to memory, promised'],
  ['needs', (one) => one.needs, (value) => scaled(value, 'B/s'), 'memory bandwidth at which the arithmetic would not wait', 'rare'],
  ['units', (one) => one.compute_utilisation, (value) => percent(value), 'share of the units’ time that is useful work'],
  ['energy', (one) => one.energy_pj, (value) => scaled(value * 1e-12, 'J'), 'of arithmetic and traffic', 'rare'],
];

function needs(evaluation) {
  return evaluation.required_dram_bandwidth_bytes_per_s;
}

function drawMetrics() {
  const { evaluation, text } = current();
  const mine = { ...evaluation, needs: needs(evaluation) };
  const other = best();
  const edited = text !== other.schedule;
  const tiles = METRICS.filter(([, read]) => read(mine) !== null && read(mine) !== undefined).map(([title, read, write, about, rare]) => {
    const [value, base] = [read(mine), read(other)];
    const same = Number(value) === Number(base);
    const tells = title !== 'needs';
    const worse = title === 'units' ? value < base : Number(value) > Number(base);
    const change = title === 'units' ? `${value < base ? '−' : '+'}${(100 * Math.abs(value - base)).toFixed(1)} points` : difference(value, base);
    return el('div', { class: rare ? 'tile rare' : 'tile', title: about },
      el('dt', {}, title), el('dd', {}, el('span', { class: 'value' }, write(value)),
        el('span', { class: `change ${edited && !same && tells ? (worse ? 'worse' : 'better') : ''}` },
          edited ? (same ? 'as the best' : change) : '')));
  });
  const bound = el('div', { class: 'tile', title: 'what takes the longest' }, el('dt', {}, 'bound by'),
    el('dd', {}, el('span', { class: 'value' }, boundMark(mine.bound_by)),
      el('span', { class: 'change' }, edited ? (mine.bound_by === other.bound_by ? 'as the best' : `not ${other.bound_by}`) : '')));
  tiles.splice(1, 0, bound);
  if (state.fault) {
    tiles.push(el('div', { class: 'tile not-scored', 'aria-hidden': 'true' }, el('dt', {}, 'this schedule cannot be scored; above, the last that could'),
      el('dd', {}, state.fault.split('\n').slice(0, 2).join(' '))));
  }
  byId('metrics').replaceChildren(...tiles);
  byId('metrics').classList.toggle('edited', edited);
  byId('layer').classList.toggle('stale', Boolean(state.fault));
  byId('verdict').replaceChildren(...verdict());
}

function drawProblem() {
  const one = layer();
  const { problem } = one;
  byId('problem').replaceChildren(
    el('p', {}, `${exact(one.macs)} multiply-accumulates: `, el('code', {}, one.statement)),
    el('table', { class: 'plain' },
      el('thead', {}, el('tr', {}, ['tensor', 'elements', 'bytes'].map((title, place) => el('th', { scope: 'col', class: place > 0 ? 'number' : 'words' }, title)))),
      el('tbody', {}, one.tensors.map((tensor, place) => el('tr', {},
        el('th', { scope: 'row', class: 'words' }, swatch(place), ` ${tensor.name}${tensor.name === one.output ? ' (written)' : ''}`),
        el('td', { class: 'number' }, exact(tensor.elements)),
        el('td', { class: 'number' }, `${exact(tensor.bytes)}${THIN}B`))))),
    el('p', { class: 'soft small' }, `${problem.name}: elements and bytes that are touched at all, padding not counted.`));
}

function swatch(place) {
  return el('span', { class: `swatch tensor-${place % 6}`, 'aria-hidden': 'true' });
}

function startLayer() {
  byId('layer-previous').addEventListener('click', () => { const next = neighbour(-1); if (next !== undefined) chooseLayer(next); });
  byId('layer-next').addEventListener('click', () => { const next = neighbour(1); if (next !== undefined) chooseLayer(next); });
  watch(['layer', 'filter'], drawHead);
  watch(['layer'], drawProblem);
  watch(['layer', 'schedule'], drawMetrics);
}
