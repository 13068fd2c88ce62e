// Words of messages, as the library writes them.

/** What a schedule, a problem or a machine that cannot be raises. */
class LoopschedError extends Error {
  constructor(message, problems) {
    super(message);
    this.name = "LoopschedError";
    this.problems = problems && problems.length ? problems : [message];
  }
}

/** One error from all faults of one thing. */
function joined(where, faults) {
  if (faults.length === 1) return new LoopschedError(`${where}: ${faults[0]}`, faults);
  const lines = faults.map((fault) => `  ${fault}`).join("\n");
  return new LoopschedError(`${where}: ${faults.length} errors\n${lines}`, faults);
}

/** Whether a word can be a name in Python. */
function isIdentifier(word) {
  return typeof word === "string" && /^[\p{XIDS}_][\p{XIDC}]*$/u.test(word);
}

function quoted(text) {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let found = "";
  for (const letter of text) {
    const code = letter.codePointAt(0);
    if (letter === quote || letter === "\\") found += `\\${letter}`;
    else if (letter === "\t") found += "\\t";
    else if (letter === "\n") found += "\\n";
    else if (letter === "\r") found += "\\r";
    else if (code < 32 || code === 127) found += `\\x${hex(code, 2)}`;
    else if (code < 127 || !/[\p{C}\p{Z}]/u.test(letter)) found += letter;
    else if (code < 256) found += `\\x${hex(code, 2)}`;
    else if (code < 65536) found += `\\u${hex(code, 4)}`;
    else found += `\\U${hex(code, 8)}`;
  }
  return quote + found + quote;
}

function hex(code, digits) {
  return code.toString(16).padStart(digits, "0");
}

const SHOWN = 60;

/** A value for a message, short whatever it is. */
function show(value) {
  if (typeof value === "bigint" || typeof value === "number") return String(value);
  if (typeof value !== "string") return value === undefined ? "None" : JSON.stringify(value);
  const letters = [...value];
  const whole = quoted(letters.slice(0, SHOWN).join(""));
  if ([...whole].length <= SHOWN) return whole;
  const before = (SHOWN - 3) >> 1;
  const after = SHOWN - 3 - before;
  const cut = [...letters.slice(0, before), ...letters.slice(letters.length - after)];
  const text = [...quoted(cut.join(""))];
  return [...text.slice(0, before), "...", ...text.slice(text.length - after)].join("");
}

/** What was meant and what is allowed, for the end of a message. */
function nearest(word, allowed) {
  const names = [...allowed];
  const folded = new Map(names.map((name) => [name.toLowerCase(), name]));
  const wanted = word.toLowerCase();
  const keys = [...folded.keys()];
  const close =
    alike(wanted, keys, 0.85) ??
    longest(keys.filter((name) => name.length > 2 && wanted.includes(name))) ??
    alike(wanted, keys, 0.5) ??
    keys.find((name) => wanted.length > 2 && name.includes(wanted));
  const listed = `allowed: ${names.join(" ")}`;
  return close === undefined ? listed : `did you mean '${folded.get(close)}'? (${listed})`;
}

/** The name most like a word, if any is so much; of those as near, the last in the alphabet. */
function alike(wanted, names, least) {
  let best;
  let most = least;
  for (const name of names) {
    const found = likeness(name, wanted);
    if (found > most || (found === most && (best === undefined || name > best))) {
      best = name;
      most = found;
    }
  }
  return best;
}

/** The longest of some names, the last of those as long. */
function longest(names) {
  return names.reduce((best, name) => (best && best.length > name.length ? best : name), undefined);
}

/** Share of letters that two words have in common, longest common parts first. */
function likeness(one, other) {
  const a = [...one];
  const b = [...other];
  if (a.length + b.length === 0) return 1;
  return (2 * common(a, 0, a.length, b, 0, b.length)) / (a.length + b.length);
}

function common(a, aLow, aHigh, b, bLow, bHigh) {
  let [bestA, bestB, size] = [aLow, bLow, 0];
  for (let i = aLow; i < aHigh; i++) {
    for (let j = bLow; j < bHigh; j++) {
      let k = 0;
      while (i + k < aHigh && j + k < bHigh && a[i + k] === b[j + k]) k++;
      if (k > size) [bestA, bestB, size] = [i, j, k];
    }
  }
  if (!size) return 0;
  return (
    size +
    common(a, aLow, bestA, b, bLow, bestB) +
    common(a, bestA + size, aHigh, b, bestB + size, bHigh)
  );
}
