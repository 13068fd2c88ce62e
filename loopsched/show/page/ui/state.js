// What is chosen: a layer, the schedule of each, and how the overview is shown. The address holds the first two.

const DATA = JSON.parse(byId('data').textContent);
const LAYERS = DATA.layers;
const BOUNDARIES = DATA.boundaries;

const state = {
  layer: 0,
  text: LAYERS[0].found[0].schedule,
  fault: '', // what is wrong with the text that is written, or with the schedule
  sort: { key: 'number', down: false },
  filter: '',
  bound: '',
  boundary: 0,
  unit: 'time',
};
const texts = LAYERS.map((one) => one.found[0].schedule);
const histories = LAYERS.map(() => ({ undo: [], redo: [] }));
const watchers = [];

function watch(what, redraw) {
  watchers.push([what, redraw]);
}

function changed(...what) {
  for (const [wanted, redraw] of watchers) {
    if (what.some((one) => wanted.includes(one))) redraw();
  }
}

function layer() {
  return LAYERS[state.layer];
}

function best() {
  return layer().found[0];
}

// A layer, with the schedule that it had last unless another is given.
function chooseLayer(index, text = texts[index]) {
  state.layer = index;
  take(text, true);
  writeAddress();
  changed('layer', 'schedule');
}

// Another schedule of this layer; `step` false where it is no step of its own to undo.
function chooseSchedule(text, { step = true } = {}) {
  if (text === state.text && !state.fault) return;
  take(text, step);
  writeAddressSoon();
  changed('schedule');
}

function take(text, step) {
  const history = histories[state.layer];
  if (step && text !== texts[state.layer]) {
    history.undo.push(texts[state.layer]);
    history.redo.length = 0;
  }
  texts[state.layer] = text;
  state.text = text;
  rescore();
}

function stepBack() {
  const { undo, redo } = histories[state.layer];
  if (!undo.length) return;
  redo.push(state.text);
  chooseSchedule(undo.pop(), { step: false });
}

function stepForward() {
  const { undo, redo } = histories[state.layer];
  if (!redo.length) return;
  undo.push(state.text);
  chooseSchedule(redo.pop(), { step: false });
}

// ---- address

function addressOf(index, text) {
  const parts = [`layer=${LAYERS[index].number}`];
  if (text !== LAYERS[index].found[0].schedule) {
    parts.push(`schedule=${encodeURIComponent(text).replace(/%20/g, '+').replace(/%3A/g, ':').replace(/%40/g, '@')}`);
  }
  return `#${parts.join('&')}`;
}

// Browsers allow an address few changes a second; a stroke of a slider makes many.
let addressTimer = 0;

function writeAddressSoon() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(writeAddress, 150);
}

function writeAddress() {
  clearTimeout(addressTimer);
  try {
    history.replaceState(null, '', addressOf(state.layer, state.text));
  } catch {
    // Some browsers hold the address of a file fixed; the page works without.
  }
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (!given.has('layer')) return null;
  const index = LAYERS.findIndex((one) => String(one.number) === given.get('layer'));
  if (index < 0) return { index: 0, fault: `no layer ${given.get('layer').slice(0, 20)} in these results` };
  const text = given.get('schedule');
  if (!text) return { index, text: LAYERS[index].found[0].schedule };
  try {
    return { index, text: plain(text, index) };
  } catch {
    return { index, text };
  }
}

// A schedule of a layer from text; throws with all that is wrong.
function parsed(text, index = state.layer) {
  return Loopsched.parseSchedule(text, LAYERS[index].problem);
}

// The schedule as the library writes it.
function plain(text, index) {
  return Loopsched.formatSchedule(parsed(text, index));
}

// What leads from the best schedule of the layer to another; null if moves cannot.
function movesTo(schedule) {
  return Loopsched.moves(parsed(best().schedule), schedule);
}

function isReadable(text) {
  try {
    return plain(text, state.layer) === text;
  } catch {
    return false;
  }
}

// ---- scores, kept by schedule

const scores = new Map();

function score(index, text) {
  const key = `${index} ${text}`;
  if (!scores.has(key)) {
    const schedule = parsed(text, index);
    if (scores.size > 500) scores.clear();
    scores.set(key, { schedule, evaluation: Loopsched.evaluate(LAYERS[index].problem, schedule, DATA.arch) });
  }
  return scores.get(key);
}

// The score of what is chosen, or of the last schedule of the layer that could be scored.
let lastGood = null;

function rescore() {
  state.fault = '';
  try {
    lastGood = { layer: state.layer, text: state.text, ...score(state.layer, state.text) };
  } catch (error) {
    state.fault = error.message || String(error);
    if (!lastGood || lastGood.layer !== state.layer) {
      lastGood = { layer: state.layer, text: best().schedule, ...score(state.layer, best().schedule) };
    }
  }
}

function current() {
  if (!lastGood) rescore();
  return lastGood;
}
