// Keys and words, in a dialog.

const KEYS = [
  ['?', 'this list'],
  ['/', 'filter the layers'],
  ['j  k', 'next, previous layer'],
  ['↑ ↓  Page  Home  End', 'in the table: choose a layer'],
  ['Enter', 'in the table and the roofline: open the layer'],
  ['← →', 'in the roofline: next point; at a slider: next tile size'],
  ['Alt+↑  Alt+↓', 'in a loop’s row: move the loop outward, inward'],
  ['Ctrl+Z  Ctrl+Shift+Z', 'undo, redo a change of the schedule'],
  ['Esc', 'close this list; leave the filter'],
];

const TERMS = [
  ['time', 'what the schedule promises: guaranteed traffic, sustained clock and bandwidths.'],
  ['at least', 'no run of this schedule is faster: unavoidable traffic, highest clock.'],
  ['bound by', 'what takes the longest: the arithmetic, or what a level delivers.'],
  ['needs', 'the memory bandwidth at which the arithmetic would not wait.'],
  ['units', 'the share of the units’ time that is useful work.'],
  ['gap', 'how far the schedule may be above the least that is possible; 0 is proven.'],
  ['working set', 'what a level holds at a time: the largest body of loops that fits.'],
  ['M:128@SM', 'a loop that covers 128 of M; @SM: the units SM share its iterations.'],
];

function listOf(pairs, tag) {
  return el('dl', { class: 'terms' }, pairs.flatMap(([term, text]) => [
    el('dt', {}, tag === 'kbd' ? term.split('  ').flatMap((one, place) => [place ? ' ' : '', el('kbd', {}, one)]) : term),
    el('dd', {}, text)]));
}

function startHelp() {
  const dialog = byId('help');
  byId('help-body').replaceChildren(listOf(KEYS, 'kbd'), el('h3', {}, 'Words'), listOf(TERMS));
  byId('help-open').addEventListener('click', () => dialog.showModal());
  byId('help-close').addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  document.addEventListener('keydown', pageKeys);
}

// A field takes back what is typed in it; a loop's, once that is done, leaves it to the page.
function hasOwnUndo(field) {
  if (!isTyping(field) || field.matches('select')) return false;
  return !byId('loops').contains(field) || field.value !== field.defaultValue;
}

function pageKeys(event) {
  if (event.key === 'Escape' && event.target === byId('filter')) byId('layers-title').focus();
  if (byId('help').open) return;
  const typing = isTyping(event.target);
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'z' && !hasOwnUndo(event.target)) {
    event.preventDefault();
    (event.shiftKey ? stepForward : stepBack)();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const acts = {
    '?': () => byId('help').showModal(),
    '/': () => byId('filter').focus(),
    j: () => byId('layer-next').click(),
    k: () => byId('layer-previous').click(),
  };
  if (event.key in acts) {
    event.preventDefault();
    acts[event.key]();
  }
}
