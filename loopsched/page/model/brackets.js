// Brackets: bytes that are certainly moved, probably moved, and at most moved.

// Accesses of tiles that are replayed for a level's brackets, about.
const EFFORT = 2 ** 20;
const NOTHING = { low: 0n, point: 0n, high: 0n };

/** Add brackets to the rows of the levels and of their tensors. */
function addBrackets(problem, rows, moved, effort = EFFORT) {
  rows.forEach((row, i) => {
    const found = tensorBrackets(problem, moved[i], effort);
    const [reads, writes] = ["reads", "writes"].map((side) =>
      found.map((part) => part[side]).reduce(plus, NOTHING)
    );
    row.bytes = outwardBracket(plus(reads, writes));
    row.read_bytes = outwardBracket(reads);
    row.write_bytes = outwardBracket(writes);
    row.tensors.forEach((tensor, t) => {
      tensor.read_bytes = outwardBracket(found[t].reads);
      tensor.write_bytes = outwardBracket(found[t].writes);
    });
  });
}

function eachPart(make) {
  return { low: make("low"), point: make("point"), high: make("high") };
}

function plus(one, other) {
  return eachPart((part) => one[part] + other[part]);
}

function outwardBracket(bracket) {
  return eachPart((part) => outward(bracket[part]));
}

/** Brackets of each tensor's reads and writes across the outer boundary of a level. */
function tensorBrackets(problem, level, effort) {
  if (level.isAccesses) {
    return level.promised.map(({ reads, writes }) => ({
      reads: eachPart(() => reads),
      writes: eachPart(() => writes),
    }));
  }
  if (!level.brackets) level.brackets = newTensorBrackets(problem, level, effort);
  return level.brackets;
}

function newTensorBrackets(problem, level, effort) {
  const inner = tensorBrackets(problem, level.inner, effort);
  const own = ownBrackets(level.own, effort);
  return problem.tensors.map((tensor) => {
    const held = level.room.held.indexOf(tensor);
    if (held < 0) return inner[tensor.number];
    const moved = eachPart((part) => own[held][part] * tensor.width);
    const first = tensor.isOutput ? tensorBytes(problem, tensor) : 0n; // brings nothing in
    const writes = tensor.isOutput ? moved : NOTHING;
    return {
      reads: eachPart((part) => moved[part] - first),
      writes: level.writesThrough ? inner[tensor.number].writes : writes,
    };
  });
}

/** Brackets of the elements of each held tensor that a buffer brings in. */
function ownBrackets({ view, room, visits, isPlaced, asked }, effort) {
  if (isPlaced) return visits.map((count) => eachPart(() => count));
  let low = room.held.map((tensor) => certainVisits(view, room, tensor));
  let high = visits;
  const fit = fitCut(view, room);
  const at = fit === null ? view.cuts.length : fit;
  let point = room.held.map((tensor) => steadyVisits(view, tensor, at, fit !== null));
  if (effort && low.some((count, i) => count !== high[i])) {
    const whole = replay(view, room, effort);
    const slices = whole && isClosed(whole) ? null : replaySlices(view, room, effort);
    if (whole) point = whole.point; // slices know too little of each other
    const found = whole && slices ? narrower(slices, whole) : whole || slices;
    if (found) low = low.map((count, i) => bigLarger(count, found.low[i]));
    let most = found && found.fits ? found.anew : visits;
    if (isFiltered(asked)) {
      most = asked.whole < Infinity ? visits : replayed(view, room, effort, asked);
    }
    high = high.map((count, i) => (most[i] === null ? count : bigSmaller(count, most[i])));
  }
  return low.map((least, i) => ({
    low: least,
    point: bigSmaller(bigLarger(point[i], least), high[i]),
    high: high[i],
  }));
}
