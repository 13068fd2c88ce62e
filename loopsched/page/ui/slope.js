// The ski slope: least DRAM traffic at every capacity, with the machine's levels and this schedule.

function drawSlope() {
  const { curve } = layer();
  byId('slope-panel').hidden = !curve;
  byId('last-pair').classList.toggle('single', !curve);
  if (!curve) return;
  const place = byId('slope');
  const width = Math.max(280, place.clientWidth);
  const height = Math.round(Math.max(240, Math.min(360, 0.6 * width)));
  const { evaluation, text } = current();
  const rooms = BOUNDARIES.filter((one) => one.capacity_bytes);
  const here = { x: Number(evaluation.levels[0].working_set_bytes), y: Number(evaluation.dram_bytes) };
  const [capacities, bytes] = [curve.capacities_bytes, curve.dram_bytes];
  const last = capacities.length - 1;
  const low = Math.max(1, capacities[0]);
  const high = Math.max(capacities[last], ...rooms.map((one) => one.capacity_bytes)) * 2;
  const range = { x: [low / 1.3, high], y: [Math.min(bytes[last], here.y) / 1.7, Math.max(bytes[0], here.y) * 1.5] };
  const x = logScale(...range.x, MARGIN.left, width - MARGIN.right);
  const y = logScale(...range.y, height - MARGIN.bottom, MARGIN.top);
  let path = `M${x(low).toFixed(2)} ${y(bytes[0]).toFixed(2)}`;
  for (let step = 1; step <= last; step += 1) path += `H${x(capacities[step]).toFixed(2)}V${y(bytes[step]).toFixed(2)}`;
  path += `H${width - MARGIN.right}`;
  const plot = place.querySelector('svg');
  plot.setAttribute('viewBox', `0 0 ${width} ${height}`);
  plot.setAttribute('height', height);
  plot.replaceChildren(
    axes({ x, y, range, width, height, xUnit: 'capacity, bytes', yUnit: 'DRAM bytes' }),
    svg('g', { 'aria-hidden': 'true' }, rooms.map((one) => svg('g', {},
      svg('line', { class: 'room', x1: x(one.capacity_bytes), x2: x(one.capacity_bytes), y1: MARGIN.top, y2: height - MARGIN.bottom }),
      svg('text', { class: 'roof-name', x: x(one.capacity_bytes) - 4, y: MARGIN.top + 8, 'text-anchor': 'end' }, one.level)))),
    svg('path', { class: 'slope', d: path }),
    svg('circle', { class: text === best().schedule ? 'ring' : 'edited', cx: x(Math.max(here.x, range.x[0])), cy: y(here.y), r: 5 }));
  const room = BOUNDARIES[0].capacity_bytes;
  const least = room ? at(curve, room) : null;
  byId('slope-text').textContent = `With one ${curve.policy === 'lru' ? 'cache' : 'scratchpad'} of a given size under ${BOUNDARIES[0].outer}, no tile sizes and orders move less.`
    + (least === null ? '' : ` ${scaled(least, 'B')} at the ${capacity(room)} of ${BOUNDARIES[0].level}; the schedule shown moves ${scaled(here.y, 'B')} and holds ${binary(here.x)} (marked).`)
    + (curve.of > capacities.length ? ` ${capacities.length} of ${exact(curve.of)} steps are drawn, each exact.` : '');
}

function at(curve, capacity) {
  let found = null;
  curve.capacities_bytes.forEach((one, step) => { if (one <= capacity) found = curve.dram_bytes[step]; });
  return found;
}

function startSlope() {
  watch(['layer', 'schedule', 'size'], drawSlope);
}
