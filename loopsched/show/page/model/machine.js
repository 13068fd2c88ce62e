// How a problem and an architecture meet: roles, rooms, units, data types.

const ROLES = ["input", "weight", "output"];
// What to look for first, by the size of the widest input element.
const DATA_TYPES_OF = [
  [1n, ["int8", "fp8"]],
  [2n, ["fp16", "bf16"]],
  [4n, ["fp32", "tf32"]],
  [8n, ["fp64"]],
];

function whole(value) {
  return value === null || value === undefined ? null : BigInt(value);
}

function given(value) {
  return value === undefined ? null : value;
}

/** The machine in the form that the model works on. */
function prepareArch(data) {
  const levels = data.levels.map((level) => ({
    name: level.name,
    kind: level.kind,
    capacity: whole(level.capacity_bytes),
    usable: whole(
      given(level.effective_capacity_bytes) === null
        ? level.capacity_bytes
        : level.effective_capacity_bytes
    ),
    instances: level.instances,
    unit: given(level.unit),
    bandwidth: given(level.bandwidth_bytes_per_s),
    boundBandwidth:
      given(level.peak_bandwidth_bytes_per_s) === null
        ? given(level.bandwidth_bytes_per_s)
        : level.peak_bandwidth_bytes_per_s,
    holds: given(level.holds),
    buffers: (level.tensor_capacity_bytes || []).map(([name, size]) => [name, BigInt(size)]),
    writePolicy: level.write_policy,
    accumulate: level.accumulate,
    isDoubleBuffered: level.double_buffered,
    hasHaloReuse: level.halo_reuse,
    energy: given(level.energy_pj_per_byte),
  }));
  const compute = data.compute;
  const units = new Map();
  for (const level of levels) if (level.unit) units.set(level.unit, level.instances);
  if (!units.has(compute.unit)) units.set(compute.unit, compute.units);
  return {
    name: data.name,
    levels,
    caches: levels.slice(1),
    units: [...units],
    unit: compute.unit,
    nUnits: compute.units,
    clock: compute.clock_hz,
    maxClock: compute.max_clock_hz,
    rates: compute.macs_per_cycle_per_unit,
    laneUnit: given(compute.lane_unit),
    energy: given(compute.energy_pj_per_mac),
    storage: whole(compute.storage_bytes),
  };
}

/** Multiply-accumulates a cycle of one unit. */
function rateOf(arch, dataType) {
  const found = arch.rates.find(([name]) => name === dataType);
  if (found) return found[1];
  const names = arch.rates.map(([name]) => name);
  const what = `'${arch.name}': no rate for data type '${dataType}'`;
  const isKnown = dataType === "fp16_simt" || DATA_TYPES_OF.some(([, of]) => of.includes(dataType));
  throw new LoopschedError(`${what}; ${nearest(isKnown ? "" : dataType, names)}`);
}

/** All that can hold data inside a level's outer boundary, in one instance; null: unknown. */
function insideBytes(arch, level) {
  if (arch.storage === null) return null;
  const around = BigInt(level.instances);
  let total = bigQuotientAbove(BigInt(arch.nUnits), around) * arch.storage;
  for (const inner of arch.levels.slice(arch.levels.indexOf(level))) {
    if (inner.capacity === null && !inner.buffers.length) return null;
    const held = (inner.capacity || 0n) + bigSum(inner.buffers.map(([, size]) => size));
    total += bigQuotientAbove(BigInt(inner.instances), around) * held;
  }
  return total;
}

function roleOf(problem, tensor) {
  if (tensor.isOutput) return "output";
  const read = problem.tensors.filter((other) => !other.isOutput).map((other) => other.name);
  if (read.includes("weight")) return tensor.name === "weight" ? "weight" : "input";
  return tensor.name !== "input" && read.slice(1).includes(tensor.name) ? "weight" : "input";
}

/** The room that a level offers to a problem's tensors. */
function roomOf(problem, level) {
  const own = new Map();
  const held = [];
  const passing = new Set();
  for (const tensor of problem.tensors) {
    const role = roleOf(problem, tensor);
    const names = [ROLES.includes(tensor.name) ? role : tensor.name, role];
    if (level.holds !== null && !names.some((name) => level.holds.includes(name))) {
      passing.add(tensor.number);
      continue;
    }
    held.push(tensor);
    const buffer = names
      .map((name) => level.buffers.find(([word]) => word === name))
      .find((found) => found !== undefined);
    if (buffer) own.set(tensor.number, buffer[1]);
    else if (level.usable === null) {
      throw new LoopschedError(
        `level '${level.name}' has no capacity for tensor '${tensor.name}'`
      );
    }
  }
  return { shared: level.usable || 0n, own, held, passing };
}

/** Units whose instances each have such a level, or are outside it. */
function ownUnits(arch, level) {
  if (level.unit === null) return new Set();
  return new Set(arch.units.filter(([, n]) => n <= level.instances).map(([unit]) => unit));
}

/** How many of each unit inside one instance of a level there are in one of the next outer. */
function instancesInside(arch, level, lanes) {
  const own = ownUnits(arch, level);
  return new Map([...nestedUnits(arch, lanes)].filter(([unit]) => !own.has(unit)));
}

/** How many of each unit there are in one of the next outer, outermost first. */
function nestedUnits(arch, lanes) {
  const found = new Map();
  let around = 1;
  for (const [unit, n] of [...arch.units].sort((one, other) => one[1] - other[1])) {
    found.set(unit, quotient(n, around));
    around = n;
  }
  if (lanes && arch.laneUnit !== null) found.set(arch.laneUnit, lanes);
  return found;
}

/** The data type whose rate counts: the widest input's, or the output's if it is alone. */
function dataTypeOf(problem, arch) {
  const inputs = problem.tensors.filter((tensor) => !tensor.isOutput);
  let width = 0n;
  for (const tensor of inputs.length ? inputs : problem.tensors) {
    width = bigLarger(width, tensor.width);
  }
  const known = arch.rates.map(([name]) => name);
  for (const [size, names] of DATA_TYPES_OF) {
    if (size < width) continue;
    for (const name of names) if (known.includes(name)) return name;
  }
  throw new LoopschedError(
    `'${arch.name}' has no rate for elements of ${width} bytes (it has: ${known.join(" ")})`
  );
}
