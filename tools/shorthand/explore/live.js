// @ts-check
// Recipes that the server measures while the page waits. All pages show the same run.

import {Refused, getLive, startLive, stopLive} from './api.js';
import {show} from './dom.js';

/**
 * @typedef {import('./api.js').Info} Info
 * @typedef {import('./api.js').Live} Live
 */

const kRunningMs = 300;
const kIdleMs = 2000;
/** The value of the report's control. */
export const kLiveReport = 'live';

const view = document.getElementById('recipes');
const form = /** @type {HTMLFormElement} */ (document.getElementById('live-form'));
const field = /** @type {HTMLInputElement} */ (document.getElementById('live-recipe'));
const go = /** @type {HTMLButtonElement} */ (document.getElementById('live-go'));
const stop = /** @type {HTMLButtonElement} */ (document.getElementById('live-stop'));
const progress = /** @type {HTMLProgressElement} */ (document.getElementById('live-progress'));
const reportControl = /** @type {HTMLSelectElement} */ (document.querySelector('[name=report]'));
const rowControl = /** @type {HTMLInputElement} */ (document.querySelector('[name=row]'));

const reportOption = new Option('', kLiveReport);

/** @type {Live} */
let live = {running: null, report: null, error: null};
let refusal = '';
let timer = 0;

/** Has the whole view shown anew, with what the server says by then. */
function showView() {
  rowControl.dispatchEvent(new Event('input', {bubbles: true}));
}

function showRun() {
  const {running} = live;
  go.disabled = running !== null;
  reportOption.disabled = !running && !live.report;
  document.getElementById('live-run').hidden = !running;
  const error = running ? null : refusal || live.error;
  show('live-error', error ?? '');
  document.getElementById('live-error').hidden = !error;
  if (!running) {
    stop.disabled = false;
    return;
  }
  const ready = running.done > 0;
  if (ready) progress.value = running.done;
  else progress.removeAttribute('value');
  const doing = ready
    ? `Measuring ${running.recipe} beside the exact cache.`
    : `Getting ready to measure ${running.recipe}.`;
  show('live-doing', stop.disabled ? 'Stopping.' : doing);
}

/** @param {Live} next */
function take(next) {
  live = next;
  showRun();
  clearTimeout(timer);
  timer = setTimeout(poll, live.running ? kRunningMs : kIdleMs);
}

async function poll() {
  if (view.hidden) return;
  const before = JSON.stringify(live.report);
  try {
    take(await getLive());
  } catch {
    showView(); // which says why
    return;
  }
  if (JSON.stringify(live.report) !== before) showView();
}

/** @param {() => Promise<Live>} ask */
async function command(ask) {
  refusal = '';
  try {
    take(await ask());
  } catch (error) {
    if (error instanceof Refused) refusal = error.message;
    stop.disabled = false;
  }
  showView();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const recipe = field.value.trim();
  command(async () => {
    const started = await startLive(recipe);
    reportControl.value = kLiveReport;
    rowControl.value = recipe;
    return started;
  });
});

stop.addEventListener('click', () => {
  stop.disabled = true;
  command(stopLive);
});

/**
 * Once, when the server is known.
 * @param {Info} info
 */
export function setUpLive({model, presets}) {
  document.getElementById('live-none').hidden = model !== null;
  form.hidden = model === null;
  if (model === null) return;
  reportOption.textContent = `measured here: ${model}`;
  reportControl.append(reportOption);
  const options = presets.map(({name}) => new Option(name, name));
  document.getElementById('live-presets').append(...options);
}

/**
 * Shows what runs, from now on until the view is left.
 * @param {AbortSignal} signal
 * @returns all that was measured
 */
export async function updateLive(signal) {
  take(await getLive(signal));
  return live.report;
}
