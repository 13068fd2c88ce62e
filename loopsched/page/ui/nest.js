// The loop nest as code, with what each level holds; and the command that scores it.

const WORDS = /\b(for|in|range|min|parallel)\b|(@\w+)|(\b\d+\b)/g;

function coloured(line) {
  const parts = [];
  let at = 0;
  for (const found of line.matchAll(WORDS)) {
    parts.push(line.slice(at, found.index), el('span', { class: found[1] ? 'word' : found[2] ? 'unit' : 'digit' }, found[0]));
    at = found.index + found[0].length;
  }
  parts.push(line.slice(at));
  return parts;
}

function holding(evaluation) {
  const notes = new Map();
  evaluation.levels.forEach((level, index) => {
    const of = BOUNDARIES[index].capacity_bytes === null ? '' : ` of ${binary(BOUNDARIES[index].capacity_bytes)}`;
    const note = `${level.name} holds ${binary(level.working_set_bytes)}${of}`;
    notes.set(level.fit_position, [...(notes.get(level.fit_position) || []), note]);
  });
  return notes;
}

function drawNest() {
  const { schedule, evaluation, text } = current();
  const code = Loopsched.loops(layer().problem, schedule);
  const notes = holding(evaluation);
  const lines = code.split('\n');
  const count = loopsOf(text).length;
  byId('nest').replaceChildren(...lines.map((line, place) => {
    const said = place <= count ? notes.get(place) : null;
    return el('span', { class: 'line', 'data-place': place }, ...coloured(line),
      said ? el('span', { class: 'note' }, `  # ${said.join('; ')}`) : null, '\n');
  }));
  byId('command').textContent = commandFor(text);
}

function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'"'"'`)}'`;
}

function commandFor(text) {
  return ['loopsched analyze', quoted(DATA.workload), '--layer', String(layer().number),
    ...(DATA.element_bytes ? ['--element-bytes', String(DATA.element_bytes)] : []),
    '--arch', quoted(DATA.arch_given), quoted(text)].join(' ');
}

function startNest() {
  byId('copy-nest').addEventListener('click', (event) => {
    copied(Loopsched.loops(layer().problem, current().schedule), event.currentTarget);
  });
  byId('copy-command').addEventListener('click', (event) => copied(byId('command').textContent, event.currentTarget));
  byId('copy-link').addEventListener('click', (event) => {
    copied(location.href.split('#')[0] + addressOf(state.layer, state.text), event.currentTarget);
  });
  watch(['layer', 'schedule'], drawNest);
}
