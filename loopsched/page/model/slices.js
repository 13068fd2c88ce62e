// Slices of a nest too long to replay: each alone, and what it finds of the ones before.

/** Replay a nest by its slices: the largest ones that a budget allows; null if there are none. */
function replaySlices(view, room, budget) {
  const items = itemsOf(view);
  if (items === null) return null;
  const nest = new Nest(view, items);
  const pools = poolsOf(room);
  const nTensors = view.problem.tensors.length;
  const boxesOf = (ofNest, kinds, depth) =>
    kinds.reduce((sum, kind) => sum + ofNest.boxes(kind, depth), 0);
  for (const depth of nest.depths()) {
    // The steps of a wave are no items.
    if (depth === 0 || nest.loops.slice(0, depth).some((loop) => loop.group !== null)) continue;
    const inside = view.sliced(depth);
    const kinds = itemsOf(inside);
    if (kinds === null) continue;
    const alone = new Nest(inside, kinds);
    if (boxesOf(alone, kinds, alone.deepest) * nTensors > budget) continue;
    const inner = replayAt(alone, room, kinds, alone.deepest, pools, budget, true);
    if (inner === null) continue;
    let first = null;
    if (boxesOf(nest, items, depth) * nTensors <= budget) {
      first = replayAt(nest, room, items, depth, pools, budget, false);
    }
    return together(room, items, kinds, inner, first);
  }
  return null;
}

/** Add what slices bring in again to what they find missing at first. */
function together(room, items, kinds, inner, first) {
  const [low, high] = [[], []];
  room.held.forEach((tensor, i) => {
    const own = room.own.get(tensor.number);
    const held = (own === undefined ? room.shared : own) / tensor.width;
    const elemsOf = (kind) => footprintElems(tensor, kind.start, kind.length);
    const touched = bigSum(kinds.map((kind) => kind.count * elemsOf(kind)));
    const missing = [
      bigSum(kinds.map((kind) => kind.count * bigLarger(0n, elemsOf(kind) - held))),
      bigSum(items.map((item) => item.count * elemsOf(item))),
      first ? first.low[i] : 0n,
    ].reduce(bigLarger);
    const atMost = first ? bigSmaller(touched, first.anew[i]) : touched;
    const again = inner.point[i] - touched;
    low.push(again + missing);
    high.push(again + atMost);
  });
  return { low, point: high, anew: high, fits: true };
}
