// The walk behind `replay`: visits of bodies, in order, through a cache.
//
// A program is { loops, groups, picks, visits }: of each loop its dimension, extent, pieces
// in a full child, trips, group (-1: none) and pieces that its list makes of a full child;
// of each group its first loop, end, instances, instances of the groups inside, and whether
// no dimension comes twice. Tables hold tensors and their axes; see `tablesOf`.

/** Pieces that some loops of a list make of a length of a dimension. */
function piecesOf(loops, first, end, dim, length) {
  let pieces = 0;
  let left = length;
  for (let k = first; k < end; k++) {
    if (loops[k].dim !== dim) continue;
    pieces += quotient(left, loops[k].extent) * loops[k].listed;
    left %= loops[k].extent;
  }
  return pieces + (left > 0 ? 1 : 0);
}

/** Items that some loops of a list make of a region. */
function itemsOfRegion(loops, first, end, lengths) {
  let items = 1;
  for (let dim = 0; dim < lengths.length; dim++) {
    items *= piecesOf(loops, first, end, dim, lengths[dim]);
  }
  return items;
}

/**
 * Go into the pieces that one instance works on at one step, by some of the loops.
 * `pick` numbers the instance of every group of these loops and of those inside.
 * Returns whether there is such a piece.
 */
function locate(program, digits, pick, begin, stop, piece, length) {
  const { loops, groups } = program;
  let left = pick;
  let i = begin;
  while (i < stop) {
    if (loops[i].group < 0) {
      const { dim, extent, pieces } = loops[i];
      length[dim] = Math.min(extent, length[dim] - digits[i] * extent);
      if (length[dim] <= 0) return false;
      piece[dim] += digits[i] * pieces;
      i++;
      continue;
    }
    const { first, end, instances, inside, isSimple } = groups[loops[i].group];
    let number = digits[i] * instances + quotient(left, inside);
    left %= inside;
    const items = itemsOfRegion(loops, first, end, length);
    if (number >= items) return false; // items of a list that its region clips are fewer
    let insideOne = isSimple ? items : 0;
    for (let k = first; k < end; k++) {
      const { dim, extent, pieces } = loops[k];
      const wholeLength = length[dim];
      let others;
      if (isSimple) {
        // Each dimension has one loop: the others' trips do not change.
        insideOne = quotient(insideOne, quotientAbove(wholeLength, extent));
        others = insideOne;
      } else {
        length[dim] = Math.min(extent, wholeLength);
        others = itemsOfRegion(loops, k + 1, end, length); // of all iterations but the last
      }
      const digit = quotient(number, others);
      number -= digit * others;
      length[dim] = Math.min(extent, wholeLength - digit * extent);
      piece[dim] += digit * pieces;
    }
    i = end;
  }
  return true;
}

/** Go to the next step of the nest; return which loop went on, -1 if none could. */
function stepOn(loops, digits) {
  for (let i = loops.length - 1; i >= 0; i--) {
    digits[i]++;
    if (digits[i] < loops[i].trips) return i;
    digits[i] = 0;
  }
  return -1;
}

/** A cache of cells that evicts the least recently used. */
class CellCache {
  constructor(nCells, capacity) {
    this.before = new Int32Array(nCells).fill(-2);
    this.after = new Int32Array(nCells).fill(-2);
    this.sizes = new Float64Array(nCells);
    this.capacity = capacity;
    this.head = -1;
    this.tail = -1;
    this.used = 0;
  }

  /** Use a cell; return whether it was there. */
  touch(cell, size) {
    const { before, after, sizes } = this;
    const isHeld = before[cell] !== -2;
    if (this.head === cell) return true;
    if (isHeld) {
      after[before[cell]] = after[cell];
      if (after[cell] >= 0) before[after[cell]] = before[cell];
      else this.tail = before[cell];
    } else {
      sizes[cell] = size;
      this.used += size;
    }
    before[cell] = -1;
    after[cell] = this.head;
    if (this.head >= 0) before[this.head] = cell;
    else this.tail = cell;
    this.head = cell;
    while (this.used > this.capacity && this.tail >= 0) {
      const last = this.tail;
      this.used -= sizes[last];
      this.tail = before[last];
      before[last] = -2;
      if (this.tail >= 0) after[this.tail] = -1;
      else this.head = -1;
    }
    return isHeld;
  }
}

/**
 * Bounds of what is fetched: each window of visits is as long as a limit allows; window 0
 * holds whole visits, window k + 1 leaves room for an element of the k-th width.
 */
class VisitWindows {
  constructor(nCells, nVisits, limits) {
    this.last = new Int32Array(nCells).fill(-1);
    this.at = new Float64Array(nVisits + 1);
    this.limits = limits;
    this.starts = limits.map(() => 0);
    this.held = limits.map(() => 0);
    this.visit = 0;
    this.overflows = false;
    this.fresh = [];
  }

  /** Note that this visit touches a cell. */
  touch(t, cell, elems, size, window) {
    const { visit, at, starts, held } = this;
    const before = this.last[cell];
    if (before === visit) return; // another instance brought it in
    if (before >= 0) at[before] -= size;
    at[visit] += size;
    this.last[cell] = visit;
    for (let k = 0; k < held.length; k++) if (before < starts[k]) held[k] += size;
    // Certainly gone, if what whole visits touched since is too much.
    this.fresh.push(t, elems, before, before < 0 || before + 1 < starts[window]);
  }

  /** End the visit; add what it fetches at least and at most. */
  close(capacity, low, anew) {
    const { visit, at, starts, held, limits, fresh } = this;
    if (at[visit] > capacity) this.overflows = true;
    for (let k = 0; k < limits.length; k++) {
      while (starts[k] <= visit && held[k] > limits[k]) held[k] -= at[starts[k]++];
    }
    for (let f = 0; f < fresh.length; f += 4) {
      const [t, elems, before] = [fresh[f], fresh[f + 1], fresh[f + 2]];
      if (fresh[f + 3]) low[t] += elems;
      if (before < 0 || before < starts[0]) anew[t] += elems;
    }
    fresh.length = 0;
    this.visit++;
  }
}

/** Visit bodies in order; count what is fetched, at least, in an LRU cache, and at most. */
function walk(program, tables, sizes, capacity, hasPoint, hasBounds) {
  const { loops, groups, picks } = program;
  const { tensors, axes } = tables;
  const nDims = sizes.length;
  const cache = hasPoint ? new CellCache(tables.nCells, capacity) : null;
  const windows = hasBounds
    ? new VisitWindows(tables.nCells, program.visits, tables.limits)
    : null;
  const [low, point, anew] = [0, 1, 2].map(() => tensors.map(() => 0));
  const digits = loops.map(() => 0);
  const piece = new Array(nDims).fill(0);
  const length = new Array(nDims).fill(0);
  const offset = new Array(nDims).fill(0);
  const row = axes.map(() => 0);
  const innerRows = axes.map(() => 0);
  const several = [];
  // What the outermost list makes of a wave stays while the loops inside go on.
  const inside = groups.length ? groups[0].end : 0;
  const nInner = groups.length ? groups[0].inside : 1;
  const outers = Array.from({ length: picks / nInner }, () => ({
    piece: new Array(nDims).fill(0),
    length: new Array(nDims).fill(0),
    row: axes.map(() => 0),
    isThere: false,
  }));
  const hasListsInside = groups.length > 1;
  const addRows = (pieces, found) => {
    for (let a = 0; a < axes.length; a++) {
      const { dims, strides } = axes[a];
      for (let i = 0; i < dims.length; i++) found[a] += pieces[dims[i]] * strides[i];
    }
  };
  const visitTensor = (tensor, t) => {
    let firstCell = tensor.firstCell;
    let firstElems = 1;
    several.length = 0; // axes with several cells; what the others are worth is common
    for (let a = tensor.firstAxis; a < tensor.endAxis; a++) {
      const { rows, columns, weights, factor } = axes[a];
      const [from, to] = [rows[row[a]], rows[row[a] + 1]];
      if (from === to) return;
      if (to === from + 1) {
        firstCell += columns[from] * factor;
        firstElems *= weights[columns[from]];
      } else several.push({ axis: axes[a], from, to, now: from });
    }
    for (;;) {
      let cell = firstCell;
      let elems = firstElems;
      for (const { axis, now } of several) {
        cell += axis.columns[now] * axis.factor;
        elems *= axis.weights[axis.columns[now]];
      }
      const size = elems * tensor.width;
      if (cache && !cache.touch(cell, size)) point[t] += elems;
      if (windows) windows.touch(t, cell, elems, size, tensor.window);
      let k = several.length - 1;
      while (k >= 0 && ++several[k].now === several[k].to) {
        several[k].now = several[k].from;
        k--;
      }
      if (k < 0) return;
    }
  };
  let wentOn = -1;
  do {
    if (wentOn < inside) {
      outers.forEach((one, number) => {
        one.piece.fill(0);
        for (let d = 0; d < nDims; d++) one.length[d] = sizes[d];
        one.isThere = locate(program, digits, number * nInner, 0, inside, one.piece, one.length);
        for (let a = 0; a < axes.length; a++) one.row[a] = 0;
        addRows(one.piece, one.row);
      });
    }
    let isStep = true;
    if (!hasListsInside) {
      // Then all instances are as far inside their items.
      piece.fill(0);
      offset.fill(0);
      for (let d = 0; d < nDims; d++) length[d] = sizes[d];
      for (let i = inside; i < loops.length; i++) {
        const { dim, extent, pieces } = loops[i];
        offset[dim] += digits[i] * extent;
        piece[dim] += digits[i] * pieces;
        isStep = isStep && offset[dim] < length[dim];
        length[dim] = Math.min(length[dim], offset[dim] + extent);
      }
      innerRows.fill(0);
      addRows(piece, innerRows);
    }
    for (let pick = 0; pick < picks; pick++) {
      const outer = outers[quotient(pick, nInner)];
      if (!isStep || !outer.isThere) continue;
      let isWorking = true;
      if (hasListsInside) {
        for (let d = 0; d < nDims; d++) {
          piece[d] = outer.piece[d];
          length[d] = outer.length[d];
        }
        isWorking = locate(program, digits, pick % nInner, inside, loops.length, piece, length);
        row.fill(0);
        addRows(piece, row);
      } else {
        for (let d = 0; d < nDims; d++) if (offset[d] >= outer.length[d]) isWorking = false;
        for (let a = 0; a < row.length; a++) row[a] = outer.row[a] + innerRows[a];
      }
      if (isWorking) tensors.forEach(visitTensor);
    }
    if (windows) windows.close(capacity, low, anew);
    wentOn = stepOn(loops, digits);
  } while (wentOn >= 0);
  return { low, point, anew, fits: !windows || !windows.overflows };
}
