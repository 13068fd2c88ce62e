// Schedules as `for` loops, to be read by people.

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except " +
    "finally for from global if import in is lambda nonlocal not or pass raise return try while " +
    "with yield"
  ).split(" ")
);
const INDENTS = [4, 2, 1];

/** Render a schedule as nested `for` loops, within `width` columns if the loops are. */
function loops(problemData, scheduleData, width = 80) {
  const problem = prepareProblem(problemData);
  const schedule = prepareSchedule(scheduleData, problem);
  const variables = variablesOf(problem, schedule);
  const heads = headsOf(schedule, variables);
  const isWithin = (indent) =>
    heads.every((head, depth) => indent * depth + [...head].length <= width);
  const indent = INDENTS.find(isWithin) || INDENTS[INDENTS.length - 1];
  const margin = " ".repeat(indent * heads.length);
  const [whole, ...parts] = bodyOf(problem, schedule, variables);
  const statement = parts.length && [...(margin + whole)].length > width ? parts : [whole];
  return [
    ...heads.map((head, depth) => " ".repeat(indent * depth) + head),
    ...statement.map((line) => margin + line),
  ].join("\n");
}

/** Name each loop: the dimension in small letters, numbered from the inside. */
function variablesOf(problem, schedule) {
  const small = problem.dims.map((dim) => dim.toLowerCase());
  const taken = new Set(["range", "min", ...problem.tensors.map((tensor) => tensor.name)]);
  const free = (name) => {
    let found = name;
    while (KEYWORDS.has(found) || taken.has(found)) found += "_";
    taken.add(found);
    return found;
  };
  const base = problem.dims.map((dim, d) =>
    free(small.filter((one) => one === small[d]).length === 1 ? small[d] : dim)
  );
  const inner = problem.dims.map(() => 0);
  const names = new Array(schedule.loops.length);
  for (let i = names.length - 1; i >= 0; i--) {
    const { dim } = schedule.loops[i];
    const depth = inner[dim]++;
    names[i] = depth ? free(`${base[dim]}${depth}`) : base[dim];
  }
  return names;
}

function headsOf(schedule, variables) {
  const chains = new Map();
  return schedule.loops.map((loop, i) => {
    if (!chains.has(loop.dim)) chains.set(loop.dim, []);
    const outer = chains.get(loop.dim);
    const head = `for ${variables[i]} in range(${spanOf(outer, loop.extent, loop.step)})`;
    outer.push({ variable: variables[i], extent: loop.extent });
    return loop.unit === null ? `${head}:` : `parallel ${head} @${loop.unit}:`;
  });
}

/** Start, end and step of a loop inside the outer loops of its dimension. */
function spanOf(outer, extent, step) {
  const start = outer.length ? outer[outer.length - 1].variable : "0";
  const ends = [outer.length ? `${start} + ${extent}` : `${extent}`];
  let inner = extent;
  for (let i = outer.length - 1; i >= 0; i--) {
    const around = outer[i].extent;
    // Tiles that divide the tile around them cannot reach beyond its edge.
    if (around % inner) ends.push(i ? `${outer[i - 1].variable} + ${around}` : `${around}`);
    inner = around;
  }
  const end = ends.length === 1 ? ends[0] : `min(${ends.join(", ")})`;
  if (step > 1) return `${start}, ${end}, ${step}`;
  return start === "0" ? end : `${start}, ${end}`;
}

/** The multiply-accumulate: whole, then cut into its parts. */
function bodyOf(problem, schedule, variables) {
  const point = problem.dims.map(() => "0");
  schedule.loops.forEach((loop, i) => {
    point[loop.dim] = variables[i];
  });
  const element = (tensor) => {
    const places = tensor.axes.map((axis) => indexText(axis, point)).join(", ");
    return `${tensor.name}[${places || "()"}]`;
  };
  const written = element(problem.output);
  const read = problem.tensors.filter((tensor) => !tensor.isOutput).map(element);
  const factors = (read.length ? read : ["1"]).map((one, i) => `  ${i ? "* " : ""}${one}`);
  return [`${written} += ${read.join(" * ") || "1"}`, `${written} += (`, ...factors, ")"];
}

function indexText(axis, point) {
  const text = axis.dims
    .map((d, i) => ({ variable: point[d], factor: axis.factors[i] }))
    .filter(({ variable }) => variable !== "0")
    .map(({ variable, factor }) => (factor === 1 ? variable : `${factor}*${variable}`))
    .join(" + ");
  if (!text || !axis.offset) return text || String(axis.offset);
  return `${text} ${axis.offset < 0 ? "-" : "+"} ${Math.abs(axis.offset)}`;
}
