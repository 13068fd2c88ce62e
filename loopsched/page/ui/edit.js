// Changes of a schedule as lists of loops: pure functions, each returns a new list that covers the problem.

function loopsOf(text) {
  return text.split(/[\s,]+/).filter(Boolean).map((word) => {
    const [, dim, extent, unit] = /^([^:]+):([0-9]+)(?:@(.+))?$/.exec(word);
    return { dim, extent: Number(extent), unit: unit || '' };
  });
}

function textOf(loops) {
  return loops.map((one) => `${one.dim}:${one.extent}${one.unit ? `@${one.unit}` : ''}`).join(' ');
}

// Extents of a dimension never grow inward, and the outermost covers it.
function covering(loops, sizes) {
  const around = new Map();
  return loops.map((one) => {
    const most = around.has(one.dim) ? around.get(one.dim) : sizes.get(one.dim);
    const extent = around.has(one.dim) ? Math.max(1, Math.min(one.extent, most)) : most;
    around.set(one.dim, extent);
    return { ...one, extent };
  });
}

// A loop that passes another of its dimension leaves it the larger tile.
function moved(loops, from, to) {
  const found = [...loops];
  found.splice(to, 0, ...found.splice(from, 1));
  const extents = new Map();
  for (const one of loops) extents.set(one.dim, [...(extents.get(one.dim) || []), one.extent]);
  for (const list of extents.values()) list.sort((a, b) => b - a);
  return found.map((one) => ({ ...one, extent: extents.get(one.dim).shift() }));
}

function withExtent(loops, place, extent, sizes) {
  return covering(loops.map((one, index) => (index === place ? { ...one, extent } : one)), sizes);
}

function withUnit(loops, place, unit) {
  return loops.map((one, index) => (index === place ? { ...one, unit } : one));
}

function without(loops, place, sizes) {
  return covering(loops.filter((_, index) => index !== place), sizes);
}

// One more loop of a dimension, innermost, over tiles of about the square root.
function withLoop(loops, dim, sizes) {
  const inner = loops.filter((one) => one.dim === dim).pop();
  const around = inner ? inner.extent : sizes.get(dim);
  const extent = inner ? Math.max(1, Math.ceil(Math.sqrt(around))) : around;
  return covering([...loops, { dim, extent, unit: '' }], sizes);
}

// Tile sizes worth a stop of the slider: the smallest tile of every number of trips.
function stops(around, extent) {
  const found = new Set([1, around, extent]);
  for (let trips = 1; trips <= around; trips += 1) {
    const tile = Math.ceil(around / trips);
    found.add(tile);
    if (tile <= Math.sqrt(around)) break;
  }
  for (let tile = Math.ceil(Math.sqrt(around)); tile >= 1; tile -= 1) found.add(tile);
  return [...found].sort((a, b) => a - b);
}
