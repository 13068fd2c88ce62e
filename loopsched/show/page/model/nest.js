// Loop nests: the loops of a schedule, outermost first, and their geometry.

/** A schedule that covers the problem, in the form that the model works on. */
function prepareSchedule(data, problem) {
  const loops = data.loops.map((loop) => ({
    dim: problem.at.get(loop.dim),
    extent: loop.extent,
    unit: loop.unit ?? null,
    step: 1,
  }));
  const inner = new Array(problem.dims.length).fill(1);
  for (let i = loops.length - 1; i >= 0; i--) {
    loops[i].step = inner[loops[i].dim];
    inner[loops[i].dim] = loops[i].extent;
  }
  joinLists(loops);
  return { loops, text: formatSchedule(data) };
}

/** Steps, without those that split a unit's list of items into the same items. */
function joinLists(loops) {
  let outer = [];
  for (const loop of loops) {
    loop.listed = loop.step;
    if (loop.step === loop.extent) continue;
    const last = outer[outer.length - 1];
    if (last && (last.dim !== loop.dim || last.unit !== loop.unit)) outer = [];
    while (outer.length && outer[outer.length - 1].step % loop.step === 0) {
      outer.pop().listed = Infinity;
    }
    outer = loop.unit === null ? [] : [...outer, loop];
  }
}

function loopText(loop) {
  return `${loop.dim}:${loop.extent}${loop.unit ? `@${loop.unit}` : ""}`;
}

/** A schedule as text, outermost loop first. */
function formatSchedule(schedule) {
  return schedule.loops.map(loopText).join(" ");
}
