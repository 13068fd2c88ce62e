// The table of layers: sorted by its titles, filtered above it, walked with the arrow keys.

const SHAPES = ['●', '■', '▲', '◆', '▼', '✚'];

function shapeOf(boundBy) {
  const index = ['compute', ...BOUNDARIES.map((one) => one.outer)].indexOf(boundBy);
  return SHAPES[Math.max(0, index) % SHAPES.length];
}

function boundMark(boundBy) {
  const index = ['compute', ...BOUNDARIES.map((one) => one.outer)].indexOf(boundBy);
  return el('span', { class: 'bound' },
    el('span', { class: `mark bound-${Math.max(0, index)}`, 'aria-hidden': 'true' }, shapeOf(boundBy)), ` ${boundBy}`);
}

const COLUMNS = [
  { key: 'number', title: '#', value: (one) => one.number },
  { key: 'name', title: 'layer', value: (one) => one.name, cell: (one) => breakable(one.name), kind: 'text', head: true },
  { key: 'count', title: 'times', value: (one) => one.count, cell: (one) => (one.count === 1 ? '1' : `×${one.count}`), rare: 2, about: 'how often the layer occurs' },
  { key: 'time', title: 'time', value: (one) => one.found[0].time_s, cell: (one) => (isCounted ? scaled(one.found[0].time_s, 's') : timeCell(one, timeOf(one))), about: 'what the best schedule promises' },
  { key: 'measured', title: 'measured', value: (one) => one.measured?.measured_s ?? Infinity, cell: measuredCell, about: 'what a kernel took on the CPU: the median of repeated calls' },
  { key: 'all', title: 'in all', value: timeOf, cell: (one) => timeCell(one, timeOf(one)), rare: 1, about: 'time, as often as the layer occurs' },
  { key: 'bound', title: 'bound by', value: (one) => one.found[0].bound_by, cell: (one) => boundMark(one.found[0].bound_by), kind: 'text' },
  { key: 'dram', title: 'DRAM', value: (one) => one.found[0].dram_bytes, cell: (one) => scaled(one.found[0].dram_bytes, 'B'), about: 'bytes from and to memory, promised' },
  { key: 'energy', title: 'energy', value: (one) => one.found[0].energy_pj, cell: (one) => scaled(one.found[0].energy_pj * 1e-12, 'J'), about: 'of arithmetic and traffic' },
  { key: 'needs', title: 'needs', value: (one) => one.found[0].needs, cell: (one) => scaled(one.found[0].needs, 'B/s'), rare: 2, about: 'memory bandwidth at which the arithmetic would not wait' },
  { key: 'units', title: 'units', value: (one) => one.found[0].compute_utilisation, cell: (one) => percent(one.found[0].compute_utilisation), rare: 2, about: 'share of the units’ time that is useful work' },
  { key: 'least', title: 'at least', value: (one) => one.found[0].time_bound_s, cell: (one) => scaled(one.found[0].time_bound_s, 's'), rare: 1, about: 'no run of this schedule is faster' },
  { key: 'gap', title: 'gap', value: gapValue, cell: gapCell, rare: 1, about: 'how far the schedule may be above the least that is possible' },
];

const hasEnergy = DATA.totals.energy_pj !== null;
const isCounted = LAYERS.some((one) => one.count !== 1);

const isMeasured = LAYERS.some((one) => one.measured);

function shownColumns() {
  const hidden = [...(isCounted ? [] : ['count', 'all']), ...(isMeasured ? [] : ['measured']), ...(hasEnergy ? [] : ['energy'])];
  return COLUMNS.filter((one) => !hidden.includes(one.key));
}

function measuredCell(one) {
  if (!one.measured) return '';
  const { measured_s } = one.measured;
  return el('span', { title: `${howMeasured(one)}, ${(measured_s / one.found[0].time_s).toFixed(2)} times what is promised` }, scaled(measured_s, 's'));
}

function howMeasured({ measured: { threads, data_type } }) {
  return `${data_type} on ${threads === 1 ? '1 thread' : `${threads} threads`}`;
}

// Tooltips show neither on phones nor in print.
function drawMeasured() {
  const ways = [...new Set(LAYERS.filter((one) => one.measured).map(howMeasured))];
  byId('layers-measured').hidden = !ways.length;
  byId('layers-measured').textContent = `Measured: the median of repeated calls, ${ways.join(' or ')}. Time: what the best schedule promises on the whole machine.`;
}

function timeOf(one) {
  return one.count * one.found[0].time_s;
}

// Names of layers are often words joined by lines.
function breakable(name) {
  return name.split(/(?<=[_/])/).flatMap((part, place) => [place ? el('wbr') : null, part]);
}

function gapValue(one) {
  if (one.proven) return 0;
  return one.gap === null ? Infinity : one.gap;
}

function gapCell(one) {
  return one.proven ? el('span', { title: 'proven: no schedule of the space is better' }, '0') : percent(one.gap);
}

const longest = Math.max(...LAYERS.map(timeOf));

// The bar is the share of the longest layer's time, as often as each occurs.
function timeCell(one, time) {
  return el('span', { class: 'timed' }, scaled(time, 's'),
    el('span', { class: 'share', 'aria-hidden': 'true', style: { width: `${((100 * time) / longest).toFixed(2)}%` } }));
}

function matches(one) {
  if (state.bound && one.found[0].bound_by !== state.bound) return false;
  const sizes = one.dims.map(([dim, size]) => `${dim}${size} ${dim}=${size} ${dim}:${size}`).join(' ');
  const text = `${one.number} ${one.name} ${one.kind} ${one.found[0].bound_by} ${sizes}`.toLowerCase();
  return state.filter.toLowerCase().split(/\s+/).filter(Boolean).every((word) => isIn(text, word));
}

// Numbers are meant whole: k64 is not in k640, 28 not in 128.
function isIn(text, word) {
  const isDigit = (letter) => letter >= '0' && letter <= '9';
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const end = at + word.length;
    const cuts = (isDigit(text[at - 1]) && isDigit(word[0])) || (isDigit(text[end]) && isDigit(text[end - 1]));
    if (!cuts) return true;
  }
  return false;
}

function order() {
  const column = COLUMNS.find((one) => one.key === state.sort.key);
  const sign = state.sort.down ? -1 : 1;
  const compare = (a, b) => {
    const [x, y] = [column.value(LAYERS[a]), column.value(LAYERS[b])];
    if (column.kind === 'text') return sign * String(x).localeCompare(String(y), 'en', { numeric: true }) || a - b;
    return sign * (x - y || 0) || a - b;
  };
  return LAYERS.map((_, index) => index).filter((index) => matches(LAYERS[index])).sort(compare);
}

const rowOf = new Map();
let shownOrder = [];

function drawTable() {
  const columns = shownColumns();
  const head = el('thead', {}, el('tr', {}, columns.map((column) => {
    const sorted = state.sort.key === column.key;
    return el('th', {
      scope: 'col', class: cellClass(column), title: column.about,
      'aria-sort': sorted ? (state.sort.down ? 'descending' : 'ascending') : 'none',
    }, el('button', { type: 'button', 'data-key': column.key, onclick: () => sortBy(column.key) },
      el('span', { class: 'arrow', 'aria-hidden': 'true' }, sorted ? (state.sort.down ? '▾' : '▴') : ''), column.title));
  })));
  rowOf.clear();
  LAYERS.forEach((one, index) => {
    rowOf.set(index, el('tr', { 'data-index': index, 'aria-selected': 'false', tabindex: '-1' },
      columns.map((column) => el(column.head ? 'th' : 'td', { class: cellClass(column), scope: column.head ? 'row' : null },
        column.cell ? column.cell(one) : String(column.value(one))))));
  });
  byId('layers').replaceChildren(head, el('tbody'));
  drawRows();
  drawMeasured();
}

function cellClass(column) {
  return [column.kind === 'text' ? 'words' : 'number', `column-${column.key}`, column.rare ? `rare-${column.rare}` : ''].join(' ').trim();
}

function drawRows() {
  shownOrder = order();
  const body = byId('layers').tBodies[0];
  body.replaceChildren(...shownOrder.map((index) => rowOf.get(index)));
  if (!shownOrder.length) {
    body.append(el('tr', {}, el('td', { colspan: shownColumns().length, class: 'none' }, 'No layer is like that.')));
  }
  const time = shownOrder.reduce((sum, index) => sum + timeOf(LAYERS[index]), 0);
  byId('shown').textContent = shownOrder.length === LAYERS.length
    ? `${LAYERS.length}, ${scaled(time, 's')} in all`
    : `${shownOrder.length} of ${LAYERS.length}, ${scaled(time, 's')}`;
  markRow();
}

function markRow() {
  const holder = shownOrder.includes(state.layer) ? state.layer : shownOrder[0];
  for (const [index, row] of rowOf) {
    const chosen = index === state.layer;
    if (row.getAttribute('aria-selected') !== String(chosen)) row.setAttribute('aria-selected', String(chosen));
    row.tabIndex = index === holder ? 0 : -1;
  }
  const row = rowOf.get(state.layer);
  const box = byId('layers-scroll');
  if (!row || !row.isConnected || box.scrollHeight <= box.clientHeight) return;
  const top = row.offsetTop - byId('layers').tHead.offsetHeight;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight) {
    box.scrollTop = row.offsetTop + row.offsetHeight - box.clientHeight;
  }
}

function sortBy(key) {
  const down = state.sort.key === key ? !state.sort.down : false;
  state.sort = { key, down };
  for (const button of byId('layers').tHead.querySelectorAll('button')) {
    const sorted = button.dataset.key === key;
    button.closest('th').setAttribute('aria-sort', sorted ? (down ? 'descending' : 'ascending') : 'none');
    button.querySelector('.arrow').textContent = sorted ? (down ? '▾' : '▴') : '';
  }
  drawRows();
}

function neighbour(step) {
  const place = shownOrder.indexOf(state.layer);
  if (place < 0) return shownOrder[0];
  return shownOrder[Math.max(0, Math.min(shownOrder.length - 1, place + step))];
}

const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 };

function tableKeys(event) {
  const row = event.target.closest('tbody tr[data-index]');
  if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key in STEPS) {
    event.preventDefault();
    const next = neighbour(STEPS[event.key]);
    if (next !== undefined) {
      chooseLayer(next);
      rowOf.get(next).focus({ preventScroll: true });
    }
  } else if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    chooseLayer(Number(row.dataset.index));
    openLayer();
  }
}

function openLayer() {
  byId('layer-title').focus({ preventScroll: true });
  byId('layer').scrollIntoView({ block: 'start' });
}

function startTable() {
  const bounds = [...new Set(LAYERS.map((one) => one.found[0].bound_by))];
  byId('filter-bound').replaceChildren(el('option', { value: '' }, 'anything'),
    ...bounds.map((one) => el('option', { value: one }, `${one} (${LAYERS.filter((each) => each.found[0].bound_by === one).length})`)));
  byId('filter').addEventListener('input', (event) => { state.filter = event.target.value; drawRows(); changed('filter'); });
  byId('filter-bound').addEventListener('change', (event) => { state.bound = event.target.value; drawRows(); changed('filter'); });
  byId('layers').addEventListener('keydown', tableKeys);
  byId('layers').addEventListener('click', (event) => {
    const row = event.target.closest('tbody tr[data-index]');
    if (row) chooseLayer(Number(row.dataset.index));
  });
  byId('layers').addEventListener('dblclick', (event) => {
    if (event.target.closest('tbody tr[data-index]')) openLayer();
  });
  drawTable();
  watch(['layer'], markRow);
}
