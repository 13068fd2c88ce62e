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
    const of = BOUNDARIES[index].capacity_bytes === null ? '' : ` of ${capacity(BOUNDARIES[index].capacity_bytes)}`;
    const note = `${level.name} ${holds(level.name)} ${inCopies(index, level.working_set_bytes)}${of}`;
    notes.set(level.fit_position, [...(notes.get(level.fit_position) || []), note]);
  });
  return notes;
}

const GAP = '  ';

function columnsIn(place) {
  const probe = el('span', {}, '0'.repeat(40));
  place.replaceChildren(probe);
  const wide = probe.getBoundingClientRect().width / 40;
  return Math.floor((place.clientWidth - 1) / (wide || 8));
}

function drawNest() {
  const { schedule, evaluation, text } = current();
  const notes = holding(evaluation);
  const count = schedule.loops.length;
  const columns = Math.max(30, columnsIn(byId('nest')));
  const noted = (place) => `# ${notes.get(place).join('; ')}`;
  const beside = (place, line) => line.length + GAP.length + noted(place).length <= columns;
  const narrowed = [0, 10, 20, 30, 40].map((less) => Loopsched.loops(layer().problem, schedule, Math.max(1, columns - less)).split('\n'));
  const fits = (lines) => lines.every((line, place) => place > count || !notes.has(place) || beside(place, line));
  const isDeep = (found) => !found[1] || /^ {2}/.test(found[1]);
  // Notes beside their loops where that leaves an indentation that can be seen, else above.
  const isWithin = (found) => found.every((line) => line.length <= columns);
  const lines = narrowed.find((found) => isWithin(found) && isDeep(found) && fits(found))
    || narrowed.find((found) => isWithin(found) && isDeep(found)) || narrowed.find(isWithin) || narrowed[narrowed.length - 1];
  byId('nest').replaceChildren(...lines.flatMap((line, place) => {
    const code = el('span', { class: 'line' }, ...coloured(line));
    if (place > count || !notes.has(place)) return [code, '\n'];
    if (beside(place, line)) return [code, GAP, el('span', { class: 'note' }, noted(place)), '\n'];
    const margin = /^ */.exec(line)[0];
    return [...notes.get(place).flatMap((note) => [margin, el('span', { class: 'note' }, `# ${note}`), '\n']), code, '\n'];
  }));
  if (DATA.arch_given) byId('command').replaceChildren(...commandWords(commandFor(text)));
}

function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'"'"'`)}'`;
}

function commandFor(text) {
  return ['loopsched analyze', quoted(DATA.workload), '--layer', String(layer().number),
    ...(DATA.element_bytes ? ['--element-bytes', String(DATA.element_bytes)] : []),
    '--arch', quoted(DATA.arch_given), quoted(text)].join(' ');
}

function pythonFor(schedule) {
  const literal = (value) => JSON.stringify(value).replaceAll(',', ', ');
  const calls = movesTo(schedule);
  const start = calls ? best().schedule : Loopsched.formatSchedule(schedule);
  return ['import loopsched', '', `schedule = loopsched.parse_schedule(${literal(start)}, problem)`,
    ...(calls || []).map(([name, ...given]) => `schedule = loopsched.${name}(${['schedule', ...given.map(literal)].join(', ')})`), ''].join('\n');
}

function startNest() {
  byId('copy-nest').addEventListener('click', (event) => {
    copied(Loopsched.loops(layer().problem, current().schedule), event.currentTarget);
  });
  document.querySelectorAll('.command, .command-title').forEach((part) => { part.hidden = !DATA.arch_given; });
  byId('copy-command').addEventListener('click', (event) => copied(byId('command').textContent, event.currentTarget));
  byId('copy-moves').addEventListener('click', (event) => copied(pythonFor(current().schedule), event.currentTarget));
  byId('copy-link').addEventListener('click', (event) => {
    copied(location.href.split('#')[0] + addressOf(state.layer, state.text), event.currentTarget);
  });
  watch(['layer', 'schedule', 'size'], drawNest);
}
