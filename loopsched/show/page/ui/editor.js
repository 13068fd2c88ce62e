// The live controls: one row a loop, the text below, undo and back to the best.

function sizesOf(one) {
  return new Map(one.dims);
}

function units(loop) {
  const found = ['', ...DATA.units];
  if (loop.unit && !found.includes(loop.unit)) found.push(loop.unit);
  return found;
}

let shownLoops = [];

function edited(loops, focus) {
  chooseSchedule(Loopsched.formatSchedule({ loops }));
  if (focus) focusIn(focus);
}

function focusIn({ place, what }) {
  const row = byId('loops').children[place];
  if (!row) return;
  let target = row.querySelector(`[data-what="${what}"]`);
  if (target && target.disabled) target = row.querySelector('[data-what="up"]:enabled, [data-what="down"]:enabled, input');
  if (target) target.focus({ preventScroll: false });
}

function drawEditor() {
  const one = layer();
  const holds = byId('loops').contains(document.activeElement) ? document.activeElement : null;
  const sliding = holds && holds.matches('[type=range]');
  byId('undo').disabled = !histories[state.layer].undo.length;
  byId('redo').disabled = !histories[state.layer].redo.length;
  if (document.activeElement !== byId('schedule-text')) byId('schedule-text').value = state.text;
  drawFault();
  const { loops } = parsed(isReadable(state.text) ? state.text : current().text);
  if (sliding && sameShape(loops, shownLoops)) updateRows(loops);
  else {
    const place = holds ? [...byId('loops').children].indexOf(holds.closest('.loop')) : -1;
    drawRowsOf(loops);
    if (loops.length && place >= 0) focusIn({ place: Math.min(place, loops.length - 1), what: holds.dataset.what });
  }
  shownLoops = loops;
  const dims = byId('add-dim');
  const chosen = dims.value;
  byId('add').disabled = one.dims.every(([, size]) => size === 1);
  dims.replaceChildren(...one.dims.filter(([, size]) => size > 1).map(([dim]) => el('option', { value: dim, ...(dim === chosen ? { selected: true } : {}) }, dim)));
}

function drawFault() {
  byId('schedule-fault').textContent = state.fault;
  byId('schedule-text').setAttribute('aria-invalid', state.fault ? 'true' : 'false');
  byId('reset').disabled = state.text === best().schedule && !state.fault;
}

function sameShape(a, b) {
  return a.length === b.length && a.every((loop, place) => loop.dim === b[place].dim && loop.unit === b[place].unit);
}

function around(loops, place) {
  for (let outer = place - 1; outer >= 0; outer -= 1) if (loops[outer].dim === loops[place].dim) return loops[outer].extent;
  return sizesOf(layer()).get(loops[place].dim);
}

function isOutermost(loops, place) {
  return !loops.slice(0, place).some((one) => one.dim === loops[place].dim);
}

function tripsText(loops, place) {
  const inner = loops.slice(place + 1).find((one) => one.dim === loops[place].dim);
  const step = inner ? inner.extent : 1;
  const trips = Math.ceil(loops[place].extent / step);
  return `${exact(trips)} ${trips === 1 ? 'trip' : 'trips'} of ${exact(step)}`;
}

function drawRowsOf(loops) {
  byId('loops').replaceChildren(...loops.map((loop, place) => loopRow(loops, loop, place)));
}

function updateRows(loops) {
  loops.forEach((loop, place) => {
    const row = byId('loops').children[place];
    const slider = row.querySelector('[type=range]');
    const number = row.querySelector('[type=number]');
    const list = stops(around(loops, place), loop.extent);
    if (slider !== document.activeElement || slider.stops[slider.value] !== loop.extent) {
      slider.max = list.length - 1;
      slider.value = list.indexOf(loop.extent);
      slider.stops = list;
    }
    slider.setAttribute('aria-valuetext', String(loop.extent));
    number.defaultValue = loop.extent;
    number.value = loop.extent;
    number.max = around(loops, place);
    row.querySelector('.trips').textContent = tripsText(loops, place);
  });
}

function loopRow(loops, loop, place) {
  const most = around(loops, place);
  const fixed = isOutermost(loops, place);
  const list = stops(most, loop.extent);
  const name = `${loop.dim}, loop ${place}`;
  const slider = el('input', {
    type: 'range', min: 0, max: list.length - 1, step: 1, value: list.indexOf(loop.extent), disabled: fixed, 'data-what': 'slider',
    'aria-label': `Tile size of ${name}`, 'aria-valuetext': String(loop.extent),
    oninput: (event) => slide(place, event.target),
  });
  slider.stops = list;
  const number = el('input', {
    type: 'number', min: 1, max: most, value: loop.extent, disabled: fixed, inputmode: 'numeric', 'data-what': 'number',
    'aria-label': `Tile size of ${name}, exact`, title: fixed ? 'the outermost loop covers the whole dimension' : null,
    onchange: (event) => typed(place, event.target),
  });
  const unit = el('select', { 'data-what': 'unit', 'aria-label': `Who runs ${name}`, onchange: (event) => {
    const found = withUnit(shownLoops, place, event.target.value, DATA.units);
    edited(found.loops, { place: found.place, what: 'unit' });
  } }, units(loop).map((one) => el('option', { value: one, ...(one === loop.unit ? { selected: true } : {}) }, one ? `@${one}` : 'in turn')));
  const last = loops.length - 1;
  const only = loops.filter((one) => one.dim === loop.dim).length === 1 && sizesOf(layer()).get(loop.dim) > 1;
  const button = (what, label, sign, disabled, act) => el('button', { type: 'button', class: 'small-button', 'data-what': what, 'aria-label': `${label}: ${name}`, title: label, disabled, onclick: act }, sign);
  return el('li', { class: loop.unit ? 'loop spatial' : 'loop', 'data-place': place, onkeydown: (event) => rowKeys(event, place) },
    el('span', { class: 'handle no-print', 'aria-hidden': 'true', title: 'Drag', onpointerdown: (event) => startDrag(event, place) }, '⠿'),
    el('span', { class: 'order no-print' },
      button('up', 'Move outward', '↑', place === 0, () => move(place, place - 1, 'up')),
      button('down', 'Move inward', '↓', place === last, () => move(place, place + 1, 'down'))),
    el('span', { class: 'dim' }, loop.dim),
    number,
    slider,
    unit,
    el('span', { class: 'trips soft' }, tripsText(loops, place)),
    button('remove', 'Remove', '×', only, () => edited(without(shownLoops, place, sizesOf(layer())), { place: Math.min(place, last - 1), what: 'remove' })));
}

// One stroke of the slider is one step to undo, and changes the loops that it began with.
let strokeOf = null;
let strokeLoops = null;

function slide(place, slider) {
  const extent = slider.stops[Number(slider.value)];
  if (extent === shownLoops[place].extent) return;
  const step = strokeOf !== slider;
  if (step) strokeLoops = shownLoops;
  const loops = withExtent(strokeLoops, place, extent, sizesOf(layer()));
  strokeOf = slider;
  slider.addEventListener('change', () => { strokeOf = null; }, { once: true });
  chooseSchedule(Loopsched.formatSchedule({ loops }), { step });
}

function typed(place, field) {
  const extent = Math.round(Number(field.value));
  const most = Number(field.max);
  const kept = Number.isFinite(extent) ? Math.max(1, Math.min(most, extent)) : shownLoops[place].extent;
  field.value = kept;
  if (kept !== shownLoops[place].extent) {
    const holder = document.activeElement === field;
    edited(withExtent(shownLoops, place, kept, sizesOf(layer())), holder ? { place, what: 'number' } : null);
  }
}

function move(from, to, what) {
  if (to < 0 || to >= shownLoops.length) return;
  const { dim, unit } = shownLoops[from];
  const { loops, place } = moved(shownLoops, from, to, DATA.units);
  edited(loops, { place, what });
  const along = unit && loops.filter((one) => one.unit === unit).length > 1 ? `, with the other loops of ${unit} around it` : '';
  say(`${dim} is now loop ${place}${along}; 0 is the outermost`);
}

function rowKeys(event, place) {
  if (!event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return;
  event.preventDefault();
  const holder = event.target.closest('[data-what]');
  move(place, place + (event.key === 'ArrowUp' ? -1 : 1), holder ? holder.dataset.what : 'number');
}

// ---- dragging, with any pointer

function startDrag(event, from) {
  if (event.button) return;
  event.preventDefault();
  const list = byId('loops');
  const rows = [...list.children];
  const dragged = rows[from];
  const middles = rows.map((row) => { const box = row.getBoundingClientRect(); return box.top + box.height / 2 + scrollY; });
  const size = dragged.getBoundingClientRect().height;
  const start = event.pageY;
  let to = from;
  dragged.classList.add('dragged');
  const follow = (one) => {
    const shift = one.pageY - start;
    const middle = middles[from] + shift;
    to = middles.filter((each, index) => index !== from && each < middle).length;
    dragged.style.transform = `translateY(${shift}px)`;
    rows.forEach((row, index) => {
      if (row === dragged) return;
      const down = index > from && index <= to;
      const up = index < from && index >= to;
      row.style.transform = down ? `translateY(${-size}px)` : up ? `translateY(${size}px)` : '';
    });
  };
  const done = (one) => {
    removeEventListener('pointermove', follow);
    removeEventListener('pointerup', done);
    removeEventListener('pointercancel', done);
    dragged.classList.remove('dragged');
    for (const row of rows) row.style.transform = '';
    if (one.type === 'pointerup' && to !== from) move(from, to, 'slider');
  };
  addEventListener('pointermove', follow);
  addEventListener('pointerup', done);
  addEventListener('pointercancel', done);
}

function startEditor() {
  byId('undo').addEventListener('click', stepBack);
  byId('redo').addEventListener('click', stepForward);
  byId('reset').addEventListener('click', () => chooseSchedule(best().schedule));
  byId('add').addEventListener('click', () => {
    if (byId('add-dim').value) edited(withLoop(shownLoops, byId('add-dim').value, sizesOf(layer())), { place: shownLoops.length, what: 'number' });
  });
  let waiting = 0;
  byId('schedule-text').addEventListener('input', (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => readText(event.target.value), 120);
  });
  byId('schedule-text').addEventListener('change', (event) => {
    clearTimeout(waiting);
    readText(event.target.value);
    if (!state.fault) event.target.value = state.text;  // it may have been read before
  });
  watch(['layer', 'schedule'], drawEditor);
}

// What can be read becomes the schedule; what cannot is said below, and changes nothing but fades the score.
function readText(text) {
  try {
    chooseSchedule(plain(text, state.layer));
  } catch (error) {
    state.fault = error.message || String(error);
    drawFault();
    byId('layer').classList.add('stale');
  }
}
