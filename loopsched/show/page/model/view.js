// What one buffer sees of a schedule: a list of cuts, outermost first.
//
// A cut takes a region apart along one dimension, into pieces of its extent.
// Sequential cuts visit their pieces one after the other; a parallel cut hands
// its pieces to instances inside the buffer, so that all are present at once.

// Kinds of lists of items that are looked at one by one.
const MOST_LISTS = 16;

class View {
  constructor(problem, cuts, boundary, schedule, instances, ownUnits) {
    this.problem = problem;
    this.cuts = cuts;
    this.boundary = boundary;
    this.schedule = schedule;
    this.instances = instances;
    this.ownUnits = ownUnits;
    this.byDim = problem.dims.map((_, d) => cuts.filter((cut) => cut.dim === d));
    this.depth = [new Array(problem.dims.length).fill(0)];
    for (const cut of cuts) {
      const next = [...this.depth[this.depth.length - 1]];
      next[cut.dim]++;
      this.depth.push(next);
    }
    this.known = new Map();
    this.parts = null;
  }

  /** Whatever has been looked up under a key, or else what `find` finds. */
  once(key, find) {
    let found = this.known.get(key);
    if (found === undefined) {
      found = find();
      this.known.set(key, found);
    }
    return found;
  }

  get split() {
    if (!this.parts) {
      this.parts = splitSchedule(this.problem, this.schedule, this.ownUnits);
    }
    return this.parts;
  }

  /** Extents of the pieces into which loops outside an item cut each dimension. */
  get outerChains() {
    return this.split.chains;
  }

  /** Loops inside an item that do something, outermost first. */
  get innerLoops() {
    return this.split.inner;
  }

  /** Whether every wave ends with a whole iteration of the loop where instances run out. */
  get isAligned() {
    const lengths = this.problem.sizes.map(
      (size, d) => new Set(segmentLengths(size, this.outerChains[d]).keys())
    );
    const loops = this.innerLoops;
    let at = 0;
    let sideBySide = 1;
    while (at < loops.length) {
      const first = loops[at];
      let end = at + 1;
      while (end < loops.length && loops[end].group === first.group) end++;
      if (first.group === null) end = at + 1;
      const trips = [];
      for (const loop of loops.slice(at, end)) {
        const now = lengths[loop.dim];
        trips.push(new Set([...now].map((length) => quotientAbove(length, loop.extent))));
        const cut = new Set();
        for (const length of now) {
          for (const piece of segmentLengths(length, [loop.extent]).keys()) cut.add(piece);
        }
        lengths[loop.dim] = cut;
      }
      if (first.group !== null) {
        const n = instancesOf(this.instances, first.unit);
        // Lists side by side, of different lengths, fall out of step.
        if (sideBySide > 1 && trips.some((each) => each.size > 1)) return false;
        if (!endsWithIterations(trips, n)) return false;
        sideBySide *= n;
      }
      at = end;
    }
    return true;
  }

  /** Each kind of list of items by itself, and how many lists are like it. */
  lists() {
    const { problem, schedule, instances, ownUnits } = this;
    const chains = this.outerChains.map((chain) => [...chain]);
    const isClip = problem.tensors.some(({ axes }) =>
      axes.some((axis) => isClipped(axis, problem.sizes))
    );
    if (isClip || chains.some((chain) => chain.length)) return [];
    for (const loop of this.innerLoops) {
      if (loop.group !== null) break;
      chains[loop.dim].push(loop.extent);
    }
    let kinds = [[[], 1n]];
    for (const [d, size] of problem.sizes.entries()) {
      const lengths = [...segmentLengths(size, chains[d])];
      if (kinds.length * lengths.length > MOST_LISTS) return [];
      kinds = kinds.flatMap(([sizes, many]) =>
        lengths.map(([length, more]) => [[...sizes, length], many * BigInt(more)])
      );
    }
    if (kinds.length === 1) return [];
    return kinds.map(([sizes, many]) => {
      const part = { ...problem, sizes, known: new Map() };
      return [viewOf(part, schedule, instances, ownUnits), many];
    });
  }

  /** Pieces of a dimension that items work on: [start, length, how many]. */
  itemPieces(d, isPlaced) {
    const size = this.problem.sizes[d];
    const chain = this.outerChains[d];
    if (isPlaced) return segments(size, chain).map(([start, length]) => [start, length, 1]);
    return [...segmentLengths(size, chain)].map(([length, many]) => [0, length, many]);
  }

  /** Cuts of one dimension among the first `upto`. */
  chain(d, upto) {
    return this.byDim[d].slice(0, this.depth[upto][d]);
  }

  /** Pieces of a dimension that are visited one after the other, a BigInt. */
  nPieces(d, upto) {
    return this.once(`n ${d} ${this.depth[upto][d]}`, () =>
      BigInt(nPieces(this.problem.sizes[d], this.chain(d, upto)))
    );
  }

  /** Total, largest and smallest count on an axis over all pieces. */
  axisExtremes(tensor, a, upto) {
    const axis = tensor.axes[a];
    const depth = this.depth[upto];
    const key = `x ${tensor.number} ${a} ${axis.dims.map((d) => depth[d])}`;
    return this.once(key, () => {
      const chains = axis.dims.map((d) => this.splitChain(d, upto).map((cut) => cut.extent));
      const sizes = axis.dims.map((d) => this.problem.sizes[d]);
      const { total, largest, smallest } = axisExtremes(axis, sizes, chains);
      return { total, largest: largest * this.nCopies(axis, upto), smallest };
    });
  }

  /** Parallel pieces of an axis that are cut further, and so counted apart; a BigInt. */
  nCopies(axis, upto) {
    let copies = 1n;
    for (const d of axis.dims) {
      let length = this.problem.sizes[d];
      for (const cut of this.splitChain(d, upto)) {
        if (cut.isParallel) copies *= BigInt(quotientAbove(length, cut.extent));
        length = Math.min(length, cut.extent);
      }
    }
    return copies;
  }

  /** Cuts of a dimension, less the last ones if all their pieces are present at once. */
  splitChain(d, upto) {
    const chain = this.chain(d, upto);
    while (chain.length && chain[chain.length - 1].isParallel) chain.pop();
    return chain;
  }

  /** Sum the footprints of all visits to the region inside `upto` cuts. */
  visitsElems(tensor, upto, apart = -1) {
    return this.once(`v ${tensor.number} ${upto} ${apart}`, () => {
      let visits = 1n;
      tensor.axes.forEach((_, a) => {
        visits *= this.total(tensor, a, upto, apart);
      });
      this.problem.sizes.forEach((_, d) => {
        if (!tensor.indexed[d]) visits *= this.nPieces(d, upto);
      });
      return visits;
    });
  }

  /** Sum what each visit to the region inside `upto` cuts adds to the one before. */
  slidElems(tensor, upto) {
    return this.once(`s ${tensor.number} ${upto}`, () => {
      const { dim } = this.cuts[upto - 1];
      const a = tensor.axes.findIndex((axis) => axis.dims.includes(dim));
      const axis = tensor.axes[a];
      const chains = axis.dims.map((d) => this.splitChain(d, upto).map((cut) => cut.extent));
      const sizes = axis.dims.map((d) => this.problem.sizes[d]);
      const slid = axisSlid(axis, sizes, chains, axis.dims.indexOf(dim));
      const whole = this.axisExtremes(tensor, a, upto).total;
      return whole ? (this.visitsElems(tensor, upto) * slid) / whole : 0n;
    });
  }

  total(tensor, a, upto, apart) {
    const axis = tensor.axes[a];
    if (apart < 0 || !axis.dims.includes(apart)) return this.axisExtremes(tensor, a, upto).total;
    const chains = axis.dims.map((d) =>
      (d === apart ? this.chain(d, upto) : this.splitChain(d, upto)).map((cut) => cut.extent)
    );
    const sizes = axis.dims.map((d) => this.problem.sizes[d]);
    return axisExtremes(axis, sizes, chains).total;
  }

  /** Footprint of a tensor in the largest region inside `upto` cuts, in bytes. */
  footprintBytes(tensor, upto) {
    return this.once(`f ${tensor.number} ${upto}`, () => {
      let elems = 1n;
      tensor.axes.forEach((_, a) => {
        elems *= this.axisExtremes(tensor, a, upto).largest;
      });
      return elems * tensor.width;
    });
  }

  /** Extent of a full region inside `upto` cuts, whole parallel pieces together. */
  extents(upto) {
    return this.problem.sizes.map((size, d) => smallestExtent(this.splitChain(d, upto), size));
  }
}

/** The smallest extent of some cuts; of none, the size. */
function smallestExtent(cuts, size) {
  return cuts.length ? Math.min(...cuts.map((cut) => cut.extent)) : size;
}

function instancesOf(instances, unit) {
  return instances.has(unit) ? instances.get(unit) : 1;
}

/** Whether waves of a list with these trip counts, outermost first, end with iterations. */
function endsWithIterations(trips, instances) {
  const most = trips.map((each) => Math.max(...each));
  if (instances === 1 || bigProduct(most.map(BigInt)) <= BigInt(instances)) return true;
  if (trips.some((each) => each.size > 1)) return false;
  let inside = 1;
  for (let i = trips.length - 1; i >= 0; i--) {
    const count = most[i];
    if (inside * count > instances) {
      const rest = instances % inside;
      const isOutermost = most.slice(0, i).every((each) => each === 1);
      return rest === 0 && (isOutermost || count % quotient(instances, inside) === 0);
    }
    inside *= count;
  }
  return true;
}

function nPieces(size, chain) {
  let lengths = new Map([[size, 1]]);
  for (const cut of chain) {
    const parts = new Map();
    const add = (length, many) => parts.set(length, (parts.get(length) || 0) + many);
    for (const [length, many] of lengths) {
      if (cut.isParallel) {
        add(Math.min(length, cut.extent), many); // side by side: as many steps as the longest
        continue;
      }
      const rest = length % cut.extent;
      const full = (length - rest) / cut.extent;
      if (full) add(cut.extent, many * full);
      if (rest) add(rest, many);
    }
    lengths = parts;
  }
  let count = 0;
  for (const many of lengths.values()) count += many;
  return count;
}

/** Look at a schedule from one buffer. */
function viewOf(problem, schedule, instances, ownUnits) {
  const cuts = [];
  let boundary = 0;
  let run = [];
  const extentNow = [...problem.sizes];
  let unit = "";
  const closeRun = () => {
    if (run.length) cuts.push(...waves(run, instancesOf(instances, unit)));
    run = [];
  };
  schedule.loops.forEach((loop, position) => {
    const isOwn = loop.unit !== null && ownUnits.has(loop.unit);
    const isInner = loop.unit !== null && !isOwn;
    if (run.length && (!isInner || loop.unit !== unit)) closeRun();
    const length = extentNow[loop.dim];
    const extent = Math.min(loop.listed, length);
    if (isInner) {
      unit = loop.unit;
      run.push({ position, dim: loop.dim, length, extent });
    } else if (extent < length) {
      cuts.push({ dim: loop.dim, extent, isParallel: false, position });
    }
    extentNow[loop.dim] = extent;
    if (isOwn) boundary = cuts.length;
  });
  closeRun();
  return new View(problem, cuts, boundary, schedule, instances, ownUnits);
}

/** Split a schedule at the innermost loop that hands out items to such buffers. */
function splitSchedule(problem, schedule, ownUnits) {
  const { loops } = schedule;
  let first = 0;
  loops.forEach((loop, i) => {
    if (loop.unit !== null && ownUnits.has(loop.unit)) first = i + 1;
  });
  const chains = problem.dims.map(() => []);
  const size = [...problem.sizes];
  const inner = [];
  let group = 0;
  loops.forEach((loop, position) => {
    if (position && loop.unit !== loops[position - 1].unit) group++;
    if (loop.listed >= size[loop.dim]) return;
    size[loop.dim] = loop.listed;
    if (position < first) {
      chains[loop.dim].push(loop.listed);
      return;
    }
    const number = loop.unit === null ? null : group;
    inner.push({ dim: loop.dim, extent: loop.listed, group: number, unit: loop.unit, position });
  });
  return { chains, inner };
}

/** Split a run of spatial loops into waves, then into what a wave runs at once. */
function waves(run, instances) {
  const taken = atOnce(
    run.map((one) => quotientAbove(one.length, one.extent)),
    instances
  );
  const cuts = [];
  run.forEach(({ position, dim, length, extent }, i) => {
    if (extent * taken[i] < length) {
      cuts.push({ dim, extent: extent * taken[i], isParallel: false, position });
    }
  });
  run.forEach(({ position, dim, extent }, i) => {
    if (taken[i] > 1) cuts.push({ dim, extent, isParallel: true, position });
  });
  return cuts;
}

/** Iterations of each loop of a list that run at once; the innermost fill the instances first. */
function atOnce(trips, instances) {
  let free = Math.max(1, instances);
  const found = new Array(trips.length);
  for (let i = trips.length - 1; i >= 0; i--) {
    found[i] = Math.min(trips[i], free);
    free = found[i] === trips[i] ? quotient(free, found[i]) : 1;
  }
  return found;
}
