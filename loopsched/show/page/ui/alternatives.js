// The schedules of the results side by side, with the one that is edited.

function columnsOf() {
  const found = layer().found.map((one) => ({
    title: one.rank === 1 ? '1, the best' : String(one.rank), text: one.schedule, score: one, chosen: one.schedule === state.text,
  }));
  const { evaluation, text } = current();
  if (!layer().found.some((one) => one.schedule === text)) {
    found.unshift({ title: 'yours', text, chosen: true, score: { ...evaluation, needs: needs(evaluation) } });
  }
  return found;
}

// The dimensions that units share, and the tensors that cross a boundary once.
function sharedDims(text) {
  return [...new Set(text.split(' ').filter((word) => word.includes('@')).map((word) => word.split(':')[0]))].join(' ') || 'none';
}

function crossOnce(text, index) {
  const level = score(state.layer, text).evaluation.levels[index];
  return layer().tensors.filter((tensor) => totalOf(level, tensor.name) <= Number(tensor.bytes)).map((tensor) => tensor.name).join(', ') || 'none';
}

const LINES = [
  ['time', (one) => one.time_s, (value) => scaled(value, 's')],
  ['bound by', (one) => one.bound_by, (value) => boundMark(value), 'words'],
  ['at least', (one) => one.time_bound_s, (value) => scaled(value, 's')],
  ['compute', (one) => one.compute_time_s, (value) => scaled(value, 's')],
  ['units', (one) => one.compute_utilisation, (value) => percent(value), 'share'],
  ['needs', (one) => one.needs, (value) => scaled(value, 'B/s'), 'plain'],
  ['energy', (one) => one.energy_pj, (value) => scaled(value * 1e-12, 'J')],
];

function levelLines() {
  return BOUNDARIES.flatMap((boundary, index) => [
    [`${boundary.outer} – ${boundary.level}`, (one) => one.levels[index].promised_bytes, (value) => scaled(value, 'B')],
    [`${boundary.level} ${holds(boundary.level)}`, (one) => one.levels[index].working_set_bytes, (value) => binary(value), 'plain'],
  ]);
}

// The heaviest reasons; the others on request.
function why(reasons) {
  const said = reasons.map((reason) => el('p', {}, unbroken(reason)));
  if (said.length <= 2) return said;
  return [...said.slice(0, 2), el('details', {}, el('summary', {}, `${said.length - 2} more`), ...said.slice(2))];
}

// What leads there from the best, as the library writes and reads it, broken between moves.
function movesWords(text) {
  return (movesTo(parsed(text)) || []).flatMap((move, place, all) => [
    place ? ' ' : '', el('span', { class: 'word' }, move.join(' '), place + 1 < all.length ? '\u00a0|' : '')]);
}

function wordsLine(title, columns, read) {
  return el('tr', {}, el('th', { scope: 'row' }, title), columns.map((one) => el('td', { class: one.chosen ? 'chosen' : null }, read(one))));
}

function drawAlternatives() {
  const columns = columnsOf();
  const base = layer().found[0];
  const lines = [...LINES, ...levelLines()].filter(([, read]) => read(base) !== null && read(base) !== undefined);
  byId('alternatives').replaceChildren(
    el('thead', {},
      el('tr', {}, el('td', {}, el('span', { class: 'unseen' }, 'figure')), columns.map((one) => el('th', { scope: 'col', class: one.chosen ? 'chosen' : null }, one.title,
        one.chosen ? el('span', { class: 'tag' }, 'shown') : el('button', { type: 'button', class: 'small-button no-print', 'aria-label': `Show schedule ${one.title}`, onclick: () => chooseSchedule(one.text) }, 'Show'))))),
    el('tbody', {},
      el('tr', {}, el('th', { scope: 'row' }, 'schedule'), columns.map((one) => el('td', { class: one.chosen ? 'chosen schedule' : 'schedule' },
        one.text.split(' ').flatMap((word) => [el('code', { class: word.includes('@') ? 'spatial' : null }, word), ' '])))),
      wordsLine('shared', columns, (one) => sharedDims(one.text)),
      BOUNDARIES.map((boundary, index) => wordsLine(`${boundary.outer} – ${boundary.level} once`, columns, (one) => crossOnce(one.text, index))),
      lines.map(([title, read, write, kind]) => el('tr', {}, el('th', { scope: 'row' }, title), columns.map((one) => {
        const value = read(one.score);
        const same = one.score === base || kind === 'words' || kind === 'plain' || kind === 'share';
        const change = same ? '' : difference(value, read(base));
        return el('td', { class: one.chosen ? 'chosen' : null }, write(value),
          change && change !== 'same' ? el('span', { class: `change ${Number(value) > Number(read(base)) ? 'worse' : 'better'}` }, ` ${change}`) : null);
      })))));
  const moves = columns.map((one) => movesWords(one.text));
  if (moves.some((one) => one.length)) {
    byId('alternatives').tBodies[0].append(el('tr', {}, el('th', { scope: 'row' }, 'moves'), columns.map((one, place) => el('td', { class: one.chosen ? 'chosen why' : 'why' }, moves[place]))));
  }
  if (columns.some((one) => one.score.reasons && one.score.reasons.length)) {
    byId('alternatives').tBodies[0].append(el('tr', {}, el('th', { scope: 'row' }, 'why'), columns.map((one) => el('td', { class: one.chosen ? 'chosen why' : 'why' },
      why(one.score.reasons || [])))));
  }
  byId('alternatives-hint').textContent = `${columns.length} schedules: scroll sideways`;
  byId('alternatives-text').textContent = layer().found.length > 1
    ? 'Alternatives of other kinds, the best that is known of each: schedules are of one kind if the same resource binds them, units share the same dimensions, and the same tensors cross each boundary once. Changes are against the best.'
    : 'No schedule of another kind was kept: one that another resource binds, where units share other dimensions, or where other tensors cross a boundary once.';
}

function startAlternatives() {
  watch(['layer', 'schedule'], drawAlternatives);
}

// What goes on at the right of its box has a shadow there.
function drawMore() {
  for (const box of document.querySelectorAll('.scroll, #nest')) {
    box.classList.toggle('more', box.scrollWidth - box.clientWidth - box.scrollLeft > 1);
  }
  const box = byId('alternatives').parentElement;
  byId('alternatives-hint').hidden = box.scrollWidth - box.clientWidth <= 1;
}

function startMore() {
  for (const box of document.querySelectorAll('.scroll, #nest')) box.addEventListener('scroll', drawMore, { passive: true });
  watch(['layer', 'schedule', 'filter', 'size'], drawMore);
}
