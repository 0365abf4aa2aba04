// @ts-check
// The page: its state, which lies in the controls and in the address, and the view that is shown.

import {getInfo, getResults} from './api.js';
import {grouping} from './grouping.js';
import {setUpLive} from './live.js';
import {memory} from './memory.js';
import {klReportName, recipes, speedReportName} from './recipes.js';
import {slice} from './slice.js';

/**
 * @typedef {import('./api.js').Head} Head
 * @typedef {import('./api.js').Info} Info
 * @typedef {import('./api.js').Source} Source
 * @typedef {HTMLInputElement | HTMLSelectElement} Control
 */

/** @type {Record<string, {update: (request: import('./api.js').Request) => Promise<void>}>} */
const kViews = {memory, grouping, slice, recipes};
const kFirstView = 'memory';
const kFirstModel = 'Llama-3-8B';
const kChannelStep = 8;
const kRetryMs = 2000;
// Browsers refuse pages that change their address too often.
const kAddressMs = 200;
// A slider asks more often than answers come: without it nothing would show before it rests.
const kGraceMs = 250;

const form = /** @type {HTMLFormElement} */ (document.getElementById('controls'));
const banner = document.getElementById('banner');
const links = /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll('nav a'));

/** @type {Info} */
let info;
/** @type {import('./api.js').Results} */
let results;
let view = kFirstView;
let defaults = new URLSearchParams();
/** @type {AbortController?} */
let running = null;
let startedMs = 0;
let frame = 0;
let graceTimer = 0;
let retryTimer = 0;
let addressTimer = 0;

// State

function controls() {
  return /** @type {Control[]} */ ([...form.querySelectorAll('input, select')]);
}

/** @param {Control} control */
function isChoice(control) {
  return control.type === 'checkbox' || control.type === 'radio';
}

function readControls() {
  const state = new URLSearchParams();
  for (const control of controls()) {
    if (isChoice(control) && !(/** @type {HTMLInputElement} */ (control).checked)) continue;
    const power = 'powerOfTwo' in control.dataset;
    state.append(control.name, power ? String(2 ** Number(control.value)) : control.value);
  }
  return state;
}

/**
 * A value that a control does not know leaves it as it is.
 * @param {URLSearchParams} state
 */
function writeControls(state) {
  for (const control of controls()) {
    const values = state.getAll(control.name);
    const [value = ''] = values;
    if (isChoice(control)) {
      const box = /** @type {HTMLInputElement} */ (control);
      if (control.type === 'checkbox') box.checked = values.includes(control.value);
      else if (values.includes(control.value)) box.checked = true;
    } else if (control.type === 'hidden') {
      control.value = value;
    } else if (control instanceof HTMLSelectElement) {
      if ([...control.options].some((option) => option.value === value)) control.value = value;
    } else if (value !== '' && Number.isFinite(Number(value))) {
      control.value = 'powerOfTwo' in control.dataset ? String(Math.log2(Number(value))) : value;
    }
  }
}

/**
 * @param {Element} element
 * @param {string} name
 */
function belongsTo(element, name) {
  const place = /** @type {HTMLElement} */ (element.closest('[data-for]'));
  return place.dataset.for.split(' ').includes(name);
}

/**
 * The address of a view: its own settings, and what was changed in the others.
 * @param {string} name
 * @param {URLSearchParams} state
 */
function addressOf(name, state) {
  const address = new URLSearchParams();
  for (const control of controls()) {
    if (address.has(control.name)) continue;
    const values = state.getAll(control.name);
    const changed = String(values) !== String(defaults.getAll(control.name));
    if (!changed && !belongsTo(control, name)) continue;
    for (const value of values.length > 0 ? values : ['']) address.append(control.name, value);
  }
  return `#${name}?${address}`;
}

function readAddress() {
  const [name, query] = location.hash.slice(1).split('?');
  view = Object.hasOwn(kViews, name) ? name : kFirstView;
  write(new URLSearchParams(query), defaults);
}

/**
 * @param {URLSearchParams} given
 * @param {URLSearchParams} otherwise what is not given
 */
function write(given, otherwise) {
  const rest = [...otherwise].filter(([key]) => !given.has(key));
  const state = new URLSearchParams([...given, ...rest]);
  writeControls(state);
  fitRanges();
  writeControls(state);
  const head = headOf(readControls());
  if (given.has('channel')) showHead(head);
  else choose(head);
}

// Heads

/** @param {URLSearchParams} state */
function sourceOf(state) {
  return info.sources.find((source) => source.name === state.get('source')) ?? info.sources[0];
}

/** Sliders reach as far as the chosen source has tokens and channels. */
function fitRanges() {
  const source = sourceOf(readControls());
  const channels = Math.max(source.dim_k, source.dim_v);
  /** @type {HTMLInputElement} */ (control('token')).max = String(source.captured_tokens - 1);
  /** @type {HTMLInputElement} */ (control('channel')).max = String(channels - kChannelStep);
}

/**
 * How much more the side's unusual grouping loses than its usual one.
 * @param {Head} head
 */
function contrast(head) {
  const ratio = head.token_error / head.channel_error;
  return head.side === 'K' ? ratio : 1 / ratio;
}

/**
 * The heads of a side, those first that show best how it is shaped.
 * @param {Source} source
 * @param {string} side
 */
function ranked(source, side) {
  const heads = source.heads.filter((head) => head.side === side);
  return heads.sort((a, b) => contrast(b) - contrast(a));
}

/**
 * @param {string} name
 * @returns {Control}
 */
function control(name) {
  return form.querySelector(`[name=${name}]`);
}

/**
 * @param {string} name
 * @param {(string | number)[]} values
 * @param {(string | number)[]} texts
 */
function fill(name, values, texts = values) {
  const options = values.map((value, i) => new Option(String(texts[i]), String(value)));
  control(name).replaceChildren(...options);
}

/** @param {Head} head */
function showHead(head) {
  control('layer').value = String(head.layer);
  control('head').value = String(head.head);
}

/** @param {Head} head */
function choose(head) {
  showHead(head);
  control('channel').value = String(head.first_channel ?? 0);
}

/** @param {Head[]} heads ranked */
function median(heads) {
  return heads[Math.floor((heads.length - 1) / 2)];
}

/**
 * The chosen head, or another of its layer if the layer has no such head.
 * @param {URLSearchParams} state
 */
function headOf(state) {
  const side = ranked(sourceOf(state), state.get('side'));
  const layer = side.filter((head) => head.layer === Number(state.get('layer')));
  return layer.find((head) => head.head === Number(state.get('head'))) ?? layer[0] ?? side[0];
}

/** @param {Head} head */
function showRank(head) {
  const heads = ranked(head.source, head.side);
  document.getElementById('synthetic').hidden = head.source.name !== 'synthetic';
  document.getElementById('heads').hidden = heads.length === 1;
  document.getElementById('rank').textContent =
    `${head.side === 'K' ? 'Keys' : 'Values'}: number ${heads.indexOf(head) + 1} of ` +
    `${heads.length} by contrast, ${contrast(head).toFixed(2)}.`;
}

/** @param {Event} event */
function chooseRanked(event) {
  const {rank} = /** @type {HTMLElement} */ (event.currentTarget).dataset;
  const state = readControls();
  const heads = ranked(sourceOf(state), state.get('side'));
  const chosen = {best: heads[0], median: median(heads), worst: heads[heads.length - 1]};
  choose(chosen[/** @type {keyof chosen} */ (rank)]);
  schedule();
}

/** @param {Event} event */
function chooseSettings(event) {
  const button = /** @type {HTMLElement} */ (event.currentTarget);
  const common = /** @type {HTMLElement} */ (button.closest('fieldset')).dataset.set;
  const before = readControls();
  write(new URLSearchParams(`${common}&${button.dataset.set}`), before);
  const state = readControls();
  if (sourceOf(state) !== sourceOf(before) && state.get('source') === 'model') {
    choose(median(ranked(sourceOf(state), state.get('side'))));
  }
  schedule();
}

/** @param {Event} event */
function changed(event) {
  const {name} = /** @type {Control} */ (event.target);
  if (name === 'source') {
    const state = readControls();
    fitRanges();
    choose(median(ranked(sourceOf(state), state.get('side'))));
  }
  if (['side', 'layer', 'head'].includes(name)) choose(headOf(readControls()));
  schedule();
}

// Showing

/** Shows the state with the next frame, or when what runs has had its time. */
function schedule() {
  cancelAnimationFrame(frame);
  clearTimeout(graceTimer);
  graceTimer = 0;
  const grace = running ? startedMs + kGraceMs - performance.now() : 0;
  if (grace > 0) graceTimer = setTimeout(schedule, grace);
  else frame = requestAnimationFrame(show);
}

/** @param {unknown} error */
function showFailure(error) {
  const reason = error instanceof Error ? error.message : String(error);
  banner.textContent = `${reason} The page tries again by itself.`;
  banner.hidden = false;
}

/** @param {URLSearchParams} state */
function showView(state) {
  for (const place of document.querySelectorAll('[data-for]')) {
    /** @type {HTMLElement} */ (place).hidden = !belongsTo(place, view);
  }
  for (const link of links) {
    const {view: name} = link.dataset;
    link.href = addressOf(name, state);
    if (name === view) {
      link.setAttribute('aria-current', 'page');
      document.title = `${link.textContent} · Shorthand explorer`;
    } else {
      link.removeAttribute('aria-current');
    }
  }
  clearTimeout(addressTimer);
  const address = addressOf(view, state);
  addressTimer = setTimeout(() => history.replaceState(null, '', address), kAddressMs);
}

/** The newest request wins: what an older one would still have shown is dropped. */
async function show() {
  clearTimeout(retryTimer);
  running?.abort();
  const own = new AbortController();
  const {signal} = own;
  running = own;
  startedMs = performance.now();
  try {
    if (!info) await start(signal);
    const state = readControls();
    const head = headOf(state);
    document.querySelector('main').hidden = false;
    showView(state);
    showRank(head);
    await kViews[view].update({state, info, results, head, signal});
    banner.hidden = true;
  } catch (error) {
    if (signal.aborted) return;
    showFailure(error);
    retryTimer = setTimeout(schedule, kRetryMs);
  } finally {
    if (running === own) {
      running = null;
      if (graceTimer) schedule();
    }
  }
}

/** @param {AbortSignal} signal */
async function start(signal) {
  const [loaded, given] = await Promise.all([getInfo(signal), getResults(signal)]);
  info = loaded;
  results = given;
  const [source] = info.sources;
  if (source.name === 'model') {
    document.getElementById('about').textContent +=
      ` Keys and values: ${source.model_name}, ${source.captured_tokens} tokens of ${source.text}.`;
  } else {
    document.getElementById('sources').remove();
    for (const button of document.querySelectorAll('[data-set^="source=model"]')) button.remove();
  }
  const numbers = (/** @type {'layer' | 'head'} */ of) =>
    [...new Set(source.heads.map((head) => head[of]))].sort((a, b) => a - b);
  fill('model', info.shapes);
  if (info.shapes.includes(kFirstModel)) control('model').value = kFirstModel;
  fill('layer', numbers('layer'));
  fill('head', numbers('head'));
  fill('report', [...results.kl.keys()], results.kl.map(klReportName));
  setUpLive(info);
  fill('speed', [...results.speed.keys()], results.speed.map(speedReportName));
  fitRanges();
  choose(median(ranked(source, 'K')));
  defaults = readControls();
  readAddress();
  form.addEventListener('input', changed);
  for (const button of document.querySelectorAll('[data-rank]')) {
    button.addEventListener('click', chooseRanked);
  }
  for (const button of document.querySelectorAll('button[data-set]')) {
    button.addEventListener('click', chooseSettings);
  }
  addEventListener('hashchange', () => {
    readAddress();
    schedule();
  });
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', schedule);
form.addEventListener('submit', (event) => event.preventDefault());
show();
