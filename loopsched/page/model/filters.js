// What a cache is asked for through the levels inside it.
//
// Asked is { visits, anew, once, late, whole }: by tensor number, the elements asked for at most
// (BigInt), and the loop position from which outward every visit to a region asks for all
// of the tensor's elements in it; the position of regions that ask for each at most once;
// the position of regions at whose end all sums have been written back;
// and the position of the tiles that scratchpads load at
// once. Infinity: further inward than any loop.

function isFiltered(asked) {
  return asked.whole < Infinity || asked.late < Infinity || asked.anew.some((at) => at < Infinity);
}

/** The loop position for each tensor inside which no body tells what is brought in. */
function inmostOf(asked, view) {
  let { late } = asked;
  if (late < Infinity) {
    // Sums of earlier bodies come back only where bodies part them.
    const output = view.problem.tensors.find((tensor) => tensor.isOutput);
    const apart = view.cuts.filter((cut) => output.indexed[cut.dim] && cut.position >= late);
    late = apart.length ? Math.min(...apart.map((cut) => cut.position)) : Number.MAX_SAFE_INTEGER;
  }
  return asked.anew.map((at) => Math.min(at, late));
}

/** What is asked of a level that has none inside. */
function askedOfAll(view) {
  const { tensors } = view.problem;
  const visits = tensors.map((tensor) => view.visitsElems(tensor, view.cuts.length));
  const always = tensors.map(() => Infinity);
  return { visits, anew: always, once: always, late: Infinity, whole: Infinity };
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
  const visits = view.problem.tensors.map((tensor, number) => {
    const { reads, writes } = found.promised[number];
    return (tensor.isOutput ? writes : reads) / tensor.width;
  });
  const anew = [...asked.anew];
  const once = [...asked.once];
  for (const tensor of room.held) {
    const isOnce = visits[tensor.number] === view.visitsElems(tensor, view.boundary);
    once[tensor.number] = isOnce ? fitPosition(view, view.boundary) : Infinity;
  }
  if (level.kind === "scratchpad") {
    const fit = fitCut(view, room, level.isDoubleBuffered ? 2n : 1n) || 0;
    for (const tensor of room.held) {
      const run = runOutside(view, tensor, fit);
      const upto = run.stop - (run.slide && level.hasHaloReuse ? 1 : 0);
      anew[tensor.number] = innermostPosition(view, upto);
    }
    return { visits, anew, once, late: asked.late, whole: Math.min(asked.whole, innermostPosition(view, fit)) };
  }
  const deepest = Math.min(Infinity, ...room.held.map((tensor) => asked.anew[tensor.number]));
  for (const tensor of room.held) {
    if (found.writesThrough && tensor.isOutput) continue;
    anew[tensor.number] = asksAnew(view, room, tensor, deepest);
  }
  const isWrittenLate = room.held.some((tensor) => tensor.isOutput) && !found.writesThrough;
  const late = isWrittenLate ? fitPosition(view, view.boundary) : Infinity;
  return { visits, anew, once, late: Math.min(asked.late, late), whole: asked.whole };
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
