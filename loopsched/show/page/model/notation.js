// Schedules as text: `dim:extent` and `dim:extent@unit`, outermost first.

const MOST_LOOPS = 1000;
// White space as Python's \s has it.
const BLANKS =
  "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

// Other people's names for the dimensions of a convolution, case folded.
const CONV_ALIASES = {
  N: "b batch on",
  G: "group groups",
  K: "m oc ok cout out_channels",
  C: "ic cin in_channels",
  P: "y oy oh height out_height",
  Q: "x ox ow width out_width",
  R: "fy fh kh ky filter_h filter_height",
  S: "fx fw kw kx filter_w filter_width",
};

/** Read a schedule from text: plain data; throws with every fault found. */
function parseSchedule(text, problem) {
  if (typeof text !== "string") {
    throw new LoopschedError(`schedule is ${show(text)}; text is needed, such as 'M:128 K:64'`);
  }
  const dims = problem.sizes.map(([dim]) => dim);
  const names = namesOf(problem.kind, dims);
  const tokens = tokensOf(text);
  if (tokens.length > MOST_LOOPS) {
    throw new LoopschedError(
      `schedule: ${tokens.length} loops; at most ${MOST_LOOPS} are allowed`
    );
  }
  const read = tokens.map((token) => readLoop(token, names, dims));
  const faults = read.flatMap((one) => one.faults);
  faults.push(...growthFaults(read), ...textCoverageFaults(read, problem));
  if (faults.length) throw joined(`schedule for '${problem.name}'`, faults);
  return {
    loops: read.map(({ dim, extent, unit }) => {
      const loop = { dim, extent: Number(extent) };
      return unit === null ? loop : { ...loop, unit };
    }),
  };
}

/** The names that a text may use: as they are, and folded. */
function namesOf(kind, dims) {
  const small = dims.map((dim) => dim.toLowerCase());
  const folded = new Map();
  if (kind === "conv2d") {
    for (const [dim, aliases] of Object.entries(CONV_ALIASES)) {
      if (dims.includes(dim)) for (const alias of aliases.split(" ")) folded.set(alias, dim);
    }
  }
  dims.forEach((dim, d) => {
    if (small.filter((one) => one === small[d]).length === 1) folded.set(small[d], dim);
  });
  return (word) => (dims.includes(word) ? word : folded.get(word.toLowerCase()) || null);
}

/** Cut the text into loops, each with its place. */
function tokensOf(text) {
  const stripped = text.replace(new RegExp(`^[${BLANKS}]+|[${BLANKS}]+$`, "g"), "");
  const hasLines = stripped.includes("\n");
  return [...text.matchAll(new RegExp(`[^${BLANKS},]+`, "g"))].map((match, i) => {
    const line = text.slice(0, match.index).split("\n").length;
    const where = hasLines ? `line ${line}, loop ${i}` : `loop ${i}`;
    return { place: `${where} ${show(match[0])}`, word: match[0] };
  });
}

/** The text before and after the first mark, and whether there is one. */
function parted(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, false, ""] : [text.slice(0, at), true, text.slice(at + 1)];
}

function readLoop({ place, word }, names, dims) {
  const [head, hasUnit, unit] = parted(word, "@");
  const [name, hasColon, digits] = parted(head, ":");
  if (!hasColon) {
    const faults = [`${place}: ${notALoop(head, names)}`];
    return { place, dim: null, extent: null, unit: null, faults };
  }
  const faults = [];
  const dim = names(name);
  if (dim === null) {
    const short = [...name].slice(0, 40).join("");
    faults.push(`${place}: unknown dim ${show(name)}; ${nearest(short, dims)}`);
  }
  const extent = /^[0-9]{1,18}$/.test(digits) ? BigInt(digits) : 0n;
  if (extent < 1n) {
    faults.push(
      `${place}: extent is ${show(digits)}; a whole number from 1 to the dimension's size is needed`
    );
  }
  if (hasUnit && !isIdentifier(unit)) {
    faults.push(
      `${place}: unit is ${show(unit)}; name the level whose instances run the loop, as in '@SM'`
    );
  }
  return { place, dim, extent: extent || null, unit: hasUnit ? unit : null, faults };
}

function notALoop(head, names) {
  const glued = [...head].slice(0, 40).join("").match(/^(\p{L}+)([0-9]+)$/u);
  if (glued && names(glued[1]) !== null) {
    return `no ':'; did you mean '${glued[1]}:${glued[2]}'?`;
  }
  return "not a loop; write dim:extent or dim:extent@unit, such as 'K:64' or 'K:64@SM'";
}

function growthFaults(read) {
  const faults = [];
  const outer = new Map();
  for (const { place, dim, extent } of read) {
    if (dim === null || extent === null) continue;
    const bound = outer.has(dim) ? outer.get(dim) : extent;
    if (extent > bound) {
      faults.push(`${place}: extent grows inward; the next outer loop covers only ${bound}`);
    }
    outer.set(dim, bigSmaller(bound, extent));
  }
  return faults;
}

function textCoverageFaults(read, problem) {
  const faults = [];
  for (const [dim, size] of problem.sizes) {
    const ours = read.filter((one) => one.dim === dim);
    // A dimension whose extent is not readable has one fault already.
    if (ours.some((one) => one.extent === null)) continue;
    if (!ours.length) {
      if (size > 1) faults.push(`dim '${dim}' (size ${size}) has no loop; add '${dim}:${size}'`);
    } else if (ours[0].extent !== BigInt(size)) {
      faults.push(
        `${ours[0].place}: the outermost loop of '${dim}' covers ${ours[0].extent}; ` +
          `it must cover the size, '${dim}:${size}'`
      );
    }
  }
  return faults;
}
