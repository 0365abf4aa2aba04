// @ts-check
// What two settings lose of the same numbers, side by side.

import {Refused, errorText, getSlice, placeText} from './api.js';
import {show} from './dom.js';
import {HeatMap, groupOf, mapColor, mix, outlierOf} from './heat_map.js';

/**
 * @typedef {import('./api.js').Slice} Slice
 * @typedef {import('./api.js').Head} Head
 */

const kTokens = 24;
const kChannels = 16;
const kBlockChannels = 32;
/** The settings and what each groups by at first. */
const kSettings = {a: 'tok', b: 'ch'};
/** Rules for scales of levels within a range, and of Lloyd-Max levels. */
const kRangeRules = ['clip0.9', 'mse'];
const kNormalRules = ['norm', 'ub'];

const tokenSlider = /** @type {HTMLInputElement} */ (document.querySelector('[name=token]'));
const valueMap = new HeatMap('value-map');
/** @type {Record<string, HeatMap>} */
const errorMaps = {a: new HeatMap('a-map'), b: new HeatMap('b-map')};
addControls();

/**
 * Whether a side of these choices knows a mean that it can subtract.
 * @param {URLSearchParams} state
 * @param {string} setting
 */
function canCenter(state, setting) {
  return state.get('side') === 'K' && state.get(`${setting}_group`) !== 'ch';
}

/**
 * The text of a side of a recipe.
 * @param {URLSearchParams} state
 * @param {string} setting
 */
function codeOf(state, setting) {
  const get = (/** @type {string} */ field) => state.get(`${setting}_${field}`);
  const center = get('mu') && canCenter(state, setting) ? 'mu:' : '';
  const rotate = get('had') ? 'had:' : '';
  const rule = get('rule') ? `:${get('rule')}` : '';
  return `${center}${rotate}${get('levels')}${get('bits')}/${get('group')}${rule}`;
}

function addControls() {
  const template = /** @type {HTMLTemplateElement} */ (document.getElementById('setting'));
  for (const [setting, group] of Object.entries(kSettings)) {
    const copy = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
    copy.querySelector('legend').textContent = `Setting ${setting.toUpperCase()}`;
    copy.querySelector('code').className = `${setting}-code`;
    for (const control of copy.querySelectorAll('select, input')) {
      const {field} = /** @type {HTMLElement} */ (control).dataset;
      control.setAttribute('name', `${setting}_${field}`);
    }
    copy.querySelector('select').value = group;
    document.getElementById('settings').append(copy);
  }
}

/**
 * Only what goes together can be chosen.
 * @param {URLSearchParams} state
 */
function limitChoices(state) {
  tokenSlider.disabled = false;
  for (const setting of Object.keys(kSettings)) {
    const find = (/** @type {string} */ rest) =>
      /** @type {HTMLInputElement} */ (document.querySelector(`[name=${setting}_${rest}`));
    find('mu]').disabled = !canCenter(state, setting);
    const normal = state.get(`${setting}_levels`) === 'lm';
    const rule = state.get(`${setting}_rule`);
    find('bits] [value="8"]').disabled = normal;
    find('levels] [value=lm]').disabled =
      state.get(`${setting}_bits`) === '8' || kRangeRules.includes(rule);
    for (const levels of ['u', 'i']) {
      find(`levels] [value=${levels}]`).disabled = kNormalRules.includes(rule);
    }
    for (const other of kRangeRules) find(`rule] [value="${other}"]`).disabled = normal;
    for (const other of kNormalRules) find(`rule] [value="${other}"]`).disabled = !normal;
  }
}

/**
 * @param {Head} head
 * @param {URLSearchParams} state
 * @returns {import('./api.js').Part}
 */
function partOf(head, state) {
  const number = (/** @type {string} */ name) => Number(state.get(name));
  const groups = Object.keys(kSettings).map((setting) => state.get(`${setting}_group`));
  const wanted = groups.includes('tok32') ? kBlockChannels : kChannels;
  const channels = Math.min(wanted, head.dim);
  const captured = head.source.captured_tokens;
  const tokens = Math.min(kTokens, captured);
  return {
    token: Math.min(number('token'), captured - tokens),
    tokens,
    channel: Math.min(number('channel'), head.dim - channels),
    channels,
    exact: number('exact'),
    sink: number('sink'),
  };
}

/**
 * The largest magnitude, never 0, since colours are shares of it.
 * @param {Float32Array} values
 */
function largest(values) {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), Number.MIN_VALUE);
}

/** @param {Slice} slice */
function drawValues(slice) {
  const zero = mapColor('zero');
  const positive = mapColor('positive');
  const negative = mapColor('negative');
  const {values} = slice;
  const most = largest(values);
  valueMap.draw(
    slice,
    (i) => mix(zero, values[i] < 0 ? negative : positive, Math.sqrt(Math.abs(values[i]) / most)),
    `The numbers of tokens ${slice.tokens.join(' to ')}, ` +
      `channels ${slice.channels.join(' to ')}; ` +
      `the largest magnitude is ${most.toFixed(2)}.`,
  );
}

/** @param {Slice} slice */
function errorsOf(slice) {
  return slice.values.map((value, i) => Math.abs(value - slice.read[i]));
}

/**
 * @param {string} setting
 * @param {Slice} slice
 * @param {number} most the error that has the full colour
 */
function drawErrors(setting, slice, most) {
  const zero = mapColor('zero');
  const full = mapColor('error');
  const errors = errorsOf(slice);
  const [code] = slice.codes;
  const text =
    `Relative error ${errorText(code.relative_error)}, ` +
    `whole head ${errorText(code.head_relative_error)}.`;
  const map = errorMaps[setting];
  map.draw(slice, (i) => mix(zero, full, Math.sqrt(errors[i] / most)), `${code.code}: ${text}`);
  const outlier = outlierOf(slice);
  if (outlier) map.mark('group', groupOf(code, outlier));
  show(`${setting}-text`, text);
}

/**
 * What keys and values are like, and whether this head is.
 * @param {Head} head
 */
function lesson(head) {
  const token = errorText(head.token_error);
  const channel = errorText(head.channel_error);
  const errors =
    `In 2 bits the whole head loses ${token} with a scale for each token, ` +
    `${channel} with one for each channel.`;
  const keys = head.side === 'K';
  const usual = keys
    ? head.channel_error < head.token_error
    : head.token_error < head.channel_error;
  if (!usual) return `${errors} This head is an exception among ${keys ? 'keys' : 'values'}.`;
  return keys
    ? `${errors} Keys have channels that are large in every token; a scale for each channel ` +
        'keeps them apart from the others.'
    : `${errors} Values turn the order around: some tokens are larger than others, and a scale ` +
        'for each token follows that.';
}

export const slice = {
  /** @param {import('./api.js').Request} request */
  async update({state, head, signal}) {
    limitChoices(state);
    const part = partOf(head, state);
    show('token-text', `${part.token}`);
    show('channel-text', `${part.channel}`);
    show('exact-text', `${part.exact}`);
    show('sink-text', `${part.sink}`);
    show('slice-place', placeText(head, part));
    show('lesson', lesson(head));

    /** @type {Map<string, Slice>} */
    const slices = new Map();
    await Promise.all(
      Object.keys(kSettings).map(async (setting) => {
        const code = codeOf(state, setting);
        for (const place of document.querySelectorAll(`.${setting}-code`)) place.textContent = code;
        try {
          slices.set(setting, await getSlice(head, part, code, signal));
        } catch (error) {
          if (!(error instanceof Refused)) throw error;
          errorMaps[setting].refuse(error.message);
          show(`${setting}-text`, '');
        }
      }),
    );
    const most = Math.max(...[...slices.values()].map((of) => largest(errorsOf(of))));
    for (const [setting, of] of slices) {
      drawValues(of);
      drawErrors(setting, of, most);
    }
  },
};
