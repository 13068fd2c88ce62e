// Communication lower bounds: bytes that no order of execution can avoid.
//
// Floating point only chooses the number of phases and the prices; the bound itself
// is computed in whole numbers. Logarithms differ between engines in their last bit,
// so a bound that the data of the problem brings along is taken from there.

// Prices are whole multiples of 1 / PRICE_SCALE of a byte for each byte.
const PRICE_SCALE = 1n << 20n;
const MOST_MACS = 1n << 62n;

const PHASE_COUNTS = (() => {
  const counts = [1n];
  for (let n = 1n; n < MOST_MACS; counts.push(n)) n += bigLarger(1n, n / 3n);
  return counts;
})();

/** Least bytes between a memory and everything inside of it, a BigInt. */
function communicationBound(problem, capacity) {
  const given = problem.bounds.get(String(capacity));
  if (given !== undefined) return given;
  const key = `bound ${capacity}`;
  if (!problem.known.has(key)) problem.known.set(key, newBound(problem, capacity));
  return problem.known.get(key);
}

function newBound(problem, capacity) {
  if (!problem.known.has("argument")) {
    const part = partOf(problem);
    problem.known.set("argument", { part, family: inequalitiesOf(problem, part.size) });
  }
  const { part, family } = problem.known.get("argument");
  let best = bigSum(part.touched);
  if (capacity < best) {
    for (const inequality of family) {
      best = bigLarger(best, bestPhases(part, inequality, capacity));
    }
  }
  return part.copies * best;
}

/** One of the equal parts of a problem that share no data. */
function partOf(problem) {
  const isAlone = (tensor, d) =>
    tensor.axes.some((axis) => axis.dims.length === 1 && axis.dims[0] === d && axis.size === null);
  const isShared = problem.dims.map((_, d) => problem.tensors.every((t) => isAlone(t, d)));
  const size = problem.sizes.map((extent, d) => (isShared[d] ? 1 : extent));
  const copies = bigProduct(problem.sizes.filter((_, d) => isShared[d]).map(BigInt));
  const widths = problem.tensors.map((tensor) => tensor.width);
  const touched = problem.tensors.map((t) => footprintElems(t, null, size) * t.width);
  return { copies, size, widths, touched };
}

/** The best bound over numbers of phases of equal work. */
function bestPhases(part, inequality, capacity) {
  const known = new Map();
  const about = (n) => {
    if (!known.has(n)) {
      const shares = floatSum(sharesOf(part, inequality, n));
      known.set(n, shares - (Number(n) - 1) * Number(capacity));
    }
    return known.get(n);
  };
  const tried = [];
  for (const n of PHASE_COUNTS) {
    if (n > inequality.work) break;
    tried.push(n);
    if (about(n) <= capacity) break; // a phase's share fits inside: more phases gain nothing
  }
  const likely = new Set();
  const places = tried.map((_, place) => place);
  places.sort((one, other) => about(tried[other]) - about(tried[one]));
  for (const place of places.slice(0, 2)) {
    let low = tried[Math.max(0, place - 1)];
    let high = tried[Math.min(tried.length - 1, place + 1)];
    while (high - low > 2n) {
      // Between two steps there is one peak.
      const middle = (low + high) / 2n;
      if (about(middle) >= about(middle + 1n)) high = middle + 1n;
      else low = middle;
    }
    for (let n = low; n <= high; n++) likely.add(n);
  }
  let best = null;
  for (const n of likely) {
    const found = touchedAtLeast(part, inequality, n) - (n - 1n) * capacity;
    if (best === null || found > best) best = found;
  }
  return best === null ? 0n : best;
}

/** Add from the left: whole numbers exactly until the first double, as sum() in Python. */
function floatSum(values) {
  let sum = 0n;
  for (const value of values) {
    if (typeof sum === "bigint" && typeof value === "bigint") sum += value;
    else sum = Number(sum) + Number(value);
  }
  return Number(sum);
}

/** Least bytes of each tensor that n phases touch together, but for rounding. */
function sharesOf(part, inequality, n) {
  const level = levelOf(part, inequality, n);
  return part.touched.map((d, i) => {
    const power = inequality.powers[i];
    return power ? between(power * level, d, n * d) : Number(d);
  });
}

/** A double held between two whole numbers; these stay exact. */
function between(value, least, most) {
  const raised = least > value ? least : value;
  return most < raised ? most : raised;
}

/** How much of each tensor, per power, n phases of equal work must touch. */
function levelOf(part, inequality, n) {
  const grain = inequality.grain > 1n ? Number(inequality.grain) : 0;
  const work = trueDivide(inequality.work, n) - grain;
  if (work <= 0) return 0;
  const active = [];
  part.touched.forEach((d, i) => {
    const power = inequality.powers[i];
    if (power && d) active.push({ power, d, log: Math.log(Number(n * part.widths[i])) });
  });
  let target = inequality.root * Math.log(work) - Math.log(Number(inequality.factor));
  target += floatSum(active.map(({ power, log }) => power * log));
  const reached = (level) =>
    floatSum(
      active.map(({ power, d }) => power * Math.log(Number(between(power * level, d, n * d))))
    );
  const edges = new Set();
  for (const one of active) {
    one.low = trueDivide(one.d, BigInt(one.power));
    one.high = trueDivide(n * one.d, BigInt(one.power));
    edges.add(one.low).add(one.high);
  }
  let begin = 0;
  for (const end of [...edges].sort((one, other) => one - other)) {
    if (reached(end) >= target) {
      let free = 0;
      for (const { power, low, high } of active) if (low <= begin && begin < high) free += power;
      return free ? begin * Math.exp((target - reached(begin)) / free) : begin;
    }
    begin = end;
  }
  return begin;
}

/** Bound from below, in whole bytes, what n phases of equal work touch together. */
function touchedAtLeast(part, inequality, n) {
  const level = levelOf(part, inequality, n);
  const shares = sharesOf(part, inequality, n);
  const prices = [];
  let total = 0n;
  part.touched.forEach((d, i) => {
    const power = inequality.powers[i];
    const share = Number(shares[i]);
    const scale = Number(PRICE_SCALE);
    const price = power && share ? roundHalfEven(((power * level) / share) * scale) : 0n;
    prices.push(price * part.widths[i]);
    // Cheap tensors: each byte is touched at least once; dear ones: at most n times.
    total += (PRICE_SCALE - price) * d * (price <= PRICE_SCALE ? 1n : n);
  });
  for (const [work, many] of phasesOf(inequality, n)) {
    total += many * costOf(inequality, prices, work);
  }
  return -floorDivide(-total, PRICE_SCALE);
}

function floorDivide(above, below) {
  const found = above / below;
  return above % below < 0n ? found - 1n : found;
}

/** Cut the work into n phases: the work that some have at least, and how many. */
function phasesOf(inequality, n) {
  const work = inequality.work / n;
  const more = inequality.work % n;
  // Points with weights are not cut: a phase may miss the work of one.
  if (inequality.grain > 1n) return [[bigLarger(0n, work - inequality.grain), n]];
  return [
    [work, n - more],
    [work + 1n, more],
  ];
}

/** Least price of the elements that so much work touches. */
function costOf(inequality, prices, work) {
  const degree = BigInt(inequality.degree);
  let above = degree ** degree * work ** BigInt(inequality.root);
  let below = inequality.factor;
  inequality.powers.forEach((power, i) => {
    above *= prices[i] ** BigInt(power);
    below *= BigInt(power) ** BigInt(power);
  });
  return rootAbove(bigQuotientAbove(above, below), inequality.degree);
}
