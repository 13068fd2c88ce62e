// Windows: how many points meet one element where dimensions share an axis.

// Weights of points are whole multiples of 1 / WEIGHT_SCALE.
const WEIGHT_SCALE = 1n << 20n;
// Points of an axis that are looked at one by one; beyond, fewer are counted.
const MOST_WALKED = 4096;

/** A dimension cut into classes; values that differ modulo `modulus` never meet. */
function newSplit(dim, size, classes, modulus = 1) {
  return { dim, size, classes, modulus };
}

/** Number of values with each residue, as far as there are any. */
function splitValues(split) {
  const found = [];
  for (let residue = 0; residue < Math.min(split.modulus, split.size); residue++) {
    found.push(quotientAbove(split.size - residue, split.modulus));
  }
  return found;
}

function greatestDivisor(one, other) {
  return other ? greatestDivisor(other, one % other) : one;
}

/** Ways to cut dimensions so that no two points of a class meet on an axis. */
function splitsOf(axis, size) {
  const terms = axis.dims
    .map((dim, i) => ({ dim, factor: axis.factors[i] }))
    .filter(({ dim }) => size[dim] > 1);
  if (terms.length < 2) return [[]];
  if (terms.length === 2) {
    const [one, two] = terms;
    const common = greatestDivisor(one.factor, two.factor);
    const runs = ({ dim }, length) =>
      newSplit(dim, size[dim], quotientAbove(size[dim], length), length);
    return [[runs(one, two.factor / common)], [runs(two, one.factor / common)]];
  }
  const found = [];
  let reached = 0;
  for (const { dim, factor } of [...terms].sort((a, b) => a.factor - b.factor)) {
    // Values that are `classes` apart step over all that the smaller terms reach.
    const classes = Math.min(size[dim], quotientAbove(reached + 1, factor));
    found.push(newSplit(dim, size[dim], classes));
    reached += factor * classes * (quotientAbove(size[dim], classes) - 1);
  }
  return [found];
}

/**
 * Weights of all points none of whose operands is padding: their sum, rounded down, and
 * the largest, rounded up. `weights` goes from "tensor axis" to { split, weight }.
 */
function storedWork(problem, size, weights) {
  let [total, largest, scale] = [bigProduct(size.map(BigInt)), 1n, 1n];
  const seen = new Set();
  for (const tensor of problem.tensors) {
    for (const [a, axis] of tensor.axes.entries()) {
      const clipped = isClipped(axis, size);
      let { split, weight } = weights.get(`${tensor.number} ${a}`) || { split: null, weight: [] };
      if (axis.dims.some((dim) => seen.has(dim))) {
        // Two axes clip one dimension: their counts do not multiply.
        if (clipped) return { work: 0n, grain: 1n };
        continue; // without weights: they are at least 1
      }
      if (split && split.size > MOST_WALKED) split = null;
      if (!clipped && !split) continue;
      for (const dim of axis.dims) seen.add(dim);
      total /= bigProduct(axis.dims.map((dim) => BigInt(size[dim])));
      if (!split) {
        total *= storedPoints(axis, size, -1, 0);
        continue;
      }
      let sum = 0n;
      for (let value = 0; value < split.size; value++) {
        sum += weight[value % split.modulus] * storedPoints(axis, size, split.dim, value);
      }
      total *= sum;
      largest *= weight.reduce(bigLarger);
      scale *= WEIGHT_SCALE;
    }
  }
  return { work: total / scale, grain: bigQuotientAbove(largest, scale) };
}

/** Points of an axis that are stored, one dimension held fixed, if any. */
function storedPoints(axis, size, held, at) {
  let first = axis.offset;
  const free = [];
  axis.dims.forEach((dim, i) => {
    if (dim === held) first += axis.factors[i] * at;
    else free.push({ dim, factor: axis.factors[i] });
  });
  if (axis.size === null) return bigProduct(free.map(({ dim }) => BigInt(size[dim])));
  free.sort((one, other) => size[one.dim] - size[other.dim]);
  const { dim, factor } = free.pop();
  let count = 0n;
  const digits = free.map(() => 0);
  for (let walked = 0; walked < MOST_WALKED; walked++) {
    let place = first;
    free.forEach((one, i) => {
      place += one.factor * digits[i];
    });
    const begin = Math.max(0, -Math.floor(place / factor));
    const end = Math.min(size[dim], -Math.floor((place - axis.size) / factor));
    count += BigInt(Math.max(0, end - begin));
    let i = free.length - 1;
    while (i >= 0 && ++digits[i] === size[free[i].dim]) digits[i--] = 0;
    if (i < 0) break;
  }
  return count;
}
