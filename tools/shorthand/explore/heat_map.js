// @ts-check
// A canvas with one pixel for each number, enlarged by CSS, and marks that lie over it.

import {channelsOf, tokensOf} from './api.js';

/**
 * @typedef {import('./api.js').Slice} Slice
 * @typedef {{token: number, channel: number}} Cell  counted from the slice's first ones
 * @typedef {{token: number, channel: number, tokens: number, channels: number}} Area
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
 * A pixel, as a canvas keeps it.
 * @param {Rgb} from at 0
 * @param {Rgb} to at 1
 * @param {number} share
 */
export function mix(from, to, share) {
  const part = (/** @type {0|1|2} */ i) => Math.round(from[i] + (to[i] - from[i]) * share);
  return ((255 << 24) | (part(2) << 16) | (part(1) << 8) | part(0)) >>> 0;
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
 * Of every place the stretch between edges that it lies in; -1: none.
 * @param {number[]} edges
 * @param {number} places
 */
export function stretchesOf(edges, places) {
  const stretches = new Int32Array(places).fill(-1);
  edges.slice(1).forEach((end, i) => stretches.fill(i, edges[i], end));
  return stretches;
}

/**
 * What shares a scale with a cell that is coded.
 * @param {import('./api.js').Code} code
 * @param {Cell} cell
 * @returns {Area}
 */
export function groupOf(code, cell) {
  const {token_edges: down, channel_edges: across} = code;
  const t = down.findIndex((edge) => edge > cell.token) - 1;
  const c = across.findIndex((edge) => edge > cell.channel) - 1;
  return {
    token: down[t],
    channel: across[c],
    tokens: down[t + 1] - down[t],
    channels: across[c + 1] - across[c],
  };
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
   * @param {(index: number, token: number, channel: number) => number} color as mix makes them
   * @param {string} label what someone who does not see it should know
   */
  draw(slice, color, label) {
    const tokens = tokensOf(slice);
    const channels = channelsOf(slice);
    this.tokens = tokens;
    this.channels = channels;
    const image = new ImageData(channels, tokens);
    const pixels = new Uint32Array(image.data.buffer);
    for (let t = 0, i = 0; t < tokens; ++t) {
      for (let c = 0; c < channels; ++c, ++i) pixels[i] = color(i, t, c);
    }
    this.canvas.width = channels;
    this.canvas.height = tokens;
    this.canvas.style.minHeight = `${tokens}px`;
    this.element.style.minWidth = `${channels}px`;
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
