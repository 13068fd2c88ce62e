// Few elements allow few points: inequalities after Loomis, Whitney and Finner.

// More tensors than this have too many inequalities to try; the bound is then compulsory.
const MOST_TENSORS = 6;

/** Inequalities between points and the elements that they touch. */
function inequalitiesOf(problem, size) {
  const { tensors } = problem;
  if (tensors.length > MOST_TENSORS) return [];
  const cover = new Map();
  for (let d = 0; d < size.length; d++) {
    if (size[d] <= 1) continue;
    const at = tensors.filter((tensor) => tensor.indexed[d]).map((tensor) => tensor.number);
    if (!at.length) return []; // one element allows any number of points
    cover.set(at.join(), at);
  }
  const known = new Map();
  const workOf = (weights) => {
    const key = [...weights].map(([at, { split, weight }]) => [at, split.dim, weight]).join();
    if (!known.has(key)) known.set(key, storedWork(problem, size, weights));
    return known.get(key);
  };
  const useful = [];
  for (const root of tensors.length > 3 ? [2, 3] : [2]) {
    const choices = tensors.map(() => Array.from({ length: root + 1 }, (_, i) => i));
    const found = combinations(choices)
      .filter((powers) =>
        [...cover.values()].every((at) => at.reduce((sum, i) => sum + powers[i], 0) >= root)
      )
      .map((powers) => inequalityOf(problem, size, powers, root, workOf));
    useful.push(...found.filter((one) => !found.some((other) => isTighter(other, one))));
  }
  // Of degree 1 there is nothing to gain over compulsory traffic.
  return useful.filter((one) => one.degree > one.root);
}

function isTighter(one, other) {
  const noLooser = one.factor <= other.factor && one.work >= other.work;
  const isSame =
    one.factor === other.factor &&
    one.work === other.work &&
    one.grain === other.grain &&
    one.powers.every((power, i) => power === other.powers[i]);
  return noLooser && !isSame && one.powers.every((power, i) => power <= other.powers[i]);
}

function inequalityOf(problem, size, powers, root, workOf) {
  let factor = 1n;
  const weights = new Map();
  for (const tensor of problem.tensors) {
    for (const [a, axis] of tensor.axes.entries()) {
      let best = null;
      for (const cut of splitsOf(axis, size)) {
        const way = wayOf(problem, powers, root, tensor.number, cut);
        way.strength = strengthOf(way, root);
        if (best === null || way.strength < best.strength) best = way;
      }
      factor *= best.factor;
      if (best.weight.some((one) => one > WEIGHT_SCALE)) {
        weights.set(`${tensor.number} ${a}`, { split: best.cut[0], weight: best.weight });
      }
    }
  }
  const { work, grain } = workOf(weights);
  const degree = powers.reduce((sum, power) => sum + power, 0);
  return { powers, root, factor, work, grain, degree };
}

/** Factor that a cut costs, and the weights of its residues. */
function wayOf(problem, powers, root, t, cut) {
  let factor = 1n;
  let weight = [WEIGHT_SCALE];
  for (const split of cut) {
    // Tensors with an axis of this dimension alone have other elements in each class.
    const apart = powersApart(problem, powers, t, split.dim);
    const lost = BigInt(Math.max(0, root - apart));
    const cost = BigInt(split.classes) ** lost;
    factor *= cost;
    if (lost && powers[t] + apart >= root && split.modulus > 1) {
      weight = splitValues(split).map((many) =>
        rootBelow((cost * WEIGHT_SCALE ** BigInt(root)) / BigInt(many) ** lost, root)
      );
    }
  }
  return { factor, cut, weight };
}

function powersApart(problem, powers, t, dim) {
  let apart = 0;
  for (const tensor of problem.tensors) {
    const isAlone = tensor.axes.some((axis) => axis.dims.length === 1 && axis.dims[0] === dim);
    if (tensor.number !== t && isAlone) apart += powers[tensor.number];
  }
  return apart;
}

/** How many points an element may stand for: the fewer, the better. */
function strengthOf(way, root) {
  let mean = 1;
  if (way.weight.length > 1) {
    const [split] = way.cut;
    const values = splitValues(split);
    const sum = bigSum(way.weight.map((one, i) => BigInt(values[i]) * one));
    mean = trueDivide(sum, BigInt(split.size)) / Number(WEIGHT_SCALE);
  }
  return Math.log(Number(way.factor)) / root - Math.log(mean);
}

/** The largest whole number whose power of `degree` is at most `value`. */
function rootBelow(value, degree) {
  if (value <= 0n) return 0n;
  const n = BigInt(degree);
  let root = 1n << BigInt(Math.ceil(bitLength(value) / degree));
  for (;;) {
    // Newton's steps fall until the root is reached.
    const lower = ((n - 1n) * root + value / root ** (n - 1n)) / n;
    if (lower >= root) return root;
    root = lower;
  }
}

/** The least whole number whose power of `degree` is at least `value`. */
function rootAbove(value, degree) {
  return value > 0n ? rootBelow(value - 1n, degree) + 1n : 0n;
}
