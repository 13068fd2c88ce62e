// The reuse model in closed form: what one buffer's schedule lets it keep.
//
// A room is { shared, own, held, passing }: bytes for all tensors together, bytes of
// those with a room of their own by tensor number, the tensors that enter in the
// problem's order, and the numbers of those that do not. Bytes and counts are BigInt.

/** Whether these bytes a tensor, in the order of those held, fit together. */
function fits(room, needs) {
  let shared = 0n;
  for (let i = 0; i < needs.length; i++) {
    const own = room.own.get(room.held[i].number);
    if (own === undefined) shared += needs[i];
    else if (needs[i] > own) return false;
  }
  return shared <= room.shared;
}

/** Room of an n-th of the size. */
function divided(room, n) {
  const own = new Map([...room.own].map(([tensor, size]) => [tensor, size / n]));
  return { ...room, shared: room.shared / n, own };
}

/** The outermost cut whose body fits; null if not even one point does. */
function fitCut(view, room, copies = 1n) {
  for (let upto = view.boundary; upto <= view.cuts.length; upto++) {
    if (fits(room, room.held.map((tensor) => copies * view.footprintBytes(tensor, upto)))) {
      return upto;
    }
  }
  return null;
}

/** Translate a number of cuts into a loop position of the schedule. */
function fitPosition(view, upto) {
  return upto === 0 ? 0 : view.cuts[upto - 1].position + 1;
}

/** The loops just outside a body, from one on, that leave a tensor where it is. */
function runOutside(view, tensor, upto, start = 0) {
  const inner = [];
  let stop = upto;
  while (stop > view.boundary && view.cuts[stop - 1].position >= start) {
    const cut = view.cuts[stop - 1];
    if (!cut.isParallel) {
      if (tensor.indexed[cut.dim]) {
        const slides = tensor.axes.some((axis) => axis.isCompound && axis.dims.includes(cut.dim));
        return { inner, stop, slide: slides ? cut : null };
      }
      inner.push(cut);
    }
    stop--;
  }
  return { inner, stop, slide: null };
}

/** Visits of a scratchpad that keeps, of the tile before, what it is told. */
function placedVisits(view, tensor, upto, slides) {
  const run = runOutside(view, tensor, upto);
  return slides && run.slide ? view.slidElems(tensor, run.stop) : view.visitsElems(tensor, run.stop);
}

/** Visits where the reuse between bodies is granted once the body fits. */
function steadyVisits(view, tensor, upto, slides) {
  const run = runOutside(view, tensor, upto);
  return view.visitsElems(tensor, run.stop - (slides && run.slide ? 1 : 0));
}

/**
 * Visits of each held tensor for the best body, with only guaranteed reuse.
 *
 * A body inside the loop positions `asked.anew`, by tensor number, may ask for nothing that
 * an earlier one asked for: only what stays until its last use is kept.
 */
function guaranteedVisits(view, room, fit, asked) {
  const weights = room.held.map((tensor) => tensor.width * (tensor.isOutput ? 2n : 1n));
  let best = null;
  let least = 0n;
  for (let upto = fit; upto <= view.cuts.length; upto++) {
    const position = fitPosition(view, upto);
    const item = asked ? itemOf(asked, view, position) : { start: 0, lateBytes: 0n };
    const visits = room.held.map((tensor) =>
      asked && position > asked.anew[tensor.number]
        ? lastingAt(view, room, tensor, upto, item)
        : guaranteedAt(view, room, tensor, upto, item)
    );
    const total = bigSum(visits.map((count, i) => weights[i] * count));
    if (best === null || total < least) [best, least] = [visits, total];
    const steady = room.held.map((t, i) => weights[i] * steadyVisits(view, t, upto, true));
    if (bigSum(steady) >= least) break; // a smaller body has no fewer visits
  }
  return best || [];
}

function guaranteedAt(view, room, tensor, upto, item) {
  const run = runOutside(view, tensor, upto);
  if (run.slide && isGapless(view, tensor, run.slide, upto)) {
    if (stays(view, room, upto, [...run.inner, run.slide], item)) {
      // Windows side by side run into each other's stretches at another time.
      return view.visitsElems(tensor, run.stop - 1, run.slide.dim);
    }
  }
  if (!run.inner.length || stays(view, room, upto, run.inner, item)) {
    return view.visitsElems(tensor, run.stop);
  }
  return view.visitsElems(tensor, upto);
}

/** Grant the reuse that holds whatever the levels inside keep. */
function lastingAt(view, room, tensor, upto, item) {
  let run = runOutside(view, tensor, upto, item.start);
  if (run.inner.length && isSteady(view, run.inner)) {
    if (stays(view, room, upto, run.inner, item)) return view.visitsElems(tensor, run.stop);
  }
  run = runOutside(view, tensor, upto);
  if (run.slide && !run.inner.length && isGapless(view, tensor, run.slide, upto)) {
    const many = nTouching(view, tensor, run.slide, upto);
    if (stays(view, room, upto, [run.slide], item, many)) {
      return view.visitsElems(tensor, run.stop - 1, run.slide.dim);
    }
  }
  return view.visitsElems(tensor, upto);
}

/** Whether consecutive bodies fit together, and the sums that come where an item ends. */
function stays(view, room, upto, between, item, many = 2) {
  const windows = windowBytes(view, room, upto, between, many);
  const stray = between[between.length - 1].position < item.start ? item.lateBytes : 0n;
  return fits(room, windows.map((size, i) => (room.held[i].isOutput ? size + stray : size)));
}

/** Whether the bodies of a run are alike: one dimension, alone on its axes, equal pieces. */
function isSteady(view, run) {
  const { dim } = run[0];
  for (const { axes } of view.problem.tensors) {
    for (const axis of axes) if (axis.dims.includes(dim) && !axis.isPlain) return false;
  }
  if (run.some((cut) => cut.dim !== dim)) return false;
  const extents = view.chain(dim, view.cuts.indexOf(run[0]) + 1).map((cut) => cut.extent);
  return run.length === 1 || segmentLengths(view.problem.sizes[dim], extents).size === 1;
}

/** Bodies of a sweep that may touch one element. */
function nTouching(view, tensor, slide, upto) {
  const extents = view.extents(upto);
  const { dims, factors } = tensor.axes.find((axis) => axis.dims.includes(slide.dim));
  const width = dims.reduce((sum, d, i) => sum + factors[i] * (extents[d] - 1), 0);
  return quotient(width, factors[dims.indexOf(slide.dim)] * extents[slide.dim]) + 1;
}

/** Whether a body touches an unbroken stretch where the window slides. */
function isGapless(view, tensor, slide, upto) {
  const extents = view.extents(upto);
  return tensor.axes.every((axis) => !axis.dims.includes(slide.dim) || isUnbroken(axis, extents));
}

function isUnbroken(axis, extents) {
  const moving = axis.dims.map((d, i) => i).filter((i) => extents[axis.dims[i]] > 1);
  const factors = moving.map((i) => axis.factors[i]);
  if (moving.length <= 1) return factors.every((factor) => factor === 1);
  const reached = reach(factors, moving.map((i) => extents[axis.dims[i]]));
  return reached.count === reached.span;
}

/** Bound what two consecutive bodies touch, or more of them, for each held tensor. */
function windowBytes(view, room, upto, between, many = 2) {
  return room.held.map((tensor) => pairBytes(view, tensor, upto, between, many));
}

function pairBytes(view, tensor, upto, between, many) {
  const one = view.footprintBytes(tensor, upto);
  if (!between.some((cut) => tensor.indexed[cut.dim])) return one;
  if (between.length > 1 || view.cuts[upto - 1] !== between[0]) return BigInt(many) * one;
  let elems = 1n;
  tensor.axes.forEach((_, a) => {
    elems *= pairOnAxis(view, tensor, a, upto, between[0].dim, many);
  });
  return bigSmaller(BigInt(many) * one, elems * tensor.width);
}

/** Bound what neighbouring pieces of a dimension touch on an axis. */
function pairOnAxis(view, tensor, a, upto, d, many) {
  const axis = tensor.axes[a];
  const one = view.axisExtremes(tensor, a, upto).largest;
  if (!axis.dims.includes(d)) return one;
  const extents = view.extents(upto);
  const around = smallestExtent(view.chain(d, upto - 1), view.problem.sizes[d]);
  extents[d] = Math.min(many * extents[d], around);
  const both = BigInt(axisCount(axis, null, extents, null)) * view.nCopies(axis, upto);
  return bigSmaller(bigSmaller(BigInt(many) * one, both), axis.size ? BigInt(axis.size) : both);
}

/** The regions, by their number of cuts, that are fetched anew at each visit. */
function certainCuts(view, room, tensor) {
  if (view.cuts.some((cut) => cut.isParallel) || room.own.has(tensor.number)) return [];
  const own = new Set();
  for (const axis of tensor.axes) {
    const moving = movingDims(view, axis);
    if (moving.length === 1) own.add(moving[0]);
  }
  const found = [];
  for (let upto = view.boundary; upto < view.cuts.length; upto++) {
    if (!own.has(view.cuts[upto].dim)) continue;
    const others = leastBetween(view, room, upto);
    if (others !== null && others + tensor.width > room.shared) found.push(upto);
  }
  return found;
}

/** Bound from below what all iterations but one of a cut touch; null if there is but one. */
function leastBetween(view, room, upto) {
  const cut = view.cuts[upto];
  const shortest = shortestPiece(view, cut.dim, upto);
  if (shortest <= cut.extent) return null;
  let total = 0n;
  for (const tensor of room.held) {
    if (room.own.has(tensor.number)) continue;
    let elems = 1n;
    tensor.axes.forEach((_, a) => {
      elems *= leastOnAxis(view, tensor, a, cut, upto, shortest);
    });
    total += elems * tensor.width;
  }
  return total;
}

function leastOnAxis(view, tensor, a, cut, upto, shortest) {
  const axis = tensor.axes[a];
  if (!axis.dims.includes(cut.dim)) return view.axisExtremes(tensor, a, upto).smallest;
  if (isClipped(axis, view.problem.sizes)) return 0n;
  if (movingDims(view, axis).length === 1) return BigInt(shortest - cut.extent);
  // The iterations before and after may overlap: count the longer side only.
  const extents = view.problem.sizes.map((_, d) =>
    axis.dims.includes(d) ? shortestPiece(view, d, upto) : 1
  );
  extents[cut.dim] = Math.max(1, quotient(shortest - cut.extent, 2));
  return BigInt(axisCount(axis, null, extents));
}

/** Dimensions of an axis that have more than one position. */
function movingDims(view, axis) {
  return axis.dims.filter((d) => view.problem.sizes[d] > 1);
}

function shortestPiece(view, d, upto) {
  const extents = view.chain(d, upto).map((cut) => cut.extent);
  return Math.min(...segmentLengths(view.problem.sizes[d], extents).keys());
}
