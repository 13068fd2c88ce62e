// The ski slope: least DRAM traffic at every capacity, with the machine's levels and this schedule.
// Where it is not proven least, a dotted line is what no nest goes below.

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
  const [capacities, bytes, bounds] = [curve.capacities_bytes, curve.dram_bytes, curve.nest_bound_bytes];
  const isProven = bytes.every((one, step) => one === bounds[step]);
  const last = capacities.length - 1;
  const low = Math.max(1, capacities[0]);
  const high = Math.max(capacities[last], ...rooms.map((one) => one.capacity_bytes)) * 2;
  const range = { x: [low / 1.3, high], y: [Math.min(bounds[last], here.y) / 1.7, Math.max(bytes[0], here.y) * 1.5] };
  const x = logScale(...range.x, MARGIN.left, width - MARGIN.right);
  const y = logScale(...range.y, height - MARGIN.bottom, MARGIN.top);
  const stairs = (heights) => {
    let path = `M${x(low).toFixed(2)} ${y(heights[0]).toFixed(2)}`;
    for (let step = 1; step <= last; step += 1) path += `H${x(capacities[step]).toFixed(2)}V${y(heights[step]).toFixed(2)}`;
    return `${path}H${width - MARGIN.right}`;
  };
  const plot = place.querySelector('svg');
  plot.setAttribute('viewBox', `0 0 ${width} ${height}`);
  plot.setAttribute('height', height);
  plot.replaceChildren(
    axes({ x, y, range, width, height, xUnit: 'capacity', yUnit: 'DRAM bytes', xText: capacity, xTicks: powersOfTwo, xRoom: 60 }),
    svg('g', { 'aria-hidden': 'true' }, rooms.map((one) => svg('g', {},
      svg('line', { class: 'room', x1: x(one.capacity_bytes), x2: x(one.capacity_bytes), y1: MARGIN.top, y2: height - MARGIN.bottom }),
      svg('text', { class: 'roof-name', x: x(one.capacity_bytes) - 4, y: MARGIN.top + 8, 'text-anchor': 'end' }, one.level)))),
    ...(isProven ? [] : [svg('path', { class: 'slope-bound', d: stairs(bounds) })]),
    svg('path', { class: 'slope', d: stairs(bytes) }),
    svg('circle', { class: text === best().schedule ? 'ring' : 'edited', cx: x(Math.max(here.x, range.x[0])), cy: y(here.y), r: 5 }));
  const room = BOUNDARIES[0].capacity_bytes;
  const step = room ? capacities.findLastIndex((one) => one <= room) : -1;
  const what = `With one ${curve.policy === 'lru' ? 'cache' : 'scratchpad'} of a given size under ${BOUNDARIES[0].outer}`;
  const words = isProven
    ? `${what}, no tile sizes and orders move less, over nests that hold all tiles from the same loop inward.`
    : `The least found ${what.replace('With', 'with')}; over nests that hold all tiles from the same loop inward, none is below the dotted line.`;
  byId('slope-text').textContent = words
    + (step < 0 ? '' : ` ${scaled(bytes[step], 'B')}${bytes[step] === bounds[step] ? '' : ` (none below ${scaled(bounds[step], 'B')})`} at the ${capacity(room)} of ${BOUNDARIES[0].level}; the schedule shown moves ${scaled(here.y, 'B')} and holds ${binary(here.x)} (marked).`)
    + (curve.of > capacities.length ? ` ${capacities.length} of ${exact(curve.of)} steps are drawn.` : '');
}

function startSlope() {
  watch(['layer', 'schedule', 'size'], drawSlope);
}
