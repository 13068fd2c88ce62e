// The score of a schedule on a machine: bytes, times, and what binds.

/**
 * Score a schedule of a problem on a machine, all three given as plain data.
 *
 * The names of what comes back are those of a result file; whole numbers above
 * 2^53 - 1 are BigInt. `options.data_type` chooses the compute rate.
 */
function evaluate(problemData, scheduleData, archData, options = {}) {
  const problem = prepareProblem(problemData);
  const schedule = prepareSchedule(scheduleData, problem);
  const arch = prepareArch(archData);
  const rate = rateOf(arch, options.data_type || dataTypeOf(problem, arch));
  const lanes = Math.max(1, Math.trunc(rate));
  const texts = scheduleData.loops.map(loopText);
  const steps = computeSteps(problem, schedule, nestedUnits(arch, lanes), texts);
  const hasLanes = schedule.loops.some((loop) => loop.unit && loop.unit === arch.laneUnit);
  const pace = hasLanes ? rate / lanes : rate; // a unit's steps, or a lane's
  const computeTime = Number(steps.promised) / (pace * arch.clock);
  const computeBound = Number(steps.least) / (pace * arch.maxClock);
  const moved = levelTraffic(problem, schedule, arch, lanes);
  const times = arch.caches.map((level, i) => timeOf(level, moved[i]));
  const time = Math.max(computeTime, ...times);
  let [slowest, boundBy] = [computeTime, "compute"];
  times.forEach((one, i) => {
    if (one > slowest) [slowest, boundBy] = [one, arch.levels[i].name];
  });
  const levels = arch.caches.map((level, i) =>
    levelRow(problem, arch, arch.levels[i], level, moved[i], time)
  );
  const sideBySide = BigInt(arch.nUnits) * BigInt(hasLanes ? lanes : 1);
  // Divided as the schedule's own bound is, so that rounding keeps their order.
  const peak = trueDivide(problem.macs, sideBySide) / (pace * arch.maxClock);
  const dram = moved[0].total;
  return {
    time_s: time,
    time_bound_s: Math.max(computeBound, ...levels.map((level) => level.time_bound_s)),
    problem_bound_s: Math.max(peak, levels[0].time_bound_s),
    bound_by: boundBy,
    compute_time_s: computeTime,
    compute_steps: outward(steps.promised),
    compute_utilisation: trueDivide(problem.macs, steps.promised * sideBySide),
    dram_bytes: outward(dram),
    dram_read_bytes: levels[0].promised_read_bytes,
    dram_write_bytes: levels[0].promised_write_bytes,
    least_dram_bytes: outward(leastDramBytes(problem, arch)),
    required_dram_bandwidth_bytes_per_s: Number(dram) / computeTime,
    energy_pj: energyOf(problem, arch, moved),
    levels,
  };
}

/** Traffic across the outer boundary of each level but the memory, outermost first. */
function levelTraffic(problem, schedule, arch, lanes) {
  const found = [];
  let inner = null;
  let asked = null;
  for (const level of [...arch.caches].reverse()) {
    const instances = instancesInside(arch, level, lanes);
    const view = viewOf(problem, schedule, instances, ownUnits(arch, level));
    asked = asked || askedOfAll(view);
    inner = oneLevel(problem, view, level, inner || accessesOf(problem, schedule), asked);
    asked = askedThrough(view, inner.room, level, asked, inner);
    found.unshift(inner);
  }
  return found;
}

/** What the units ask for, point by point, each for itself. */
function accessesOf(problem, schedule) {
  const units = new Set(schedule.loops.map((loop) => loop.unit));
  const view = viewOf(problem, schedule, new Map(), units);
  const promised = problem.tensors.map((tensor) => {
    const every = view.visitsElems(tensor, view.cuts.length) * tensor.width;
    if (!tensor.isOutput) return { reads: every, writes: 0n };
    return { reads: every - tensorBytes(problem, tensor), writes: every };
  });
  return { promised, isAccesses: true };
}

function oneLevel(problem, view, level, inner, asked) {
  const room = roomOf(problem, level);
  const own =
    level.kind === "scratchpad"
      ? explicitTraffic(view, room, level.hasHaloReuse, level.isDoubleBuffered)
      : lruTraffic(view, room, asked);
  const writesThrough = level.writePolicy === "through" && level.accumulate === "level";
  const promised = problem.tensors.map(({ number }) => {
    if (room.passing.has(number)) return inner.promised[number];
    const { reads, writes } = own.promised.get(number);
    return { reads, writes: writesThrough ? inner.promised[number].writes : writes };
  });
  const reads = bigSum(promised.map((part) => part.reads));
  const writes = bigSum(promised.map((part) => part.writes));
  return { own, inner, promised, reads, writes, total: reads + writes, room, writesThrough };
}

/** Promised time of a level's outer boundary; 0 if it is unlimited. */
function timeOf(level, found) {
  return level.bandwidth ? Number(found.total) / level.bandwidth : 0;
}

function levelRow(problem, arch, outer, level, found, time) {
  const own = timeOf(level, found);
  const least = leastBytes(problem, arch, level);
  const flops = 2n * problem.macs;
  return {
    name: level.name,
    outer: outer.name,
    capacity_bytes: level.usable === null ? null : outward(level.usable),
    working_set_bytes: outward(found.own.workingSet),
    fit_position: found.own.fitPosition,
    promised_bytes: outward(found.total),
    promised_read_bytes: outward(found.reads),
    promised_write_bytes: outward(found.writes),
    time_s: own,
    time_bound_s: level.boundBandwidth ? Number(least) / level.boundBandwidth : 0,
    utilisation: time ? own / time : 0,
    operational_intensity: found.total ? trueDivide(flops, found.total) : Infinity,
    tensors: problem.tensors.map((tensor) => tensorRow(tensor, found)),
  };
}

/** What one tensor moves; its footprint in the body that fits, null where it passes. */
function tensorRow(tensor, found) {
  const { reads, writes } = found.promised[tensor.number];
  const footprint = found.own.footprints.get(tensor.number);
  return {
    name: tensor.name,
    footprint_bytes: footprint === undefined ? null : outward(footprint),
    promised_read_bytes: outward(reads),
    promised_write_bytes: outward(writes),
  };
}

/** Bound what the modelled outermost level moves, in any order. */
function leastDramBytes(problem, arch) {
  const [level] = arch.caches;
  if (level.holds !== null || level.usable === null) return leastBytes(problem, arch, level);
  return boundAt(problem, level.usable + bigSum(level.buffers.map(([, size]) => size)));
}

/** Bound what crosses a level's outer boundary, whatever is kept inside. */
function leastBytes(problem, arch, level) {
  const inside = insideBytes(arch, level);
  if (inside === null) return bigSum(problem.tensors.map((t) => tensorBytes(problem, t)));
  return boundAt(problem, inside);
}

/** The communication bound at a capacity, which the data of the problem bring along. */
function boundAt(problem, capacity) {
  const found = problem.bounds.get(String(capacity));
  if (found === undefined) throw new Error(`no bound of the problem at ${capacity} B is given`);
  return found;
}

/** Energy of both sides of every boundary, and of the arithmetic; null if not known. */
function energyOf(problem, arch, moved) {
  if (arch.energy === null || arch.levels.some((level) => level.energy === null)) return null;
  let total = Number(problem.macs) * arch.energy;
  arch.caches.forEach((level, i) => {
    total += Number(moved[i].total) * ((arch.levels[i].energy || 0) + (level.energy || 0));
  });
  return total;
}
