// The roofline: a roof a level, a point a layer; a point chosen is the layer chosen.

const MARGIN = { left: 58, right: 14, top: 12, bottom: 40 };
const NEAR = 8;
const NEAR_ALONE = 200;
const LEAST_ACROSS = 4;
const LEAST_UP = 3;
const FLAT = 1.15;
const STEEP = 2;
const ASIDE = 1.5;
const LITTLE = 0.05;

function intensity(one, boundary) {
  const moved = one.found[0].levels[boundary].promised_bytes;
  return moved ? one.flops / moved : null;
}

function reached(one) {
  return one.flops / one.found[0].time_s;
}

function padded(low, high) {
  const factor = Math.max(1.06, (high / low) ** 0.08);
  return [low / factor, high * factor];
}

// Layers far below all others in which little time goes: at the edge, so that the others stand apart.
function farBelow() {
  const up = LAYERS.filter((one) => intensity(one, state.boundary)).sort((a, b) => reached(a) - reached(b));
  const most = LITTLE * LAYERS.reduce((sum, one) => sum + timeOf(one), 0);
  let [time, many] = [0, 0];
  for (let at = 0; at + 1 < up.length; at += 1) {
    time += timeOf(up[at]);
    if (time > most) break;
    if (reached(up[at + 1]) > 2 * reached(up[at])) many = at + 1;
  }
  return new Set(up.slice(0, many));
}

// The points at the boundary that counts, and its ridge where that is not far from them. Points at one
// place have the ridge from further away, and room for the axes' numbers.
function rooflineRange() {
  const rate = BOUNDARIES[state.boundary].bandwidth_bytes_per_s;
  const ridges = rate ? DATA.peaks.map((peak) => peak.flops_per_s / rate) : [];
  const left = farBelow();
  const kept = LAYERS.filter((one) => !left.has(one));
  const found = kept.map((one) => intensity(one, state.boundary)).filter((at) => at);
  const points = found.length ? found : ridges.length ? ridges : [1];
  const [low, high] = [Math.min(...points), Math.max(...points)];
  const isAlone = high / low < LEAST_ACROSS;
  const near = isAlone ? NEAR_ALONE : NEAR;
  const ends = ridges.filter((at) => at > low / near && at < high * near);
  const up = kept.map(reached);
  const top = Math.max(...DATA.peaks.map((one) => one.flops_per_s), ...up);
  const lowest = Math.max(Math.min(...up), top * 1e-6);
  const isFlat = top / lowest < FLAT;
  // A slope that would be shorter than its name begins further left, but not where points are at the edge.
  const isShort = isAlone || isFlat || top / lowest > STEEP;
  const further = LEAST_UP * (left.size ? ASIDE : 1);
  const across = [...points, ...ends, ...(isShort ? ends.map((at) => at / further) : [])];
  const [from, to] = [Math.min(...across), Math.max(...across)];
  const aside = Math.max(1, LEAST_ACROSS / (to / from)) ** 0.5;
  return { x: padded(from / aside, to * aside), y: padded(isFlat ? top / LEAST_UP : lowest, top), isFlat };
}

function drawRoofline() {
  const place = byId('roofline');
  const width = Math.max(280, place.clientWidth);
  // Beside a table of few layers, no higher than that.
  const beside = matchMedia('(min-width: 961px)').matches ? byId('layers').offsetHeight + 20 : Infinity;
  const range = rooflineRange();
  const tallest = range.isFlat ? 230 : Math.max(300, Math.min(470, beside));
  const height = Math.round(Math.min(1.35 * width, tallest));
  const x = logScale(...range.x, MARGIN.left, width - MARGIN.right);
  const y = logScale(...range.y, height - MARGIN.bottom, MARGIN.top);
  const plot = place.querySelector('svg');
  plot.setAttribute('viewBox', `0 0 ${width} ${height}`);
  plot.setAttribute('height', height);
  plot.replaceChildren(
    axes({ x, y, range, width, height, xUnit: `FLOP per byte, ${BOUNDARIES[state.boundary].outer} to ${BOUNDARIES[state.boundary].level}`, yUnit: 'FLOP/s' }),
    svg('g', {}, ...roofs(x, y, range)),
    svg('g', { class: 'points', role: 'listbox', 'aria-label': 'Layers by operational intensity' }, ...points(x, y, range)),
    svg('g', { id: 'roofline-chosen', 'aria-hidden': 'true' }),
    svg('g', { class: 'point-names', 'aria-hidden': 'true' }),
  );
  plot.drawn = { x, y, range, width };
  markPoint();
}

function axes({ x, y, range, width, height, xUnit, yUnit, xText, yText, xTicks = ticks, xRoom = 44 }) {
  const [left, right, top, bottom] = [MARGIN.left, width - MARGIN.right, MARGIN.top, height - MARGIN.bottom];
  const across = xTicks(...range.x, Math.floor((right - left) / xRoom));
  const up = ticks(...range.y, Math.floor((bottom - top) / 28));
  return svg('g', { class: 'axes', 'aria-hidden': 'true' },
    across.map((value) => svg('line', { class: 'grid', x1: x(value), x2: x(value), y1: top, y2: bottom })),
    up.map((value) => svg('line', { class: 'grid', x1: left, x2: right, y1: y(value), y2: y(value) })),
    svg('path', { class: 'axis', d: `M${left} ${top}V${bottom}H${right}` }),
    across.map((value) => svg('text', { x: x(value), y: bottom + 15, 'text-anchor': 'middle' }, (xText || shortNumber)(value))),
    up.map((value) => svg('text', { x: left - 6, y: y(value) + 4, 'text-anchor': 'end' }, (yText || shortNumber)(value))),
    svg('text', { class: 'unit', x: right, y: bottom + 32, 'text-anchor': 'end' }, xUnit),
    svg('text', { class: 'unit', x: 4, y: top + 2, 'dominant-baseline': 'hanging', transform: `rotate(-90 4 ${top + 2})`, 'text-anchor': 'end' }, yUnit));
}

function shortNumber(value) {
  if (value < 1) return general(value);
  const power = Math.min(15, 3 * Math.floor(Math.log10(value) / 3 + 1e-9));
  return `${general(value / 10 ** power)}${PREFIXES[power]}`;
}

// Each roof as far as it is in the picture: flat ones of the units, slopes of the boundaries.
function roofLines(x, y, range) {
  const highest = Math.max(...DATA.peaks.map((one) => one.flops_per_s));
  const flat = DATA.peaks.map((peak) => ({
    peak, x1: x(range.x[0]), x2: x(range.x[1]), y1: y(peak.flops_per_s), y2: y(peak.flops_per_s) }));
  const slopes = BOUNDARIES.map((one, index) => {
    const rate = one.bandwidth_bytes_per_s;
    const low = Math.max(range.x[0], range.y[0] / rate);
    const high = Math.min(range.x[1], highest / rate);
    return { one, index, low, high, x1: x(low), y1: y(low * rate), x2: x(high), y2: y(high * rate) };
  }).filter((line) => line.one.bandwidth_bytes_per_s && line.high > line.low);
  return { flat, slopes };
}

function roofs(x, y, range) {
  const { flat, slopes } = roofLines(x, y, range);
  const found = flat.map(({ peak, x1, x2, y1, y2 }) => svg('g', {},
    svg('line', { class: 'roof peak', x1, x2, y1, y2 }),
    svg('text', { class: 'roof-name', x: MARGIN.left + 6, y: y1 - 6 }, `${scaled(peak.flops_per_s, 'FLOP/s')} ${peak.data_type}`)));
  for (const { one, index, x1, y1, x2, y2 } of slopes) {
    const angle = (180 / Math.PI) * Math.atan2(y2 - y1, x2 - x1);
    const name = `${one.outer} ${scaled(one.bandwidth_bytes_per_s, 'B/s')}`;
    const length = Math.hypot(x2 - x1, y2 - y1);
    const off = 7 / length;
    const [tx, ty] = [x1 + 0.5 * (x2 - x1) + off * (y2 - y1), y1 + 0.5 * (y2 - y1) - off * (x2 - x1)];
    found.push(svg('g', { class: index === state.boundary ? 'roof-group chosen' : 'roof-group' },
      svg('line', { class: `roof roof-${index}`, x1, y1, x2, y2 }),
      length < 8 * name.length && index !== state.boundary ? null  // no room along it
        : svg('text', { class: 'roof-name', x: tx, y: ty, transform: `rotate(${angle} ${tx} ${ty})`, 'text-anchor': 'middle' }, name)));
  }
  return found;
}

// Whether a line from left to right meets a box.
function meets({ x1, y1, x2, y2 }, [left, top, right, bottom]) {
  const ends = [Math.max(left, x1), Math.min(right, x2)];
  if (ends[0] >= ends[1]) return false;
  const [from, to] = ends.map((at) => y1 + ((at - x1) / (x2 - x1)) * (y2 - y1));
  return Math.max(from, to) > top && Math.min(from, to) < bottom;
}

const POINTS = {
  '●': (cx, cy) => svg('circle', { cx, cy, r: 4 }),
  '■': (cx, cy) => svg('rect', { x: cx - 4, y: cy - 4, width: 8, height: 8 }),
  '▲': (cx, cy) => svg('path', { d: `M${cx} ${cy - 5}l5 9h-10z` }),
  '◆': (cx, cy) => svg('path', { d: `M${cx} ${cy - 6}l5 6l-5 6l-5 -6z` }),
  '▼': (cx, cy) => svg('path', { d: `M${cx} ${cy + 5}l5 -9h-10z` }),
  '✚': (cx, cy) => svg('path', { d: `M${cx - 2} ${cy - 5}h4v3h3v4h-3v3h-4v-3h-3v-4h3z` }),
};

function byIntensity() {
  return shownOrder.filter((index) => intensity(LAYERS[index], state.boundary))
    .sort((a, b) => intensity(LAYERS[a], state.boundary) - intensity(LAYERS[b], state.boundary) || a - b);
}

// Beyond the edges, at the edge.
function spotOf(one, x, y, range, at = intensity(one, state.boundary), rate = reached(one)) {
  return { cx: x(Math.min(range.x[1], Math.max(range.x[0], at))), cy: y(Math.max(range.y[0], rate)) };
}

function points(x, y, range) {
  const bounds = ['compute', ...BOUNDARIES.map((one) => one.outer)];
  const shown = byIntensity();
  const holder = shown.includes(state.layer) ? state.layer : shown[0];
  return shown.map((index) => {
    const one = LAYERS[index];
    const at = intensity(one, state.boundary);
    const { cx, cy } = spotOf(one, x, y, range);
    const mark = POINTS[shapeOf(one.found[0].bound_by)](cx.toFixed(1) * 1, cy.toFixed(1) * 1);
    return svg('g', {
      class: `point bound-${Math.max(0, bounds.indexOf(one.found[0].bound_by))}`,
      role: 'option', tabindex: index === holder ? 0 : -1, 'data-index': index,
      'aria-selected': index === state.layer ? 'true' : 'false',
      'aria-label': `layer ${one.number} ${one.name}: ${general(at)} FLOP per byte, ${scaled(reached(one), 'FLOP/s')}, bound by ${one.found[0].bound_by}`,
    }, mark);
  });
}

// Where a number may stand from its point: beside it, or up and down at the end of a line.
const PLACES = (half) => [[0, 11], [half + 7, 0], [-half - 7, 0], [0, -11], [0, 22], [0, -22], [0, 33], [0, -33], [0, 44]];

// Half of a point's width, as far as numbers keep off it; the chosen one has a ring.
const REACH = 4;
const RING = 9;

// Numbers of layers beside their points where there is room, on no roof, the slowest layers first.
function pointNames(x, y, range, width) {
  const spots = byIntensity().map((index) => ({ one: LAYERS[index], ...spotOf(LAYERS[index], x, y, range) }));
  const { flat, slopes } = roofLines(x, y, range);
  const lines = [...flat, ...slopes];
  const reach = (one) => (one === layer() ? RING : REACH);
  const taken = [...spots.map(({ one, cx, cy }) => [cx - reach(one), cy - reach(one), cx + reach(one), cy + reach(one)]), ...flat.map(({ y1 }) => [MARGIN.left, y1 - 18, MARGIN.left + 120, y1])];
  const edited = editedSpot(x, y, range);
  if (edited) taken.push([edited.cx - REACH, edited.cy - REACH, edited.cx + REACH, edited.cy + REACH]);
  const found = [];
  for (const { one, cx, cy } of [...spots].sort((a, b) => timeOf(b.one) - timeOf(a.one))) {
    const name = `${one.number}${reached(one) < range.y[0] ? '↓' : ''}`;
    const half = 3.4 * name.length;
    const further = reach(one) - REACH;
    for (const [across, down] of PLACES(half)) {
      const [dx, dy] = [across + further * Math.sign(across), down + further * Math.sign(down)];
      const box = [cx + dx - half, cy + dy - 5, cx + dx + half, cy + dy + 5];
      const free = taken.every((other) => box[0] >= other[2] || box[2] <= other[0] || box[1] >= other[3] || box[3] <= other[1]);
      if (!free || box[0] < MARGIN.left || box[1] < 0 || box[2] > width || lines.some((line) => meets(line, box))) continue;
      taken.push(box);
      const side = Math.sign(dy);
      if (Math.abs(down) > 11) found.push(svg('line', { class: 'leader', x1: cx.toFixed(1), x2: cx.toFixed(1), y1: (cy + (reach(one) + 1) * side).toFixed(1), y2: (cy + dy - 5 * side).toFixed(1) }));
      found.push(svg('text', { x: (cx + dx).toFixed(1), y: (cy + dy + 4).toFixed(1), 'text-anchor': 'middle' }, name));
      break;
    }
  }
  return found;
}

function markPoint() {
  const plot = byId('roofline').querySelector('svg');
  for (const point of plot.querySelectorAll('.point')) {
    const chosen = Number(point.dataset.index) === state.layer;
    point.setAttribute('aria-selected', String(chosen));
    point.setAttribute('tabindex', chosen ? '0' : '-1');
  }
  if (!plot.querySelector('.point[tabindex="0"]')) {
    const first = plot.querySelector('.point');
    if (first) first.setAttribute('tabindex', '0');
  }
  const { x, y, range, width } = plot.drawn;
  plot.querySelector('.point-names').replaceChildren(...pointNames(x, y, range, width));
  drawRing();
  const one = layer();
  const at = intensity(one, state.boundary);
  byId('roofline-text').textContent = `${one.number}: ${one.name} – ${at ? general(at) : 'no traffic,'} FLOP per byte, ${scaled(reached(one), 'FLOP/s')}, bound by ${one.found[0].bound_by}.`;
}

// Where the layer stands as it is edited by hand, if it is.
function editedSpot(x, y, range) {
  const { text, evaluation } = current();
  const moved = Number(evaluation.levels[state.boundary].promised_bytes);
  if (text === best().schedule || !moved) return null;
  return spotOf(layer(), x, y, range, layer().flops / moved, layer().flops / evaluation.time_s);
}

// The layer at all levels: where it stands under each roof; and what is made of it by hand.
function drawRing() {
  const plot = byId('roofline').querySelector('svg');
  const group = byId('roofline-chosen');
  if (!group || !plot.drawn) return;
  const { x, y, range } = plot.drawn;
  const one = layer();
  const { cy: height } = spotOf(one, x, y, range);
  const places = BOUNDARIES.map((_, level) => intensity(one, level))
    .map((at, level) => (at && (level === state.boundary || (at >= range.x[0] && at <= range.x[1])) ? spotOf(one, x, y, range, at).cx : null));
  const seen = places.filter((at) => at !== null);
  const here = places[state.boundary];
  const parts = [svg('line', { class: 'tie', x1: Math.min(...seen), x2: Math.max(...seen), y1: height, y2: height })];
  places.forEach((at, level) => {
    if (at !== null) parts.push(svg('circle', { class: level === state.boundary ? 'ring' : 'ring other', cx: at, cy: height, r: level === state.boundary ? RING : 4 }));
  });
  const edited = editedSpot(x, y, range);
  if (edited) parts.push(svg('path', { class: 'edited-tie', d: `M${here} ${height}L${edited.cx} ${edited.cy}` }), svg('circle', { class: 'edited', ...edited, r: 5 }));
  group.replaceChildren(...parts);
}

function pointKeys(event) {
  const point = event.target.closest('.point');
  if (!point || event.altKey || event.ctrlKey || event.metaKey) return;
  const steps = { ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, ArrowUp: 1, Home: -1e9, End: 1e9 };
  if (event.key in steps) {
    event.preventDefault();
    const shown = byIntensity();
    const place = shown.indexOf(Number(point.dataset.index));
    const next = shown[Math.max(0, Math.min(shown.length - 1, place + steps[event.key]))];
    chooseLayer(next);
    byId('roofline').querySelector(`.point[data-index="${next}"]`).focus({ preventScroll: true });
  } else if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    openLayer();
  }
}

function startRoofline() {
  if (BOUNDARIES.length > 1) {
    choice(byId('roofline-level'), 'boundary', BOUNDARIES.map((one, index) => [String(index), one.outer]), '0', (value) => {
      state.boundary = Number(value);
      drawRoofline();
    });
  }
  const plot = byId('roofline').querySelector('svg');
  plot.addEventListener('click', (event) => {
    const point = event.target.closest('.point');
    if (point) chooseLayer(Number(point.dataset.index));
  });
  plot.addEventListener('keydown', pointKeys);
  plot.addEventListener('pointerover', (event) => {
    const point = event.target.closest('.point');
    if (point) byId('roofline-text').textContent = point.getAttribute('aria-label').replace(/^l/, 'L');
    rowHover(point ? Number(point.dataset.index) : null);
  });
  plot.addEventListener('pointerleave', () => { rowHover(null); markPoint(); });
  byId('layers').addEventListener('pointerover', (event) => {
    const row = event.target.closest('tbody tr[data-index]');
    pointHover(row ? Number(row.dataset.index) : null);
  });
  byId('layers').addEventListener('pointerleave', () => pointHover(null));
  const bounds = [...new Set(LAYERS.map((one) => one.found[0].bound_by))];
  byId('roofline-key').replaceChildren(el('span', {}, 'bound by '), ...bounds.map(boundMark));
  drawRoofline();
  watch(['layer', 'schedule'], markPoint);
  watch(['filter', 'size'], drawRoofline);
}

function rowHover(index) {
  for (const [each, row] of rowOf) row.classList.toggle('hover', each === index);
}

function pointHover(index) {
  for (const point of byId('roofline').querySelectorAll('.point')) {
    point.classList.toggle('hover', Number(point.dataset.index) === index);
  }
}
