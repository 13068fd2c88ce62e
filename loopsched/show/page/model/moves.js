// Moves that lead from one schedule to another, as the library finds them.

/** A trace: lists of an operation and what it takes; null if a loop of a new dimension is needed. */
function moves({ loops: before }, { loops: after }) {
  const now = before.map((loop) => ({ ...loop }));
  const trace = [];
  const dims = [...new Set(before.map((loop) => loop.dim))];
  if (after.some((loop) => !dims.includes(loop.dim))) return null;
  const places = (loops, dim) => loops.flatMap((loop, at) => (loop.dim === dim ? [at] : []));
  const extents = (loops, dim) => places(loops, dim).map((at) => loops[at].extent);
  const count = (list, one) => list.filter((each) => each === one).length;
  for (const dim of dims) {
    const wanted = extents(after, dim);
    while (extents(now, dim).length > wanted.length) {
      const have = places(now, dim);
      const at = have.filter((place) => !wanted.includes(now[place].extent)).pop() ?? have.pop();
      trace.push(["drop_loop", at]);
      now.splice(at, 1);
    }
    while (extents(now, dim).length < wanted.length) {
      const have = extents(now, dim);
      const extent = wanted.find((each) => count(have, each) < count(wanted, each));
      const inside = places(now, dim).filter((at) => now[at].extent < extent).slice(0, 1);
      trace.push(["tile", dim, extent, ...inside]);
      now.splice(inside[0] ?? now.length, 0, { dim, extent });
    }
  }
  for (const dim of dims) {
    const own = places(now, dim);
    extents(after, dim).forEach((extent, i) => {
      if (now[own[i]].extent === extent) return;
      trace.push(["resize", own[i], extent]);
      for (const at of own.slice(i)) now[at].extent = Math.min(now[at].extent, extent);
      now[own[i]].extent = extent;
    });
  }
  const queues = new Map(dims.map((dim) => [dim, places(now, dim)]));
  const order = after.map((loop) => queues.get(loop.dim).shift());
  if (order.some((place, at) => place !== at)) trace.push(["reorder", order]);
  order.forEach((place, at) => {
    const unit = after[at].unit || "";
    if ((now[place].unit || "") === unit) return;
    trace.push(unit ? ["bind_spatial", at, unit] : ["unbind", at]);
  });
  return trace;
}
