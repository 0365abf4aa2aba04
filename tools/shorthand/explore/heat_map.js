// @ts-check
// A canvas with one pixel for each number, enlarged by CSS, and marks that lie over it.

import {channelsOf, tokensOf} from './api.js';

/**
 * @typedef {import('./api.js').Slice} Slice
 * @typedef {{token: number, channel: number}} Cell  counted from the slice's first ones
 * @typedef {{token: number, channel: number, tokens: number, channels: number}} Area
 * @typedef {Area & {number: number}} Group  neighbouring groups have consecutive numbers
 * @typedef {[number, number, number]} Rgb
 */

/**
 * A colour of the style sheet, which knows light and dark.
 * @param {string} name
 * @returns {Rgb}
 */
export function mapColor(name) {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(`--map-${name}`).trim();
  const part = (/** @type {number} */ at) => parseInt(hex.slice(at, at + 2), 16);
  return [part(1), part(3), part(5)];
}

/**
 * @param {Rgb} from at 0
 * @param {Rgb} to at 1
 * @param {number} share
 * @returns {Rgb}
 */
export function mix(from, to, share) {
  const part = (/** @type {0|1|2} */ i) => from[i] + (to[i] - from[i]) * share;
  return [part(0), part(1), part(2)];
}

/**
 * The place of the largest number among the coded tokens; null if all are exact.
 * @param {Slice} slice
 * @returns {Cell?}
 */
export function outlierOf(slice) {
  const channels = channelsOf(slice);
  const end = (tokensOf(slice) - slice.exact) * channels;
  let at = -1;
  for (let i = slice.sink * channels; i < end; ++i) {
    if (at < 0 || Math.abs(slice.values[i]) > Math.abs(slice.values[at])) at = i;
  }
  return at < 0 ? null : {token: Math.floor(at / channels), channel: at % channels};
}

/**
 * What shares a scale with a cell. Groups along tokens are counted from the last coded token back.
 * @param {Slice} slice
 * @param {import('./api.js').Code} code
 * @param {Cell} cell
 * @returns {Group}
 */
export function groupOf(slice, code, cell) {
  const last = tokensOf(slice) - 1 - slice.exact;
  const down = Math.floor((last - cell.token) / code.group_tokens);
  const across = Math.floor(cell.channel / code.group_channels);
  const end = last - down * code.group_tokens;
  const token = Math.max(slice.sink, end + 1 - code.group_tokens);
  const channel = across * code.group_channels;
  const channels = Math.min(code.group_channels, channelsOf(slice) - channel);
  return {token, channel, tokens: end + 1 - token, channels, number: down + across};
}

export class HeatMap {
  /**
   * @param {string} id of the element that holds it
   * @param {string} role of the canvas
   */
  constructor(id, role = 'img') {
    this.element = /** @type {HTMLElement} */ (document.getElementById(id));
    this.canvas = document.createElement('canvas');
    this.canvas.setAttribute('role', role);
    this.tokens = 1;
    this.channels = 1;
  }

  /**
   * @param {Slice} slice
   * @param {(index: number, cell: Cell) => Rgb} color
   * @param {string} label what someone who does not see it should know
   */
  draw(slice, color, label) {
    const tokens = tokensOf(slice);
    const channels = channelsOf(slice);
    this.tokens = tokens;
    this.channels = channels;
    const image = new ImageData(channels, tokens);
    for (let i = 0; i < tokens * channels; ++i) {
      const cell = {token: Math.floor(i / channels), channel: i % channels};
      image.data.set([...color(i, cell), 255], 4 * i);
    }
    this.canvas.width = channels;
    this.canvas.height = tokens;
    this.canvas.setAttribute('aria-label', label);
    this.canvas.getContext('2d')?.putImageData(image, 0, 0);
    // A canvas that is taken out of the page loses the focus.
    if (!this.canvas.isConnected) this.element.replaceChildren(this.canvas);
    for (const mark of this.element.querySelectorAll('i')) mark.remove();
  }

  /**
   * @param {string} kind a class of the style sheet
   * @param {Area} area
   * @param {string} text
   */
  mark(kind, area, text = '') {
    const mark = document.createElement('i');
    const percent = (/** @type {number} */ part, /** @type {number} */ of) =>
      `${(100 * part) / of}%`;
    mark.className = kind;
    mark.textContent = text;
    mark.style.left = percent(area.channel, this.channels);
    mark.style.top = percent(area.token, this.tokens);
    mark.style.width = percent(area.channels, this.channels);
    mark.style.height = percent(area.tokens, this.tokens);
    mark.setAttribute('aria-hidden', 'true');
    this.element.append(mark);
  }

  /** @param {string} sentence in place of the map */
  refuse(sentence) {
    const text = document.createElement('p');
    text.className = 'error';
    text.textContent = sentence;
    this.element.replaceChildren(text);
  }
}
