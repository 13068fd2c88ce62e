// Changes of a schedule as lists of loops: pure functions, each returns a new list that covers the problem.

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

// Loops by their places in another order: one that passes another of its dimension leaves it the larger tile.
function reordered(loops, order) {
  const extents = new Map();
  for (const one of loops) extents.set(one.dim, [...(extents.get(one.dim) || []), one.extent]);
  for (const list of extents.values()) list.sort((a, b) => b - a);
  return order.map((place) => ({ ...loops[place], extent: extents.get(loops[place].dim).shift() }));
}

// Loops of one unit are one list of work: a loop of it takes the others along, any other passes all of them.
// `units` are in the order in which they nest.
function moved(loops, from, to, units) {
  const order = loops.map((_, place) => place);
  order.splice(to, 0, ...order.splice(from, 1));
  return together(loops, order, from, to > from, units);
}

function together(loops, order, moving, isInward, units) {
  const { unit } = loops[moving];
  const along = unit ? order.filter((place) => loops[place].unit === unit) : [moving];
  const others = (some) => some.filter((place) => !along.includes(place));
  const [before, after] = [others(order.slice(0, order.indexOf(moving))), others(order.slice(order.indexOf(moving)))];
  const unitAt = (place) => (place === undefined ? '' : loops[place].unit);
  const around = unitAt(after[0]);
  if (around && unitAt(before[before.length - 1]) === around) {
    if (isInward) while (unitAt(after[0]) === around) before.push(after.shift());
    else while (unitAt(before[before.length - 1]) === around) after.unshift(before.pop());
  }
  if (unit) {
    const isOut = (place, other) => unitAt(place) && units.indexOf(unitAt(place)) < units.indexOf(other);
    while (after.some((place) => isOut(place, unit))) before.push(after.shift());
    while (before.some((place) => unitAt(place) && !isOut(place, unit))) after.unshift(before.pop());
  }
  const found = [...before, ...along, ...after];
  return { loops: reordered(loops, found), place: found.indexOf(moving) };
}

function withExtent(loops, place, extent, sizes) {
  return covering(loops.map((one, index) => (index === place ? { ...one, extent } : one)), sizes);
}

// A loop joins the others of its unit; one that leaves them goes inside.
function withUnit(loops, place, unit, units) {
  const found = loops.map((one, index) => (index === place ? { ...one, unit } : one));
  const order = found.map((_, index) => index);
  const near = order.filter((index) => index !== place && unit && found[index].unit === unit);
  if (near.length) order.splice(place < near[0] ? near[0] - 1 : near[near.length - 1] + 1, 0, ...order.splice(place, 1));
  return together(found, order, place, true, units);
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

const MOST_STOPS = 1e5;

// Tile sizes worth a stop of the slider: the smallest tile of every number of trips.
function stops(around, extent) {
  const found = new Set([1, around, extent]);
  const half = Math.min(MOST_STOPS, Math.ceil(Math.sqrt(around)));
  for (let tile = 1; tile <= half; tile += 1) found.add(tile).add(Math.ceil(around / tile));
  return [...found].sort((a, b) => a - b);
}
