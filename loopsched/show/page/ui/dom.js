// Elements without strings of markup, so that no name in the data can become markup.

const SVG = document.querySelector('svg').namespaceURI;

function byId(id) {
  return document.getElementById(id);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [key, one] of Object.entries(value)) node.style.setProperty(key, one);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

function el(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

// A command, broken between its words only, as far as each fits a line.
function commandWords(text) {
  return text.split(' ').flatMap((word, place) => [place ? ' ' : '', el('span', { class: 'word' }, word)]);
}

// A number stays with its unit, as in what the page writes itself.
function unbroken(text) {
  return text.replace(/(\d) (?=(%|[kMGTPµunpm]?i?(B|s|J)(\/s)?)(?!\w))/g, `$1${THIN}`);
}

// Registers hold, L2 holds.
function holds(level) {
  return level.endsWith('s') ? 'hold' : 'holds';
}

function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

// A choice of one among few, as radio buttons that look like one control.
function choice(place, name, options, chosen, onChoose) {
  place.replaceChildren(...options.map(([value, label]) =>
    el('label', {},
      el('input', { type: 'radio', name, value, ...(value === chosen ? { checked: true } : {}), onchange: () => onChoose(value) }),
      el('span', {}, label))));
}

function say(text) {
  byId('said').textContent = text;
}

// The clipboard needs no permission where a page is a file, but may be missing there.
async function copied(text, button) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    const field = el('textarea', { class: 'unseen' });
    field.value = text;
    document.body.append(field);
    field.select();
    done = document.execCommand('copy');
    field.remove();
    button.focus();
  }
  const label = button.dataset.label || button.textContent;
  button.dataset.label = label;
  button.textContent = done ? 'Copied' : 'Select and copy by hand';
  say(done ? 'Copied' : 'Could not copy');
  setTimeout(() => { button.textContent = label; }, 1500);
}

// Ticks of a logarithmic axis: powers of ten, thinned where there are too many, else 1 2 5, or finer.
function ticks(low, high, most) {
  const coarse = marks(low, high, [1, 2, 5]);
  if (coarse.length > most) return decades(low, high, most);
  if (coarse.length > 2) return coarse;
  const finer = [[1, 2, 3, 4, 5, 6, 8], [1, 1.2, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9]];
  const found = finer.map((digits) => marks(low, high, digits)).filter((one) => one.length <= most);
  return found.find((one) => one.length > 2) || found.at(-1) || coarse;
}

function marks(low, high, digits) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    found.push(...digits.map((digit) => Number(`${digit}e${power}`)).filter((value) => value >= low && value <= high));
  }
  return found;
}

function decades(low, high, most) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const found = [];
  for (let power = first; power <= last; power += step) found.push(Number(`1e${power}`));
  return found;
}

// Ticks of capacities: every first, second, fifth or tenth power of two.
function powersOfTwo(low, high, most) {
  const [first, last] = [Math.ceil(Math.log2(low)), Math.floor(Math.log2(high))];
  const every = (step) => Array.from({ length: last - first + 1 }, (_, at) => first + at).filter((power) => power % step === 0);
  const powers = [1, 2, 5, 10].map(every).find((found) => found.length <= most) || every(20);
  return powers.map((power) => 2 ** power);
}

function logScale(low, high, from, to) {
  const [a, b] = [Math.log(low), Math.log(high)];
  return (value) => from + ((Math.log(value) - a) / (b - a)) * (to - from);
}

function isTyping(target) {
  return target instanceof HTMLElement
    && (target.matches('textarea, select') || (target.matches('input') && !target.matches('[type=range], [type=radio]')));
}
