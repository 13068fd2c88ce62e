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

/** Traffic of a cache that evicts the least recently used. */
function lruTraffic(view, room) {
  const fit = fitCut(view, room);
  let visits = promisedVisits(view, room, fit);
  const isWhole = fit !== null && fit <= view.boundary;
  const isMerged = fit === null && view.cuts.some((cut) => cut.isParallel);
  if (isMerged || !(isWhole || view.isAligned)) {
    // Not what the closed form speaks of: waves end within an iteration, or what
    // one wave needs at a time does not fit.
    visits = raised(view, room, visits);
  }
  return trafficOf(view, room, fit === null ? view.cuts.length : fit, visits, false);
}

/** Raise what a closed form finds to what holds for waves that run on. */
function raised(view, room, visits) {
  const replayed = replay(view, room, PROMISE_EFFORT, visits);
  let high = replayed && highOf(replayed);
  if (!high || !isWithin(high, visits)) {
    const alone = eachAlone(view, room);
    const bound = high || alone;
    high = alone.map((count, i) => bigSmaller(count, bound[i]));
  }
  return visits.map((count, i) => bigLarger(count, high[i]));
}

/** Elements that a cache brings in at most, waves ending with whole iterations. */
function promisedVisits(view, room, fit) {
  const found = fit === null ? fitCut(view, room) : fit;
  if (found === null) {
    // Nothing is ever reused for certain.
    return room.held.map((tensor) => view.visitsElems(tensor, view.cuts.length));
  }
  return guaranteedVisits(view, room, found);
}

/** Bound what instances in lock-step bring in, each in its share of the room. */
function eachAlone(view, room) {
  const units = new Set();
  for (const loop of view.innerLoops) if (loop.level !== null) units.add(loop.level);
  const own = new Set([...units, ...view.ownUnits]);
  const alone = viewOf(view.problem, view.schedule, new Map(), own);
  let n = 1n;
  for (const unit of units) n *= BigInt(Math.max(1, instancesOf(view.instances, unit)));
  return promisedVisits(alone, divided(room, n), null);
}

/** Promised reads and writes by tensor number, the fit and the working set. */
function trafficOf(view, room, fit, visits, isPlaced) {
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
  };
}
