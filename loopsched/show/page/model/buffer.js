// What crosses the outer boundary of one buffer: a cache or a scratchpad.

// Accesses of tiles that are followed, about, where a closed form does not hold.
const PROMISE_EFFORT = 2 ** 19;

/** Traffic of a scratchpad into which tiles are placed. */
function explicitTraffic(view, room, hasHaloReuse, isDoubleBuffered) {
  const fit = fitCut(view, room, isDoubleBuffered ? 2n : 1n);
  if (fit === null) {
    throw new LoopschedError("not even the operands of one point fit into the scratchpad");
  }
  const visits = room.held.map((tensor) => placedVisits(view, tensor, fit, hasHaloReuse));
  return trafficOf(view, room, fit, visits, true);
}

/** Traffic of a cache that evicts the least recently used, seeing what it is asked for. */
function lruTraffic(view, room, asked) {
  const fit = fitCut(view, room);
  let visits = closedVisits(view, room, fit, null);
  if (isFiltered(asked)) visits = filtered(view, room, fit, visits, asked);
  return trafficOf(view, room, fit === null ? view.cuts.length : fit, visits, false, asked);
}

function closedVisits(view, room, fit, asked) {
  const visits = promisedVisits(view, room, fit, asked);
  const isWhole = fit !== null && fit <= view.boundary;
  const isMerged = fit === null && view.cuts.some((cut) => cut.isParallel);
  if (!isMerged && (isWhole || view.isAligned)) return visits;
  // Not what the closed form speaks of: waves end within an iteration, or what
  // one wave needs at a time does not fit.
  const high = raised(view, room, visits, asked);
  const apart = listByList(view, room, asked);
  if (!apart) return high;
  return visits.map((count, i) => bigLarger(count, bigSmaller(high[i], apart[i])));
}

/** Count what lists of items bring in at most, each from a cold start; null: not known. */
function listByList(view, room, asked) {
  let total = null;
  for (const [part, many] of view.lists()) {
    const found = closedVisits(part, room, fitCut(part, room), asked);
    total = found.map((count, i) => (total ? total[i] : 0n) + many * count);
  }
  return total;
}

/** Raise what holds for a cache that sees all to what holds behind the levels inside. */
function filtered(view, room, fit, visits, asked) {
  const most = room.held.map((tensor) => asked.visits[tensor.number]);
  // Tiles may come in at once that no body here holds.
  const isCut = fit === null || fitPosition(view, fit) > asked.whole;
  if (!isCut) {
    closedVisits(view, room, fit, asked).forEach((count, i) => {
      most[i] = bigSmaller(count, mostAsked(asked, view, room.held[i]));
    });
  }
  return visits.map((count, i) => bigLarger(count, most[i]));
}

/** Raise what a closed form finds to what holds for waves that run on. */
function raised(view, room, visits, asked) {
  let high = replayed(view, room, PROMISE_EFFORT, asked, visits);
  if (high.includes(null) || !isWithin(high, visits)) {
    high = eachAlone(view, room, asked).map((count, i) =>
      high[i] === null ? count : bigSmaller(count, high[i])
    );
  }
  return visits.map((count, i) => bigLarger(count, high[i]));
}

/** Bound held tensors by replays of bodies that ask for all of each anew; null: not known. */
function replayed(view, room, effort, asked, enough) {
  const inmost = asked && inmostOf(asked, view);
  const limits = room.held.map((tensor) => (inmost ? inmost[tensor.number] : Infinity));
  const found = limits.map(() => null);
  for (const most of new Set(limits)) {
    const one = replay(view, room, effort, enough, most);
    const high = one && highOf(one);
    limits.forEach((limit, i) => {
      if (high && limit === most) found[i] = high[i];
    });
  }
  return found;
}

/** Elements that a cache brings in at most, waves ending with whole iterations. */
function promisedVisits(view, room, fit, asked) {
  const found = fit === null ? fitCut(view, room) : fit;
  if (found === null) {
    // Nothing is ever reused for certain.
    return room.held.map((tensor) => view.visitsElems(tensor, view.cuts.length));
  }
  return guaranteedVisits(view, room, found, asked);
}

/** Bound what instances in lock-step bring in, each in its share of the room. */
function eachAlone(view, room, asked) {
  const units = new Set();
  for (const loop of view.innerLoops) if (loop.unit !== null) units.add(loop.unit);
  const own = new Set([...units, ...view.ownUnits]);
  const alone = viewOf(view.problem, view.schedule, new Map(), own);
  let n = 1n;
  for (const unit of units) n *= BigInt(Math.max(1, instancesOf(view.instances, unit)));
  return promisedVisits(alone, divided(room, n), null, asked);
}

/** Promised reads and writes by tensor number, the fit and the working set. */
function trafficOf(view, room, fit, visits, isPlaced, asked = null) {
  const promised = new Map();
  room.held.forEach((tensor, i) => {
    const moved = visits[i] * tensor.width;
    const reads = tensor.isOutput ? moved - tensorBytes(view.problem, tensor) : moved;
    promised.set(tensor.number, { reads, writes: tensor.isOutput ? moved : 0n });
  });
  const footprints = room.held.map((tensor) => view.footprintBytes(tensor, fit));
  return {
    promised,
    fitPosition: fitPosition(view, fit),
    workingSet: bigSum(footprints),
    footprints: new Map(room.held.map((tensor, i) => [tensor.number, footprints[i]])),
    view,
    room,
    visits,
    isPlaced,
    asked,
  };
}
