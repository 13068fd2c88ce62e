// Working sets against capacities, and traffic: bars a level, a part a tensor.

/** A working set, twice where one half of a buffer is filled while the other is used. */
function inCopies(index, bytes) {
  const { copies } = BOUNDARIES[index];
  return `${copies > 1 ? `${copies} x ` : ''}${binary(bytes)}`;
}

function drawSets() {
  const { schedule, evaluation, text } = current();
  const words = Loopsched.formatSchedule(schedule).split(' ');
  byId('sets').replaceChildren(...evaluation.levels.map((level, index) => {
    const { capacity_bytes: room, copies } = BOUNDARIES[index];
    const held = copies * Number(level.working_set_bytes);
    const share = room ? held / room : 0;
    const other = copies * best().levels[index].working_set_bytes;
    const from = words[level.fit_position] || 'one point';
    return el('div', { class: 'set' },
      el('p', { class: 'set-head' }, el('strong', {}, level.name), ` ${holds(level.name)} ${inCopies(index, level.working_set_bytes)}`,
        room ? ` of ${capacity(room)}, ${percent(share)}` : '', el('span', { class: 'soft' }, BOUNDARIES[index].instances > 1 ? ` in each of ${BOUNDARIES[index].instances}` : '')),
      el('div', { class: 'gauge', role: 'img', 'aria-label': room ? `${percent(share)} of the capacity` : 'no limit' },
        room ? level.tensors.map((tensor, place) => el('span', { class: `gauge-fill tensor-${place % 6}`, title: `${tensor.name}: ${binary(tensor.footprint_bytes || 0)}`, style: { width: `${(100 * copies * Number(tensor.footprint_bytes || 0)) / Math.max(room, held)}%` } })) : null,
        room && text !== best().schedule ? el('span', { class: 'gauge-best', title: `best: ${binary(other)}`, style: { left: `${Math.min(100, (100 * other) / room)}%` } }) : null),
      el('p', { class: 'soft small' }, 'fits from ', el('code', {}, from), ' inward',
        level.fit_position > 0 ? [', not with ', el('code', {}, words[level.fit_position - 1])] : ', as a whole'));
  }));
}

function promisedOf(level, name) {
  const found = level.tensors.find((one) => one.name === name);
  return { read: found.promised_read_bytes, written: found.promised_write_bytes };
}

function totalOf(level, name) {
  const { read, written } = promisedOf(level, name);
  return Number(read) + Number(written);
}

function drawTraffic() {
  const { evaluation, text } = current();
  const byTime = state.unit === 'time';
  const reference = score(state.layer, best().schedule).evaluation;
  const edited = text !== best().schedule;
  const length = (level, bytes) => {
    const rate = BOUNDARIES[level].bandwidth_bytes_per_s;
    return byTime ? (rate ? Number(bytes) / rate : 0) : Number(bytes);
  };
  const bars = evaluation.levels.map((level, index) => ({
    name: `${BOUNDARIES[index].outer} – ${level.name}`,
    bound: evaluation.bound_by === BOUNDARIES[index].outer,
    parts: layer().tensors.map((tensor, place) => ({ name: tensor.name, place, bytes: totalOf(level, tensor.name), size: length(index, totalOf(level, tensor.name)) })),
    size: length(index, level.promised_bytes),
    was: length(index, reference.levels[index].promised_bytes),
    text: byTime ? `${scaled(level.time_s, 's')} for ${scaled(level.promised_bytes, 'B')}` : scaled(level.promised_bytes, 'B'),
  }));
  if (byTime) {
    bars.unshift({ name: 'compute', bound: evaluation.bound_by === 'compute', parts: [], size: evaluation.compute_time_s, was: reference.compute_time_s, text: `${scaled(evaluation.compute_time_s, 's')} for ${scaled(layer().flops, 'FLOP')}` });
  }
  const longestBar = Math.max(...bars.flatMap((bar) => [bar.size, edited ? bar.was : 0])) || 1;
  const wide = (size) => `${((100 * size) / longestBar).toFixed(3)}%`;
  byId('traffic').replaceChildren(
    ...bars.map((bar) => el('div', { class: bar.bound ? 'bar binding' : 'bar' },
      el('p', { class: 'bar-head' }, el('strong', {}, bar.name), ` ${bar.text}`, bar.bound ? el('span', { class: 'tag' }, 'binds') : null),
      el('div', { class: 'stack', role: 'img', 'aria-label': `${bar.name}: ${bar.text}${bar.parts.map((part) => `; ${part.name} ${scaled(part.bytes, 'B')}`).join('')}` },
        bar.parts.length
          ? bar.parts.map((part) => el('span', { class: `part tensor-${part.place % 6}`, title: `${part.name}: ${scaled(part.bytes, 'B')}`, style: { width: wide(part.size) } },
            part.size / longestBar > 0.12 ? el('span', {}, part.name) : null))
          : el('span', { class: 'part plain-part', style: { width: wide(bar.size) } })),
      edited ? el('div', { class: 'stack was', 'aria-hidden': 'true' }, el('span', { class: 'part', title: 'best', style: { width: wide(bar.was) } })) : null)),
    el('p', { class: 'key small' }, layer().tensors.map((tensor, place) => el('span', {}, swatch(place), ` ${tensor.name}`)),
      edited ? el('span', {}, el('span', { class: 'swatch was-swatch', 'aria-hidden': 'true' }), ' best schedule') : null));
}

function drawBytes() {
  const { evaluation, text } = current();
  const reference = score(state.layer, best().schedule).evaluation;
  const edited = text !== best().schedule;
  const saved = layer().found.find((one) => one.schedule === text);
  const titles = ['boundary, tensor', 'read', 'written', 'in all', ...(edited ? ['against best'] : []), 'each element'];
  const rows = evaluation.levels.flatMap((level, index) => {
    const base = reference.levels[index];
    const least = saved ? saved.levels[index].least_bytes : null;
    const total = {
      read: level.promised_read_bytes, written: level.promised_write_bytes, all: level.promised_bytes, was: base.promised_bytes,
    };
    const head = el('tr', { class: 'total' },
      el('th', { scope: 'row', class: 'words' }, `${BOUNDARIES[index].outer} – ${level.name}`),
      ...cells(total, edited), el('td', { class: 'number soft small' }, least !== null && least !== Number(total.all) ? `${scaled(least, 'B')} at least` : ''));
    return [head, ...layer().tensors.map((tensor, place) => {
      const { read, written } = promisedOf(level, tensor.name);
      const all = Number(read) + Number(written);
      return el('tr', {}, el('th', { scope: 'row', class: 'words inner' }, swatch(place), ` ${tensor.name}`),
        ...cells({ read, written, all, was: totalOf(base, tensor.name) }, edited),
        el('td', { class: 'number' }, often(all / Number(tensor.bytes))));
    })];
  });
  byId('bytes').classList.toggle('edited', edited);
  byId('bytes').replaceChildren(
    el('thead', {}, el('tr', {}, titles.map((title, place) => el('th', { scope: 'col', class: place < 1 ? 'words' : 'number' }, title)))),
    el('tbody', {}, rows));
}

// How often each element crosses, on average.
function often(times) {
  if (times === 1) return 'once';
  return `${times < 100 ? general(times, 3) : exact(Math.round(times))} times`;
}

function cells({ read, written, all, was }, edited) {
  const found = [read, written, all].map((value) => el('td', { class: 'number', 'data-short': scaled(Number(value), 'B') }, exact(value)));
  if (edited) {
    const [mine, other] = [Number(all), Number(was)];
    found.push(el('td', { class: `number ${mine > other ? 'worse' : mine < other ? 'better' : 'soft'}` }, difference(mine, other)));
  }
  return found;
}

function startLevels() {
  choice(byId('traffic-unit'), 'unit', [['time', 'time'], ['bytes', 'bytes']], 'time', (value) => {
    state.unit = value;
    drawTraffic();
  });
  watch(['layer', 'schedule'], drawSets);
  watch(['layer', 'schedule'], drawTraffic);
  watch(['layer', 'schedule'], drawBytes);
}
