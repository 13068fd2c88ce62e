// What a cache is asked for through the levels inside it.
//
// Asked is { visits, anew, once, late, whole, waiting, cold }: by tensor number, the elements asked for at most
// (BigInt), and the loop position from which outward every visit to a region asks for all
// of the tensor's elements in it; the position of regions that ask for each at most once;
// the position of regions at whose end all sums have been written back;
// the position of the tiles that scratchpads load at once; what an instance of each level
// that writes back late can hold of sums, and the units that have such a level; and the
// positions of items that levels start cold. Infinity: further inward than any loop.

function isFiltered(asked) {
  return asked.whole < Infinity || asked.late < Infinity || asked.anew.some((at) => at < Infinity);
}

/** The loop position for each tensor inside which no body tells what is brought in. */
function inmostOf(asked, view) {
  const late = partedAt(asked, view);
  return asked.anew.map((at) => Math.min(at, late));
}

/** The loop position inside which sums of earlier bodies may come: bodies part them there. */
function partedAt({ late }, view) {
  if (late === Infinity) return late;
  const { indexed } = view.problem.tensors.find((tensor) => tensor.isOutput);
  const apart = view.cuts.filter((cut) => indexed[cut.dim] && cut.position >= late);
  return Math.min(Number.MAX_SAFE_INTEGER, ...apart.map((cut) => cut.position));
}

/** The item that a region is in, where what is inside starts cold, and what its end writes. */
function itemOf(asked, view, position) {
  const start = Math.max(0, ...asked.cold.filter((at) => at < position));
  if (position <= partedAt(asked, view)) return { start, lateBytes: 0n };
  const busy = new Set(view.innerLoops.map((loop) => loop.unit));
  let waiting = 0n;
  for (const { size, units } of asked.waiting) {
    let bytes = size;
    for (const unit of units) {
      if (busy.has(unit)) bytes *= BigInt(instancesOf(view.instances, unit));
    }
    waiting += bytes;
  }
  const output = view.problem.tensors.find((tensor) => tensor.isOutput);
  const outside = view.cuts.filter((cut) => cut.position < asked.late).length;
  return { start, lateBytes: bigSmaller(waiting, view.footprintBytes(output, outside)) };
}

/** What is asked of a level that has none inside. */
function askedOfAll(view) {
  const { tensors } = view.problem;
  const visits = tensors.map((tensor) => view.visitsElems(tensor, view.cuts.length));
  const always = tensors.map(() => Infinity);
  const never = { late: Infinity, whole: Infinity, waiting: [], cold: [] };
  return { visits, anew: always, once: always, ...never };
}

/** Bound the elements that a cache brings in, if it holds one body: what is asked for. */
function mostAsked(asked, view, tensor) {
  const most = asked.visits[tensor.number];
  const once = asked.once[tensor.number];
  if (once === Infinity || !tensor.axes.every((axis) => axis.isPlain)) return most;
  const outside = view.cuts.filter((cut) => cut.position < once).length;
  return bigSmaller(most, view.visitsElems(tensor, outside));
}

/** What a level asks the next outer one for, being asked itself by those inside. */
function askedThrough(view, room, level, asked, found) {
  if (!room.held.length) return asked;
  const visits = view.problem.tensors.map((tensor, number) => {
    const { reads, writes } = found.promised[number];
    return (tensor.isOutput ? writes : reads) / tensor.width;
  });
  const anew = [...asked.anew];
  const once = [...asked.once];
  const item = fitPosition(view, view.boundary);
  const cold = view.boundary ? [...asked.cold, item] : asked.cold;
  for (const tensor of room.held) {
    const isOnce = visits[tensor.number] === view.visitsElems(tensor, view.boundary);
    once[tensor.number] = isOnce ? item : Infinity;
  }
  if (level.kind === "scratchpad") {
    const fit = fitCut(view, room, level.isDoubleBuffered ? 2n : 1n) || 0;
    for (const tensor of room.held) {
      const run = runOutside(view, tensor, fit);
      const upto = run.stop - (run.slide && level.hasHaloReuse ? 1 : 0);
      anew[tensor.number] = innermostPosition(view, upto);
    }
    const whole = Math.min(asked.whole, innermostPosition(view, fit));
    return { ...asked, visits, anew, once, whole, cold };
  }
  const deepest = Math.min(Infinity, ...room.held.map((tensor) => asked.anew[tensor.number]));
  for (const tensor of room.held) {
    if (found.writesThrough && tensor.isOutput) continue;
    anew[tensor.number] = asksAnew(view, room, tensor, deepest);
  }
  const output = room.held.find((tensor) => tensor.isOutput);
  if (!output || found.writesThrough) return { ...asked, visits, anew, once, cold };
  const own = room.own.get(output.number);
  const size = own === undefined ? room.shared : own;
  const waiting = [...asked.waiting, { size, units: view.ownUnits }];
  return { ...asked, visits, anew, once, late: Math.min(asked.late, item), waiting, cold };
}

/** The innermost region whose visits all make a cache ask for a tensor anew. */
function asksAnew(view, room, tensor, deepest) {
  let upto = view.boundary; // items start cold
  for (const at of certainCuts(view, room, tensor)) {
    if (view.cuts[at].position < deepest) upto = Math.max(upto, at);
  }
  const visits = view.visitsElems(tensor, upto);
  while (upto < view.cuts.length && !view.cuts[upto].isParallel) {
    if (view.visitsElems(tensor, upto + 1) > visits) break;
    upto++; // no element is touched by two visits
  }
  return innermostPosition(view, upto);
}

function innermostPosition(view, upto) {
  return upto < view.cuts.length ? view.cuts[upto].position : Infinity;
}
