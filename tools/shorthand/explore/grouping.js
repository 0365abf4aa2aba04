// @ts-check
// Which numbers of a head share a scale.

import {Refused, channelsOf, errorText, getSlice, tokensOf} from './api.js';
import {show} from './dom.js';
import {HeatMap, groupOf, mapColor, mix, outlierOf} from './heat_map.js';

/**
 * @typedef {import('./api.js').Slice} Slice
 * @typedef {import('./heat_map.js').Area} Area
 * @typedef {import('./heat_map.js').Cell} Cell
 */

const kMostChannels = 64;
const kPageTokens = 128;
const kTints = ['tint-0', 'tint-1', 'tint-2'];

/**
 * How many numbers share a scale in the cache, where pages are complete; and who groups so.
 * @type {Record<string, {numbers: (dim: number) => number, users: string}>}
 */
const kGroupings = {
  tok: {
    numbers: (dim) => dim,
    users: 'LMDeploy and vLLM, for keys and values; KVQuant, for values.',
  },
  ch: {
    numbers: () => kPageTokens,
    users: 'KVQuant, for keys; Shorthand’s own presets 4bit, 3bit and 2bit, for keys.',
  },
  tok32: {
    numbers: () => 32,
    users: 'llama.cpp’s q8_0 and q4_0, for keys and values; KIVI, for values.',
  },
  ch32: {
    numbers: () => 32,
    users: 'KIVI, for keys.',
  },
};

const map = new HeatMap('group-map', 'application');
map.canvas.tabIndex = 0;
map.canvas.setAttribute('aria-roledescription', 'heat map');

/** @type {Slice?} */
let shown = null;
/**
 * The cell under pointer or caret; null: the largest number's.
 * @type {Cell?}
 */
let pointed = null;

/**
 * @param {string} name
 * @param {number} first
 * @param {number} count
 */
function spanText(name, first, count) {
  return count === 1 ? `${name} ${first}` : `${name}s ${first} to ${first + count - 1}`;
}

/**
 * @param {Slice} slice
 * @param {Area} area
 */
function areaText(slice, area) {
  const tokens = spanText('token', slice.tokens[0] + area.token, area.tokens);
  return `${tokens}, ${spanText('channel', slice.channels[0] + area.channel, area.channels)}`;
}

/** @param {Slice} slice */
function draw(slice) {
  const [code] = slice.codes;
  const outlier = outlierOf(slice);
  const cell = pointed ?? outlier;
  const lit = groupOf(slice, code, cell);
  const zero = mapColor('zero');
  const tints = kTints.map(mapColor);
  const all = {token: 0, channel: 0, tokens: tokensOf(slice), channels: channelsOf(slice)};
  map.draw(
    slice,
    (_, at) => {
      const group = groupOf(slice, code, at);
      const isLit = group.token === lit.token && group.channel === lit.channel;
      return mix(zero, tints[group.number % tints.length], isLit ? 0.9 : 0.25);
    },
    `${areaText(slice, all)}, by groups. The largest number shares its scale with ` +
      `${areaText(slice, groupOf(slice, code, outlier))}. Arrow keys go from number to number.`,
  );
  map.mark('star', {...outlier, tokens: 1, channels: 1}, '★');
  if (pointed) map.mark('caret', {...pointed, tokens: 1, channels: 1});

  const value = slice.values[cell.token * all.channels + cell.channel].toFixed(2);
  const place = areaText(slice, {...cell, tokens: 1, channels: 1});
  const number = `The number at ${place} is ${value}${pointed ? '' : ', the largest'}.`;
  show('caret-text', `${number} Its group: ${areaText(slice, lit)}.`);
  show('shared', `${lit.tokens * lit.channels}`);
}

/** @param {Cell?} cell */
function point(cell) {
  pointed = cell;
  if (shown) draw(shown);
}

/** @param {PointerEvent} event */
function cellAt(event) {
  const box = map.canvas.getBoundingClientRect();
  const part = (/** @type {number} */ share, /** @type {number} */ count) =>
    Math.min(count - 1, Math.max(0, Math.floor(share * count)));
  return {
    token: part((event.clientY - box.top) / box.height, tokensOf(shown)),
    channel: part((event.clientX - box.left) / box.width, channelsOf(shown)),
  };
}

/** @param {KeyboardEvent} event */
function moveCaret(event) {
  if (!shown) return;
  const {token, channel} = pointed ?? outlierOf(shown);
  const lastToken = tokensOf(shown) - 1;
  const lastChannel = channelsOf(shown) - 1;
  /** @type {Record<string, Cell?>} */
  const cells = {
    ArrowUp: {token: Math.max(0, token - 1), channel},
    ArrowDown: {token: Math.min(lastToken, token + 1), channel},
    ArrowLeft: {token, channel: Math.max(0, channel - 1)},
    ArrowRight: {token, channel: Math.min(lastChannel, channel + 1)},
    Home: {token, channel: 0},
    End: {token, channel: lastChannel},
    PageUp: {token: 0, channel},
    PageDown: {token: lastToken, channel},
    Escape: null,
  };
  if (!(event.key in cells)) return;
  event.preventDefault();
  point(cells[event.key]);
}

map.canvas.addEventListener('keydown', moveCaret);
map.canvas.addEventListener('blur', () => point(null));
for (const kind of /** @type {const} */ (['pointermove', 'pointerdown'])) {
  map.canvas.addEventListener(kind, (event) => shown && point(cellAt(event)));
}
map.canvas.addEventListener('pointerleave', (event) => {
  // A finger leaves as soon as it is lifted; what it has tapped stays lit.
  if (event.pointerType === 'mouse') point(null);
});

export const grouping = {
  /** @param {import('./api.js').Request} request */
  async update({state, info, head, signal}) {
    const tokens = Math.min(Number(state.get('rows')), info.captured_tokens);
    const token = Math.min(Number(state.get('token')), info.captured_tokens - tokens);
    const channels = Math.min(kMostChannels, head.dim);
    const loudest = Math.floor((head.first_channel ?? 0) / channels) * channels;
    const channel = Math.min(loudest, head.dim - channels);
    const by = state.get('grouping');
    show('token-text', `${token}`);
    show('grouping-users', `Who groups so: ${kGroupings[by].users}`);
    try {
      shown = await getSlice(head, {token, tokens, channel, channels}, `u4/${by}`, signal);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      shown = null;
      map.refuse(error.message);
    }
    document.getElementById('grouping-figures').hidden = !shown;
    if (!shown) return;
    if (pointed && (pointed.token >= tokens || pointed.channel >= channels)) pointed = null;
    const [code] = shown.codes;
    const numbers = kGroupings[by].numbers(head.dim);
    show('shared-in-cache', `${numbers}`);
    show('scale-bits', `${Number((code.scale_bits / numbers).toFixed(3))}`);
    show('grouping-error', errorText(code.relative_error));
    show('grouping-head-error', errorText(code.head_relative_error));
    draw(shown);
  },
};
