// The walk behind `replay`: visits of bodies, in order, through a cache.
//
// A program is { loops, groups, picks, visits }: of each loop its dimension, extent, pieces
// in a full child, trips, group (-1: none) and pieces that its list makes of a full child;
// of each group its first loop, end, instances, instances of the groups inside, and whether
// no dimension comes twice in it. Tables hold tensors, axes and cells; see `tablesOf`.
// Everything is a Number: tensors hold less than 2^52 bytes (`prepareProblem`), and so does
// any window of visits; only what all visits fetch may be more.

/** Pieces that some loops of a list make of a length of a dimension. */
function piecesOf(loops, first, end, dim, length) {
  let pieces = 0;
  let left = length;
  for (let k = first; k < end; k++) {
    if (loops[k].dim !== dim) continue;
    const full = quotient(left, loops[k].extent);
    pieces += full * loops[k].listed;
    left -= full * loops[k].extent;
  }
  return pieces + (left > 0 ? 1 : 0);
}

/** Items that a list makes of a region where each dimension has one loop. */
function itemsOfSimple(loops, first, end, lengths) {
  let items = 1;
  for (let k = first; k < end; k++) items *= quotientAbove(lengths[loops[k].dim], loops[k].extent);
  return items;
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
    const instance = quotient(left, inside);
    let number = digits[i] * instances + instance;
    left -= instance * inside;
    const itemsOfList = isSimple ? itemsOfSimple : itemsOfRegion;
    const items = itemsOfList(loops, first, end, length);
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

const FULL = 2 ** 52;

/** Sums of Numbers below 2^52 that stay exact beyond. */
class Tally {
  constructor(n) {
    this.small = new Float64Array(n);
    this.large = new Array(n).fill(0n);
  }

  add(t, elems) {
    const sum = this.small[t] + elems;
    if (sum < FULL) this.small[t] = sum;
    else {
      this.large[t] += BigInt(sum);
      this.small[t] = 0;
    }
  }

  get sums() {
    return this.large.map((sum, t) => sum + BigInt(this.small[t]));
  }
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

/** The most that is fetched: a window of whole visits, as long as the capacity allows. */
class VisitWindow {
  constructor(nCells, nVisits, capacity) {
    this.last = new Int32Array(nCells).fill(-1);
    this.at = new Float64Array(nVisits + 1);
    this.capacity = capacity;
    this.start = 0;
    this.held = 0;
    this.visit = 0;
    this.overflows = false;
    // Cells touched for the first time in a visit: tensor, visit before.
    this.fresh = new Int32Array(2 * 1024);
    this.freshElems = new Float64Array(1024);
    this.nFresh = 0;
  }

  /** Note that this visit touches a cell. */
  touch(t, cell, elems, size) {
    const { visit, last, at } = this;
    const before = last[cell];
    if (before === visit) return; // another instance brought it in
    if (before >= 0) at[before] -= size;
    at[visit] += size;
    last[cell] = visit;
    if (before < this.start) this.held += size;
    if (this.nFresh === this.freshElems.length) this.grow();
    const f = this.nFresh++;
    this.freshElems[f] = elems;
    this.fresh[2 * f] = t;
    this.fresh[2 * f + 1] = before;
  }

  grow() {
    const [fresh, elems] = [this.fresh, this.freshElems];
    this.fresh = new Int32Array(2 * fresh.length);
    this.freshElems = new Float64Array(2 * elems.length);
    this.fresh.set(fresh);
    this.freshElems.set(elems);
  }

  /** End the visit; add what it fetches at most. */
  close(anew) {
    const { visit, at, capacity, fresh, freshElems, nFresh } = this;
    if (at[visit] > capacity) this.overflows = true;
    while (this.start <= visit && this.held > capacity) this.held -= at[this.start++];
    for (let f = 0; f < nFresh; f++) {
      const before = fresh[2 * f + 1];
      if (before < 0 || before < this.start) anew.add(fresh[2 * f], freshElems[f]);
    }
    this.nFresh = 0;
    this.visit++;
  }
}

/** Visit bodies in order; count what an LRU cache fetches: exactly for points, else at most. */
function walk(program, tables, sizes, capacity, isExact) {
  const { loops, groups, picks } = program;
  const nDims = sizes.length;
  const nAxes = tables.nAxes;
  const visitor = new Visitor(program, tables, capacity, isExact);
  const digits = new Int32Array(loops.length);
  const piece = new Int32Array(nDims);
  const length = new Float64Array(nDims);
  const offset = new Float64Array(nDims);
  const { outerRow, innerRow } = visitor;
  // What the outermost list makes of a wave stays while the loops inside go on.
  const inside = groups.length ? groups[0].end : 0;
  const nInner = groups.length ? groups[0].inside : 1;
  const outers = Array.from({ length: picks / nInner }, () => ({
    piece: new Int32Array(nDims),
    length: new Float64Array(nDims),
    row: new Int32Array(nAxes),
    isThere: false,
  }));
  const hasListsInside = groups.length > 1;
  const innerDims = [...new Set(loops.slice(inside).map((loop) => loop.dim))];
  let wentOn = -1;
  do {
    if (wentOn < inside) {
      outers.forEach((one, number) => {
        for (let d = 0; d < nDims; d++) {
          one.piece[d] = 0;
          one.length[d] = sizes[d];
        }
        one.isThere = locate(program, digits, number * nInner, 0, inside, one.piece, one.length);
        for (let a = 0; a < nAxes; a++) one.row[a] = tables.firstRows[a];
        addRows(tables, one.piece, one.row);
      });
    }
    let isStep = true;
    if (!hasListsInside) {
      // Then all instances are as far inside their items.
      piece.fill(0);
      offset.fill(0);
      length.set(sizes);
      for (let i = inside; i < loops.length; i++) {
        const { dim, extent, pieces } = loops[i];
        offset[dim] += digits[i] * extent;
        piece[dim] += digits[i] * pieces;
        isStep = isStep && offset[dim] < length[dim];
        length[dim] = Math.min(length[dim], offset[dim] + extent);
      }
      innerRow.fill(0);
      addRows(tables, piece, innerRow);
    }
    for (let pick = 0; isStep && pick < picks; pick++) {
      const outer = outers[quotient(pick, nInner)];
      if (!outer.isThere) continue;
      let isWorking = true;
      if (hasListsInside) {
        piece.set(outer.piece);
        length.set(outer.length);
        isWorking = locate(program, digits, pick % nInner, inside, loops.length, piece, length);
        outerRow.set(tables.firstRows);
        addRows(tables, piece, outerRow);
        if (isWorking) visitor.visit(outerRow);
        continue;
      }
      for (const d of innerDims) if (offset[d] >= outer.length[d]) isWorking = false;
      if (isWorking) visitor.visit(outer.row);
    }
    visitor.close();
    wentOn = stepOn(loops, digits);
  } while (wentOn >= 0);
  return visitor.found;
}

/** Add to the row of each axis what pieces of its dimensions are worth. */
function addRows({ nAxes, axisDims, dims, strides }, pieces, found) {
  for (let a = 0; a < nAxes; a++) {
    for (let i = axisDims[a]; i < axisDims[a + 1]; i++) found[a] += pieces[dims[i]] * strides[i];
  }
}

/** What bodies touch, and what becomes of it. */
class Visitor {
  constructor(program, tables, capacity, isExact) {
    const { nCells, nAxes, widths } = tables;
    this.tables = tables;
    this.cache = isExact ? new CellCache(nCells, capacity) : null;
    this.window = isExact ? null : new VisitWindow(nCells, program.visits, capacity);
    this.anew = new Tally(widths.length);
    // Row of each axis in a body, in two parts: that of the instance, and of the step.
    this.outerRow = new Int32Array(nAxes);
    this.innerRow = new Int32Array(nAxes);
    // Axes of a tensor with several cells: where these begin and end, and the one at hand.
    this.from = new Int32Array(nAxes);
    this.to = new Int32Array(nAxes);
    this.several = new Int32Array(nAxes);
    this.now = new Int32Array(nAxes);
  }

  get found() {
    return { anew: this.anew.sums, fits: this.window === null || !this.window.overflows };
  }

  close() {
    if (this.window !== null) this.window.close(this.anew);
  }

  /** Touch the cells of one body. */
  visit(outerRow) {
    const { tables, innerRow, several, from, to } = this;
    const { rows, columns, weights, factors, firstWeights, firstAxes, firstCells } = tables;
    for (let t = 0; t < firstCells.length; t++) {
      let firstCell = firstCells[t];
      let firstElems = 1;
      let nSeveral = 0; // what the other axes are worth is common
      const end = firstAxes[t + 1];
      let a = firstAxes[t];
      for (; a < end; a++) {
        const row = outerRow[a] + innerRow[a];
        const low = rows[row];
        const high = rows[row + 1];
        if (low === high) break; // nothing is stored
        if (high === low + 1) {
          firstCell += columns[low] * factors[a];
          firstElems *= weights[firstWeights[a] + columns[low]];
        } else {
          several[nSeveral] = a;
          from[nSeveral] = low;
          to[nSeveral++] = high;
        }
      }
      if (a < end) continue;
      if (nSeveral) this.touchSeveral(t, firstCell, firstElems, nSeveral);
      else this.touch(t, firstCell, firstElems);
    }
  }

  touchSeveral(t, firstCell, firstElems, nSeveral) {
    const { tables, several, from, to, now } = this;
    const { columns, weights, factors, firstWeights } = tables;
    now.set(from);
    for (;;) {
      let cell = firstCell;
      let elems = firstElems;
      for (let k = 0; k < nSeveral; k++) {
        const a = several[k];
        const column = columns[now[k]];
        cell += column * factors[a];
        elems *= weights[firstWeights[a] + column];
      }
      this.touch(t, cell, elems);
      let k = nSeveral - 1;
      while (k >= 0 && ++now[k] === to[k]) {
        now[k] = from[k];
        k--;
      }
      if (k < 0) return;
    }
  }

  touch(t, cell, elems) {
    const { cache, window } = this;
    const size = elems * this.tables.widths[t];
    if (cache === null) window.touch(t, cell, elems, size);
    else if (!cache.touch(cell, size)) this.anew.add(t, elems);
  }
}
