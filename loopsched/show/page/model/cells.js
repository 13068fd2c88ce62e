// Cells: groups of stored positions that every piece of a tiling touches together or not at all.

const MOST_ENTRIES = 2 ** 22;

/**
 * Split what a region touches on an axis into cells: strides of the dimensions' pieces,
 * where each row begins in `columns`, cells row by row, positions in each cell.
 * `region` holds [start, length] of each dimension. Null if there are too many to list.
 */
function axisCells(axis, region, chains) {
  const key = `cells ${region} ${chains.map((chain) => chain.join()).join("|")}`;
  if (!axis.extremes.has(key)) axis.extremes.set(key, newCells(axis, region, chains));
  return axis.extremes.get(key);
}

function newCells(axis, region, chains) {
  const pieces = region.map(([, length], i) => segments(length, chains[i]));
  const strides = new Array(pieces.length);
  let nRows = 1;
  for (let i = pieces.length - 1; i >= 0; i--) {
    strides[i] = nRows;
    nRows *= pieces[i].length;
  }
  let origin = axis.offset;
  region.forEach(([start], i) => {
    origin += axis.factors[i] * start;
  });
  const moving = region.filter(([, length]) => length > 1).length;
  const touched = moving <= 1 ? touchedAlone : touchedTogether;
  const found = touched(axis, pieces, nRows, origin);
  return found && { strides, ...found };
}

/** Cells where one dimension moves: its pieces touch nothing in common. */
function touchedAlone(axis, pieces, nRows, origin) {
  let lengths = new Array(nRows).fill(1);
  let firsts = new Array(nRows).fill(origin);
  let factor = 1;
  pieces.forEach((part, i) => {
    if (part.length > 1 || part[0][1] > 1) {
      lengths = part.map(([, length]) => length);
      firsts = part.map(([begin]) => origin + begin * axis.factors[i]);
      factor = axis.factors[i];
    }
  });
  const rows = [0];
  const weights = [];
  lengths.forEach((length, row) => {
    let weight = length;
    if (axis.size !== null) {
      const skipped = Math.max(0, -Math.floor(firsts[row] / factor));
      const kept = Math.min(length, -Math.floor((firsts[row] - axis.size) / factor));
      weight = Math.max(0, kept - skipped);
    }
    if (weight > 0) weights.push(weight);
    rows.push(weights.length);
  });
  return { rows, columns: weights.map((_, cell) => cell), weights };
}

function touchedTogether(axis, pieces, nRows, origin) {
  if (nRows > MOST_ENTRIES) return null;
  const owners = new Map(); // position to rows, ascending
  let nEntries = 0;
  let most = 1;
  for (const [row, combination] of combinations(pieces).entries()) {
    const reached = reach(axis.factors, combination.map(([, length]) => length));
    let first = origin;
    combination.forEach(([begin], i) => {
      first += axis.factors[i] * begin;
    });
    for (let x = 0; x < reached.span; x++) {
      const place = first + x;
      if (!reached.marks[x] || (axis.size !== null && (place < 0 || place >= axis.size))) continue;
      if (!owners.has(place)) owners.set(place, []);
      const found = owners.get(place);
      found.push(row);
      if (found.length > most) most = found.length;
      nEntries++;
    }
    if (nEntries > MOST_ENTRIES) return null;
  }
  if (most * owners.size > MOST_ENTRIES) return null;
  // Put positions with the same owners into one cell.
  const cells = new Map();
  for (const found of owners.values()) {
    const key = found.join();
    const cell = cells.get(key);
    if (cell) cell.weight++;
    else cells.set(key, { owners: found, weight: 1 });
  }
  const sorted = [...cells.values()].sort((one, other) => compareLists(one.owners, other.owners));
  const byRow = Array.from({ length: nRows }, () => []);
  sorted.forEach((cell, number) => {
    for (const row of cell.owners) byRow[row].push(number);
  });
  const rows = [0];
  for (const cellsOfRow of byRow) rows.push(rows[rows.length - 1] + cellsOfRow.length);
  return { rows, columns: byRow.flat(), weights: sorted.map((cell) => cell.weight) };
}

/** Order of two lists, member by member; a list comes before those that begin with it. */
function compareLists(one, other) {
  for (let i = 0; i < Math.min(one.length, other.length); i++) {
    if (one[i] !== other[i]) return one[i] - other[i];
  }
  return one.length - other.length;
}
