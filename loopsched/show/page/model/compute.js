// Compute time of a schedule: steps of the machine's units, waves included.

/** Multiply-accumulate steps of the unit that works longest: promised, and least. */
function computeSteps(problem, schedule, instances, texts) {
  checkSpatial(schedule, [...instances.keys()], texts);
  const { loops } = schedule;
  let last = -1;
  loops.forEach((loop, i) => {
    if (loop.unit !== null) last = i;
  });
  let lists = new Map();
  addList(lists, problem.sizes, 1n, 1n);
  let at = 0;
  while (at <= last) {
    const { dim, step, unit } = loops[at];
    if (unit === null) {
      lists = splitLists(lists, dim, step);
      at++;
      continue;
    }
    const items = new Map();
    while (at <= last && loops[at].unit === unit) {
      const loop = loops[at++];
      items.set(loop.dim, [...(items.get(loop.dim) || []), loop.step]);
    }
    lists = runLists(lists, items, instances.get(unit));
  }
  let [promised, least] = [0n, 0n];
  for (const list of lists.values()) {
    const points = bigProduct(list.lengths.map(BigInt));
    promised += points * list.promised;
    least += points * list.least;
  }
  const units = new Set(loops.filter((loop) => loop.unit !== null).map((loop) => loop.unit));
  const spread = bigProduct([...units].map((unit) => BigInt(instances.get(unit))));
  return { promised, least: bigLarger(least, bigQuotientAbove(problem.macs, spread)) };
}

function addList(lists, lengths, promised, least) {
  const key = lengths.join();
  const before = lists.get(key);
  if (!before) lists.set(key, { lengths, promised, least });
  else {
    before.promised += promised;
    before.least += least;
  }
}

/** A temporal loop: each of its iterations is a list of its own. */
function splitLists(lists, dim, step) {
  const found = new Map();
  for (const { lengths, promised, least } of lists.values()) {
    const rest = lengths[dim] % step;
    for (const [length, trips] of [[step, quotient(lengths[dim], step)], [rest, 1]]) {
      if (!length || !trips) continue;
      const cut = [...lengths];
      cut[dim] = length;
      addList(found, cut, promised * BigInt(trips), least * BigInt(trips));
    }
  }
  return found;
}

/** Adjacent spatial loops: one list of items, run `instances` at a time. */
function runLists(lists, items, instances) {
  const found = new Map();
  for (const { lengths, promised, least } of lists.values()) {
    const largest = [...lengths];
    let [nItems, nFull] = [1n, 1n];
    for (const [dim, extents] of items) {
      const pieces = segmentLengths(lengths[dim], extents);
      let count = 0;
      for (const many of pieces.values()) count += many;
      largest[dim] = Math.max(...pieces.keys());
      nItems *= BigInt(count);
      nFull *= BigInt(pieces.get(largest[dim]));
    }
    const n = BigInt(instances);
    const [waved, full] = [bigQuotientAbove(nItems, n), bigQuotientAbove(nFull, n)];
    addList(found, largest, promised * waved, least * full);
  }
  return found;
}

/** Throw unless the spatial loops suit the machine's units. */
function checkSpatial(schedule, units, texts) {
  const faults = [];
  const seen = [];
  let before = null;
  schedule.loops.forEach((loop, i) => {
    const { unit } = loop;
    if (unit !== null && !units.includes(unit)) {
      const allowed = units.length ? nearest(unit, units) : "the machine has no such units";
      faults.push(`loop '${texts[i]}': unknown unit '${unit}'; ${allowed}`);
    } else if (unit !== null && unit !== before) {
      if (seen.includes(unit)) {
        faults.push(`loop '${texts[i]}': the loops of unit '${unit}' are not adjacent`);
      } else if (seen.length && units.indexOf(unit) < units.indexOf(seen[seen.length - 1])) {
        faults.push(
          `loop '${texts[i]}': loops of '${unit}' belong outside those of ` +
            `'${seen[seen.length - 1]}'`
        );
      }
      seen.push(unit);
    }
    before = unit;
  });
  if (faults.length) throw joined("schedule", faults);
}
