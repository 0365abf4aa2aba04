// @ts-check
// Which numbers of a head share a scale.

import {Refused, channelsOf, errorText, getSlice, placeText, tokensOf} from './api.js';
import {show} from './dom.js';
import {HeatMap, groupOf, mapColor, mix, outlierOf, stretchesOf} from './heat_map.js';

/**
 * @typedef {import('./api.js').Slice} Slice
 * @typedef {import('./api.js').Code} Code
 * @typedef {import('./api.js').Head} Head
 * @typedef {import('./heat_map.js').Area} Area
 * @typedef {import('./heat_map.js').Cell} Cell
 *
 * A slice and what is known of it before it is drawn: its largest number, and of every token and
 * channel the group that it is in.
 * @typedef {{slice: Slice, code: Code, outlier: Cell, down: Int32Array, across: Int32Array}} Shown
 */

const kMostChannels = 64;
const kTints = ['tint-0', 'tint-1', 'tint-2'];

const kNoCache = 'No cache here keeps integers so; u4 shows what they would lose.';
/**
 * What scales are counted by, down and across; and who groups so.
 * @type {Record<string, {down: string, across: string, users: string}>}
 */
const kGroupings = {
  tok: {
    down: 'tokens',
    across: 'head (several heads: as many each)',
    users: 'LMDeploy and vLLM, for keys and values; KVQuant, for values.',
  },
  ch: {
    down: 'pages of 128 tokens',
    across: 'channels',
    users: 'KVQuant, for keys; Shorthand’s own presets 4bit, 3bit and 2bit, for keys.',
  },
  tok32: {
    down: 'tokens',
    across: 'blocks of 32 channels',
    users: 'llama.cpp’s q8_0 and q4_0, for keys and values; KIVI, for values.',
  },
  ch32: {
    down: 'pieces of 32 tokens',
    across: 'channels',
    users: 'KIVI, for keys.',
  },
  page: {
    down: 'pages of 128 tokens',
    across: 'head (several heads: as many each)',
    users: `8-bit floats here: fp8_e4m3 is e4m3/page. ${kNoCache}`,
  },
  layer: {
    down: 'for all tokens',
    across: 'for all heads',
    users: `8-bit floats in vLLM, with one scale for the tensor. ${kNoCache}`,
  },
};

const tokenSlider = /** @type {HTMLInputElement} */ (document.querySelector('[name=token]'));
const map = new HeatMap('group-map', 'application');
map.canvas.tabIndex = 0;
map.canvas.setAttribute('aria-roledescription', 'heat map');

/** @type {Shown?} */
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

/** @param {number} count */
function countText(count) {
  return count.toLocaleString('en');
}

/** @param {Shown} of */
function draw({slice, code, outlier, down, across}) {
  const cell = pointed ?? outlier;
  const lit = groupOf(code, cell);
  const zero = mapColor('zero');
  const colors = kTints.map(mapColor).map((tint) => [mix(zero, tint, 0.25), mix(zero, tint, 0.9)]);
  const all = {token: 0, channel: 0, tokens: tokensOf(slice), channels: channelsOf(slice)};
  const [litDown, litAcross] = [down[cell.token], across[cell.channel]];
  map.draw(
    slice,
    (_, token, channel) => {
      const [d, a] = [down[token], across[channel]];
      return colors[(d + a) % colors.length][d === litDown && a === litAcross ? 1 : 0];
    },
    `${areaText(slice, all)}, by groups. The largest number shares its scale with ` +
      `${areaText(slice, groupOf(code, outlier))}. Arrow keys go from number to number.`,
  );
  map.mark('star', {...outlier, tokens: 1, channels: 1}, '★');
  if (pointed) map.mark('caret', {...pointed, tokens: 1, channels: 1});

  const value = slice.values[cell.token * all.channels + cell.channel].toFixed(2);
  const place = areaText(slice, {...cell, tokens: 1, channels: 1});
  const number = `The number at ${place} is ${value}${pointed ? '' : ', the largest'}.`;
  show('caret-text', `${number} Its group: ${areaText(slice, lit)}.`);
  show('shared', countText(lit.tokens * lit.channels));
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
    token: part((event.clientY - box.top) / box.height, tokensOf(shown.slice)),
    channel: part((event.clientX - box.left) / box.width, channelsOf(shown.slice)),
  };
}

/** @param {KeyboardEvent} event */
function moveCaret(event) {
  if (!shown) return;
  const {token, channel} = pointed ?? shown.outlier;
  const lastToken = tokensOf(shown.slice) - 1;
  const lastChannel = channelsOf(shown.slice) - 1;
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
  map.element.querySelector('.caret')?.scrollIntoView({block: 'nearest', inline: 'nearest'});
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

/**
 * @param {URLSearchParams} state
 * @param {Head} head
 * @returns {import('./api.js').Part}
 */
function partOf(state, head) {
  const captured = head.source.captured_tokens;
  if (state.get('rows') === 'all') {
    return {token: 0, tokens: captured, channel: 0, channels: head.dim};
  }
  const tokens = Math.min(Number(state.get('rows')), captured);
  const channels = Math.min(kMostChannels, head.dim);
  const loudest = Math.floor((head.first_channel ?? 0) / channels) * channels;
  return {
    token: Math.min(Number(state.get('token')), captured - tokens),
    tokens,
    channel: Math.min(loudest, head.dim - channels),
    channels,
  };
}

/**
 * @param {Code} code
 * @param {string} by
 */
function showFigures(code, by) {
  show('shared-in-head', countText(code.head_group));
  show('head-scales', countText(code.head_scales));
  show('scale-bits', `${Number((code.scale_bits / code.head_group).toFixed(3))}`);
  show('grouping-error', errorText(code.relative_error));
  show('grouping-head-error', errorText(code.head_relative_error));
  const [down, across] = code.scales_4096;
  const {down: downText, across: acrossText} = kGroupings[by];
  show(
    'layer-scales',
    `A layer of 4096 tokens and 4096 channels, taken as one head, has ` +
      `${countText(down * across)} ${down * across === 1 ? 'scale' : 'scales'}: ` +
      `${countText(down)} ${downText} × ${countText(across)} ${acrossText}.`,
  );
}

export const grouping = {
  /** @param {import('./api.js').Request} request */
  async update({state, head, signal}) {
    const part = partOf(state, head);
    const by = state.get('grouping');
    show('token-text', `${part.token}`);
    tokenSlider.disabled = part.tokens === head.source.captured_tokens;
    show('grouping-place', `${placeText(head, part)} In 4 bits.`);
    show('grouping-users', `Who groups so: ${kGroupings[by].users}`);
    try {
      const slice = await getSlice(head, part, `u4/${by}`, signal);
      const [code] = slice.codes;
      shown = {
        slice,
        code,
        outlier: outlierOf(slice),
        down: stretchesOf(code.token_edges, part.tokens),
        across: stretchesOf(code.channel_edges, part.channels),
      };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      shown = null;
      map.refuse(error.message);
    }
    document.getElementById('grouping-results').hidden = !shown;
    if (!shown) return;
    if (pointed && (pointed.token >= part.tokens || pointed.channel >= part.channels)) {
      pointed = null;
    }
    showFigures(shown.code, by);
    draw(shown);
  },
};
