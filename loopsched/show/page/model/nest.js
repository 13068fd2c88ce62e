// Loop nests: the loops of a schedule, outermost first, and their geometry.

/** The schedule in the form that the model works on; throws unless it covers the problem. */
function prepareSchedule(data, problem) {
  const faults = loopFaults(data.loops);
  if (faults.length) throw joined("schedule", faults);
  const mismatches = coverageFaults(data.loops, problem);
  if (mismatches.length) throw joined(`schedule for '${problem.name}'`, mismatches);
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

function loopFaults(loops) {
  const faults = [];
  const outer = new Map();
  for (const loop of loops) {
    const unit = loop.unit ?? null;
    for (const [what, word] of [["dim", loop.dim], ...(unit === null ? [] : [["unit", unit]])]) {
      if (!isIdentifier(word)) {
        faults.push(`${what} ${show(word)} of a loop is not a plain word (letters, digits, _)`);
      }
    }
    if (!Number.isSafeInteger(loop.extent) || loop.extent < 1) {
      faults.push(
        `loop of '${loop.dim}': extent is ${show(loop.extent)}; a whole number >= 1 is needed`
      );
      continue;
    }
    const bound = outer.has(loop.dim) ? outer.get(loop.dim) : loop.extent;
    if (loop.extent > bound) {
      faults.push(
        `loop of '${loop.dim}': extent ${loop.extent} grows inward; the next outer ` +
          `loop of '${loop.dim}' covers only ${bound}`
      );
    }
    outer.set(loop.dim, Math.min(bound, loop.extent));
  }
  return faults;
}

function coverageFaults(loops, problem) {
  const first = new Map();
  const unknown = new Set();
  for (const loop of loops) {
    if (!problem.at.has(loop.dim)) unknown.add(loop.dim);
    else if (!first.has(loop.dim)) first.set(loop.dim, loop.extent);
  }
  const faults = [...unknown].map((dim) => `unknown dim '${dim}'; ${nearest(dim, problem.dims)}`);
  problem.dims.forEach((dim, d) => {
    const whole = problem.sizes[d];
    if (!first.has(dim) && whole > 1) {
      faults.push(`dim '${dim}' (size ${whole}) has no loop; add '${dim}:${whole}'`);
    } else if (first.has(dim) && first.get(dim) !== whole) {
      faults.push(
        `outermost loop of '${dim}' covers ${first.get(dim)}; it must cover the size, ${whole}`
      );
    }
  });
  return faults;
}

/** A schedule as text, outermost loop first. */
function formatSchedule(schedule) {
  return schedule.loops.map(loopText).join(" ");
}
