// Exact footprints: how many distinct stored elements a region touches.

const MOST_KNOWN = 4096;
const knownReaches = new Map();

/**
 * Positions that sums of arithmetic progressions reach: a mark for each, their number,
 * and how many lie before each position.
 */
function reach(factors, extents) {
  const key = `${factors}|${extents}`;
  let found = knownReaches.get(key);
  if (found) return found;
  if (knownReaches.size >= MOST_KNOWN) knownReaches.clear();
  let span = 1;
  factors.forEach((factor, i) => {
    span += factor * (extents[i] - 1);
  });
  const marks = new Uint8Array(span);
  marks[0] = 1;
  let end = 1;
  factors.forEach((factor, i) => {
    let copies = 1;
    while (copies < extents[i]) {
      // Doubling: each pass at most doubles the members; from above, so that none is met twice.
      const step = Math.min(copies, extents[i] - copies);
      const shift = factor * step;
      for (let x = end - 1; x >= 0; x--) if (marks[x]) marks[x + shift] = 1;
      end += shift;
      copies += step;
    }
  });
  const before = new Float64Array(span + 1);
  for (let x = 0; x < span; x++) before[x + 1] = before[x] + marks[x];
  found = { marks, before, span, count: before[span] };
  knownReaches.set(key, found);
  return found;
}

/** Marked positions that are stored, the first of them at `first`. */
function clippedCount(reached, first, size) {
  const low = Math.min(Math.max(-first, 0), reached.span);
  const high = Math.min(Math.max(size - first, 0), reached.span);
  return reached.before[Math.max(high, low)] - reached.before[low];
}

/** Distinct stored positions that a region touches on an axis. */
function axisCount(axis, start, extent, size = axis.size) {
  const factors = [];
  const extents = [];
  axis.dims.forEach((d, i) => {
    if (extent[d] > 1) {
      factors.push(axis.factors[i]);
      extents.push(extent[d]);
    }
  });
  if (size === null) return extents.length === 1 ? extents[0] : reach(factors, extents).count;
  let first = axis.offset;
  axis.dims.forEach((d, i) => {
    first += axis.factors[i] * (start ? start[d] : 0);
  });
  if (extents.length === 1) {
    const skipped = Math.max(0, -Math.floor(first / factors[0]));
    const kept = Math.min(extents[0], -Math.floor((first - size) / factors[0]));
    return Math.max(0, kept - skipped);
  }
  return clippedCount(reach(factors, extents), first, size);
}

/** Distinct stored elements of a tensor in one region, a BigInt. */
function footprintElems(tensor, start, extent) {
  let elems = 1n;
  for (const axis of tensor.axes) elems *= BigInt(axisCount(axis, start, extent));
  return elems;
}

/** Bytes of what the whole iteration space touches of a tensor. */
function tensorBytes(problem, tensor) {
  if (tensor.wholeBytes === undefined) {
    tensor.wholeBytes = footprintElems(tensor, null, problem.sizes) * tensor.width;
  }
  return tensor.wholeBytes;
}

/** The pieces that a chain of tile extents cuts a dimension into: [start, length] in order. */
function segments(size, extents) {
  let pieces = [[0, size]];
  for (const extent of extents) {
    const cut = [];
    for (const [start, length] of pieces) {
      for (let begin = start; begin < start + length; begin += extent) {
        cut.push([begin, Math.min(extent, start + length - begin)]);
      }
    }
    pieces = cut;
  }
  return pieces;
}

function nSegments(size, extents) {
  let count = 0;
  for (const many of segmentLengths(size, extents).values()) count += many;
  return count;
}

/** Count the pieces by their length: a Map of length to number. */
function segmentLengths(size, extents) {
  let lengths = new Map([[size, 1]]);
  for (const extent of extents) {
    const cut = new Map();
    for (const [length, many] of lengths) {
      const rest = length % extent;
      const full = (length - rest) / extent;
      if (full) cut.set(extent, (cut.get(extent) || 0) + many * full);
      if (rest) cut.set(rest, (cut.get(rest) || 0) + many);
    }
    lengths = cut;
  }
  return lengths;
}

/** Whether part of what the dimensions reach on an axis is padding. */
function isClipped(axis, sizes) {
  if (axis.size === null) return false;
  let last = axis.offset;
  axis.dims.forEach((d, i) => {
    last += axis.factors[i] * (sizes[d] - 1);
  });
  return axis.offset < 0 || last >= axis.size;
}

/** Total, largest and smallest count on an axis over all pieces of a tiling, BigInts. */
function axisExtremes(axis, sizes, chains) {
  const key = `${sizes} ${chains.join("|")}`;
  let found = axis.extremes.get(key);
  if (!found) {
    if (axis.extremes.size >= MOST_KNOWN) axis.extremes.clear();
    found = newExtremes(axis, sizes, chains);
    axis.extremes.set(key, found);
  }
  return found;
}

function newExtremes(axis, sizes, chains) {
  if (axis.dims.length === 1 && axis.size === null) {
    const lengths = [...segmentLengths(sizes[0], chains[0]).keys()];
    return extremes(sizes[0], Math.max(...lengths), Math.min(...lengths));
  }
  // Where each dimension's pieces begin, times its factor, by their length.
  const starts = axis.dims.map((_, i) => startsByLength(sizes[i], chains[i], axis.factors[i]));
  let [total, largest, smallest] = [0, 0, Infinity];
  for (const shape of combinations(starts.map((byLength) => [...byLength.keys()]))) {
    const reached = reach(axis.factors, shape);
    let firsts = [axis.offset];
    let many = 1;
    shape.forEach((length, i) => {
      const begins = starts[i].get(length);
      many *= begins.length;
      if (axis.size === null) return; // all count alike
      const further = [];
      for (const first of firsts) for (const begin of begins) further.push(first + begin);
      firsts = further;
    });
    if (axis.size === null) {
      total += many * reached.count;
      largest = Math.max(largest, reached.count);
      smallest = Math.min(smallest, reached.count);
      continue;
    }
    for (const first of firsts) {
      const count = clippedCount(reached, first, axis.size);
      total += count;
      if (count > largest) largest = count;
      if (count < smallest) smallest = count;
    }
  }
  return extremes(total, largest, smallest);
}

/** Sum what pieces add on an axis where each keeps what it shares with the one before. */
function axisSlid(axis, sizes, chains, along) {
  const begins = new Set(segments(sizes[along], chains[along].slice(0, -1)).map(([at]) => at));
  const factor = axis.factors[along];
  const extent = chains[along][chains[along].length - 1];
  const known = new Map();
  let total = 0;
  for (const places of combinations(axis.dims.map((_, i) => segments(sizes[i], chains[i])))) {
    const first = places.reduce((at, [begin], i) => at + axis.factors[i] * begin, axis.offset);
    const shape = places.map(([, length]) => length);
    const isFirst = begins.has(places[along][0]);
    const key = `${shape}|${isFirst}`;
    if (!known.has(key)) {
      const now = reach(axis.factors, shape);
      shape[along] = extent;
      known.set(key, isFirst ? now : without(now, reach(axis.factors, shape), factor * extent));
    }
    const added = known.get(key);
    total += axis.size === null ? added.count : clippedCount(added, first, axis.size);
  }
  return BigInt(total);
}

/** Leave out of what is reached what another region reaches that begins so much before. */
function without(now, earlier, shift) {
  const { span } = now;
  const before = new Float64Array(span + 1);
  for (let x = 0; x < span; x++) {
    before[x + 1] = before[x] + (now.marks[x] && !earlier.marks[x + shift] ? 1 : 0);
  }
  return { before, span, count: before[span] };
}

function extremes(total, largest, smallest) {
  return { total: BigInt(total), largest: BigInt(largest), smallest: BigInt(smallest) };
}

function startsByLength(size, chain, factor) {
  const found = new Map();
  for (const [begin, length] of segments(size, chain)) {
    if (!found.has(length)) found.set(length, []);
    found.get(length).push(begin * factor);
  }
  return found;
}
