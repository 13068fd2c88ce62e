// Replays of a nest, body by body, through a cache that evicts the least recently used.
//
// What a replay finds is { anew, fits }: elements of each held tensor that are brought in
// at most, if `fits`, in the order of the room's, as BigInt.

const MOST_ITEMS = 256;
const MOST_CELLS = 2 ** 26;

/** Elements brought in at most; null where some visit alone did not fit. */
function highOf(replayed) {
  return replayed.fits ? replayed.anew : null;
}

/** Whether no tensor brings in more than enough. */
function isWithin(high, enough) {
  return high.every((count, i) => count <= enough[i]);
}

/** Join what two replays of a nest say. */
function narrower(coarse, fine) {
  if (!coarse.fits || !fine.fits) return coarse.fits ? coarse : fine;
  return { anew: coarse.anew.map((n, i) => bigSmaller(n, fine.anew[i])), fits: true };
}

/**
 * Replay a nest as deeply as a budget allows; null if not even the outermost bodies can be.
 *
 * No body begins inside the loop position `inmost`; then none is a single point either.
 */
function replay(view, room, budget, enough, inmost) {
  const items = itemsOf(view);
  if (items === null) return null;
  const nest = new Nest(view, items);
  const pools = poolsOf(room);
  let found = null;
  let spent = 0;
  for (const depth of nest.depths()) {
    if (inmost < Infinity && depth) {
      if (depth === nest.deepest || nest.loops[depth - 1].position >= inmost) break;
    }
    if (depth < nest.deepest && !nest.mayFit(depth, room)) continue;
    let cost = 0;
    for (const item of items) cost += nest.boxes(item, depth);
    cost *= view.problem.tensors.length;
    if (cost > budget) break;
    if (found !== null && cost < 2 * spent && depth < nest.deepest) continue; // hardly finer
    const one = replayAt(nest, room, items, depth, pools, budget);
    if (one === null) break;
    spent = cost;
    found = found === null ? one : narrower(found, one);
    if (found.fits && isWithin(found.anew, enough)) break;
  }
  return found;
}

/** Replay all items, taken apart to one depth; null if that takes much more than the budget. */
function replayAt(nest, room, items, depth, pools, budget) {
  const total = { anew: room.held.map(() => 0n), fits: true };
  for (const item of items) {
    for (const pool of pools) {
      const one = nest.run(item, depth, pool, budget);
      if (one === null) return null;
      total.fits = total.fits && one.fits;
      pool.tensors.forEach((tensor, t) => {
        total.anew[room.held.indexOf(tensor)] += one.anew[t] * item.count;
      });
    }
  }
  return total;
}

/** Tensors that share room, inputs first. */
function poolsOf(room) {
  const held = [
    ...room.held.filter((tensor) => !tensor.isOutput),
    ...room.held.filter((tensor) => tensor.isOutput),
  ];
  const shared = held.filter((tensor) => !room.own.has(tensor.number));
  const pools = held
    .filter((tensor) => room.own.has(tensor.number))
    .map((tensor) => ({ tensors: [tensor], capacity: room.own.get(tensor.number) }));
  return shared.length ? [{ tensors: shared, capacity: room.shared }, ...pools] : pools;
}

/** The kinds of items that a buffer starts cold: { start, length, count }; null: too many. */
function itemsOf(view) {
  const { problem } = view;
  const clipped = problem.tensors
    .flatMap((tensor) => tensor.axes)
    .filter((axis) => isClipped(axis, problem.sizes));
  let joint = [];
  for (const dims of [...problem.dims.map((_, d) => [d]), ...clipped.map((axis) => axis.dims)]) {
    const touching = joint.filter((one) => dims.some((d) => one.has(d)));
    const others = joint.filter((one) => !dims.some((d) => one.has(d)));
    joint = [...others, new Set([...dims, ...touching.flatMap((one) => [...one])])];
  }
  const kinds = joint.map((dims) => {
    const ordered = problem.dims.map((_, d) => d).filter((d) => dims.has(d));
    const ours = clipped.filter((axis) => axis.dims.some((d) => dims.has(d)));
    const pieces = ordered.map((d) => view.itemPieces(d, ours.length > 0));
    return kindsOf(ordered, pieces, ours);
  });
  if (bigProduct(kinds.map((kind) => BigInt(kind.length))) > BigInt(MOST_ITEMS)) return null;
  return combinations(kinds).map((parts) => {
    const item = { start: [], length: [], count: bigProduct(parts.map((part) => part.count)) };
    for (const part of parts) {
      part.dims.forEach((d, i) => {
        item.start[d] = part.start[i];
        item.length[d] = part.length[i];
      });
    }
    return item;
  });
}

function kindsOf(dims, pieces, clipped) {
  const found = new Map();
  for (const combination of combinations(pieces)) {
    const start = combination.map(([at]) => at);
    const length = combination.map(([, size]) => size);
    const key = [...length];
    for (const axis of clipped) {
      let first = axis.offset;
      let last = 0;
      axis.dims.forEach((d, i) => {
        first += axis.factors[i] * start[dims.indexOf(d)];
        last += axis.factors[i] * (length[dims.indexOf(d)] - 1);
      });
      last += first;
      key.push(Math.max(0, -first), Math.max(0, last - (axis.size || 0) + 1));
    }
    const count = bigProduct(combination.map(([, , many]) => BigInt(many)));
    const before = found.get(key.join());
    // The last of a kind stands for it, where the first one was found.
    const all = count + (before ? before.count : 0n);
    found.set(key.join(), { dims, start, length, count: all });
  }
  return [...found.values()];
}

/** The loops inside an item, in the form that the walk takes. */
class Nest {
  constructor(view, items) {
    this.items = items;
    this.problem = view.problem;
    this.loops = view.innerLoops;
    this.instances = view.instances;
    this.deepest = this.loops.length;
  }

  /** Numbers of loops outside a body, fewest first; lists of items are not taken apart. */
  depths() {
    const found = [];
    for (let depth = 0; depth <= this.deepest; depth++) {
      if (depth > 0 && depth < this.deepest) {
        const { group } = this.loops[depth];
        if (group !== null && this.loops[depth - 1].group === group) continue;
      }
      found.push(depth);
    }
    return found;
  }

  /** Extents of the pieces that the first loops make of a dimension. */
  chain(depth, d) {
    return this.loops
      .slice(0, depth)
      .filter((loop) => loop.dim === d)
      .map((loop) => loop.extent);
  }

  /** Whether one body alone fits. */
  mayFit(depth, room) {
    const extents = this.problem.sizes.map((_, d) => {
      const chain = this.chain(depth, d);
      if (chain.length) return chain[chain.length - 1];
      return Math.max(...this.items.map((item) => item.length[d]));
    });
    const needs = room.held.map((tensor) => {
      if (tensor.axes.some((axis) => axis.size)) return 0n; // clipped parts are smaller
      return footprintElems(tensor, null, extents) * tensor.width;
    });
    return fits(room, needs);
  }

  /** Bodies of an item. */
  boxes(item, depth) {
    let boxes = 1;
    this.problem.sizes.forEach((_, d) => {
      boxes *= nSegments(item.length[d], this.chain(depth, d));
    });
    return boxes;
  }

  /** The loops outside a body, with all that the walk needs of them. */
  program(item, depth) {
    const size = [...item.length];
    const loops = [];
    const groups = [];
    const nItems = [];
    const groupAt = new Map();
    this.loops.slice(0, depth).forEach((loop, i) => {
      const trips = quotientAbove(size[loop.dim], loop.extent);
      const after = this.loops.slice(i + 1, depth).filter((one) => one.dim === loop.dim);
      const listed = after.filter((one) => one.group === loop.group);
      size[loop.dim] = Math.min(size[loop.dim], loop.extent);
      let number = -1;
      if (loop.group !== null) {
        if (!groupAt.has(loop.group)) {
          groupAt.set(loop.group, groups.length);
          const instances = instancesOf(this.instances, loop.unit);
          groups.push({ first: i, end: i, instances, inside: 1, isSimple: true });
          nItems.push(1);
        }
        number = groupAt.get(loop.group);
        const group = groups[number];
        const isNew = this.loops.slice(group.first, i).every((one) => one.dim !== loop.dim);
        group.isSimple = group.isSimple && isNew;
        group.end = i + 1;
        nItems[number] *= trips;
      }
      loops.push({
        dim: loop.dim,
        extent: loop.extent,
        pieces: nSegments(loop.extent, after.map((one) => one.extent)),
        trips: number < 0 ? trips : 1,
        group: number,
        listed: nSegments(loop.extent, listed.map((one) => one.extent)),
      });
    });
    let picks = 1;
    for (let g = groups.length - 1; g >= 0; g--) {
      groups[g].inside = picks;
      groups[g].instances = Math.max(1, Math.min(groups[g].instances, nItems[g]));
      picks *= groups[g].instances;
      loops[groups[g].first].trips = quotientAbove(nItems[g], groups[g].instances); // waves
    }
    let visits = 1;
    for (const { trips } of loops) visits *= trips;
    return { loops, groups, picks, visits };
  }

  /** Cells of each axis of a tensor; null if they are too many. */
  cells(item, depth, tensor) {
    const found = [];
    for (const axis of tensor.axes) {
      const region = axis.dims.map((d) => [axis.size === null ? 0 : item.start[d], item.length[d]]);
      const chains = axis.dims.map((d) => this.chain(depth, d));
      let rows = 1;
      region.forEach(([, length], i) => {
        rows *= nSegments(length, chains[i]);
      });
      const one = rows > MOST_ENTRIES ? null : axisCells(axis, region, chains);
      if (one === null) return null;
      found.push(one);
    }
    return found;
  }

  /** Replay one item; null if that takes much more than the budget. */
  run(item, depth, pool, budget) {
    const program = this.program(item, depth);
    const cells = pool.tensors.map((tensor) => this.cells(item, depth, tensor));
    let perBox = 0;
    for (const ofTensor of cells) {
      if (ofTensor === null) return null;
      let one = 1;
      for (const axis of ofTensor) one *= axis.columns.length / Math.max(1, axis.rows.length - 1);
      perBox += one;
    }
    const cost = Math.max((program.visits * program.picks) / 4, this.boxes(item, depth) * perBox);
    const tables = tablesOf(pool, cells);
    if (cost > 2 * budget || tables.nCells > MOST_CELLS) return null;
    return walk(program, tables, item.length, Number(pool.capacity), depth === this.deepest);
  }
}

/**
 * Tensors, their axes and the cells of each, one after the other in flat arrays: of each
 * tensor its first axis, first cell and element size; of each axis its first dimension,
 * the factor of its cells, its first row and first weight.
 */
function tablesOf(pool, cells) {
  const [firstAxes, firstCells, axisDims, firstRows, firstWeights] = [[0], [], [0], [], []];
  const [dims, strides, factors, rows, columns, weights] = [[], [], [], [], [], []];
  let nCells = 0;
  pool.tensors.forEach((tensor, t) => {
    let factor = 1;
    tensor.axes.forEach((axis, a) => {
      const one = cells[t][a];
      dims.push(...axis.dims);
      strides.push(...one.strides);
      axisDims.push(dims.length);
      factors.push(factor);
      firstRows.push(rows.length);
      firstWeights.push(weights.length);
      for (const row of one.rows) rows.push(row + columns.length);
      for (const column of one.columns) columns.push(column);
      for (const weight of one.weights) weights.push(weight);
      factor *= Math.max(1, one.weights.length);
    });
    firstAxes.push(factors.length);
    firstCells.push(nCells);
    nCells += factor;
  });
  return {
    nCells,
    nAxes: factors.length,
    widths: Float64Array.from(pool.tensors, (tensor) => Number(tensor.width)),
    firstAxes: Int32Array.from(firstAxes),
    firstCells: Int32Array.from(firstCells),
    axisDims: Int32Array.from(axisDims),
    firstRows: Int32Array.from(firstRows),
    firstWeights: Int32Array.from(firstWeights),
    dims: Int32Array.from(dims),
    strides: Int32Array.from(strides),
    factors: Int32Array.from(factors),
    rows: Int32Array.from(rows),
    columns: Int32Array.from(columns),
    weights: Float64Array.from(weights),
  };
}
