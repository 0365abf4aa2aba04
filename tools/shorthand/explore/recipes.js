// @ts-check
// What measured recipes lose for their bits, and how long their tokens take: the reports given.

import {element, show} from './dom.js';
import {kLiveReport, updateLive} from './live.js';

/**
 * @typedef {import('./api.js').KlReport} KlReport
 * @typedef {import('./api.js').KlRow} KlRow
 * @typedef {import('./api.js').SpeedReport} SpeedReport
 * @typedef {import('./api.js').SpeedRow} SpeedRow
 *
 * @typedef {{title: string, ticks: number[], share: (value: number) => number}} Axis
 *     share: of the way from the first tick to the last
 * @typedef {{root: SVGElement, width: number, x: (value: number) => number,
 *   y: (value: number) => number}} Chart
 * @typedef {{left: number, right: number, top: number, bottom: number}} Box
 * @typedef {{x: number, y: number, anchor: string}} Place  of a text beside a dot
 * @typedef {{kl: string, bits: string}} Axes  what is drawn, of kKinds and kBits
 * @typedef {{name: string, kind: string, rows: SpeedRow[]}} Line  kind: classes of the style sheet
 */

const kHeight = 360;
const kMargin = {left: 62, right: 24, top: 30, bottom: 46};
const kMostTicks = 8;
const kNarrowest = 260;
const kLetterWidth = 7;
const kLetterHeight = 14;
const kDotSize = 5;
const kHitSize = 11;
const kNameLetters = 22;
const kLineColors = 6;
/** @type {Record<string, {key: 'kld_mean' | 'kld_p999', title: string}>} */
const kKinds = {
  p999: {key: 'kld_p999', title: '99.9 % of KL'},
  mean: {key: 'kld_mean', title: 'Mean KL'},
};
/** @type {Record<string, {key: 'bits' | 'true_bits', title: string}>} */
const kBits = {
  codes: {key: 'bits', title: 'Bits of a number, codes and metadata'},
  all: {key: 'true_bits', title: 'True bits of a number, all that is stored'},
};

const klBox = document.getElementById('kl-chart');
const speedBox = document.getElementById('speed-chart');
const rowControl = /** @type {HTMLInputElement} */ (document.querySelector('[name=row]'));

/** @type {{kl?: KlReport, speed?: SpeedReport, axes: Axes}?} */
let shown = null;

/** @param {number?} value */
function numberText(value, digits = 3) {
  return value === null ? '–' : String(Number(value.toPrecision(digits)));
}

/** @param {number?} share */
function percentText(share) {
  return share === null ? '–' : `${(100 * share).toFixed(2)} %`;
}

/** @param {string} name */
function shortName(name) {
  return name.length > kNameLetters ? `${name.slice(0, kNameLetters)}…` : name;
}

// Charts

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {string} text
 */
function drawing(tag, attributes, text = '') {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.textContent = text;
  return made;
}

/**
 * @param {string} title
 * @param {number} from
 * @param {number} to
 * @returns {Axis}
 */
function linearAxis(title, from, to) {
  const span = to > from ? to - from : 1;
  const power = 10 ** Math.floor(Math.log10(span / kMostTicks));
  const step = [1, 2, 5, 10].map((of) => of * power).find((of) => span / of <= kMostTicks - 1);
  const first = Math.floor(from / step);
  const count = Math.ceil((from + span) / step) - first;
  const ticks = Array.from({length: count + 1}, (_, i) =>
    Number(((first + i) * step).toPrecision(6)),
  );
  return {title, ticks, share: (value) => (value / step - first) / count};
}

/**
 * @param {string} title
 * @param {number} from
 * @param {number} to
 * @returns {Axis}
 */
function logAxis(title, from, to) {
  const first = Math.floor(Math.log10(from));
  const count = Math.max(1, Math.ceil(Math.log10(to)) - first);
  const ticks = Array.from({length: count + 1}, (_, i) => Number(`1e${first + i}`));
  return {title, ticks, share: (value) => (Math.log10(value) - first) / count};
}

/**
 * A picture with axes. It is as wide as its place, so that its letters keep their size.
 * @param {HTMLElement} place
 * @param {Axis} across
 * @param {Axis} up
 * @returns {Chart}
 */
function makeChart(place, across, up) {
  const width = Math.max(kNarrowest, place.clientWidth);
  const right = width - kMargin.right;
  const bottom = kHeight - kMargin.bottom;
  const x = (/** @type {number} */ value) =>
    kMargin.left + across.share(value) * (right - kMargin.left);
  const y = (/** @type {number} */ value) => bottom - up.share(value) * (bottom - kMargin.top);
  const root = drawing('svg', {viewBox: `0 0 ${width} ${kHeight}`});
  for (const tick of up.ticks) {
    const at = y(tick);
    root.append(
      drawing('line', {class: 'grid', x1: kMargin.left, x2: right, y1: at, y2: at}),
      drawing('text', {x: kMargin.left - 8, y: at + 4, 'text-anchor': 'end'}, String(tick)),
    );
  }
  const letters = Math.max(...across.ticks.map((tick) => String(tick).length));
  const room = (right - kMargin.left) / (across.ticks.length - 1);
  const every = Math.ceil(((letters + 1) * kLetterWidth) / room);
  for (const [i, tick] of across.ticks.entries()) {
    const at = x(tick);
    const text = i % every === 0 ? String(tick) : '';
    root.append(
      drawing('line', {class: 'grid', x1: at, x2: at, y1: bottom, y2: bottom + 5}),
      drawing('text', {x: at, y: bottom + 20, 'text-anchor': 'middle'}, text),
    );
  }
  root.append(
    drawing('text', {x: 4, y: 14}, up.title),
    drawing('text', {x: right, y: kHeight - 6, 'text-anchor': 'end'}, across.title),
  );
  return {root, width, x, y};
}

/** @param {[number, number][]} points */
function pathOf(points) {
  if (points.length === 0) return '';
  return `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L')}`;
}

// KL over bits

/**
 * The rows that no other beats in bits and KL.
 * @param {KlRow[]} rows
 * @param {'bits' | 'true_bits'} bits
 * @param {'kld_mean' | 'kld_p999'} key
 */
function frontOf(rows, bits, key) {
  const beats = (/** @type {KlRow} */ a, /** @type {KlRow} */ b) =>
    a[bits] <= b[bits] && a[key] <= b[key] && (a[bits] < b[bits] || a[key] < b[key]);
  return rows.filter((row) => !rows.some((other) => beats(other, row)));
}

/** @param {KlRow} row */
function choose(row) {
  rowControl.value = rowControl.value === row.recipe ? '' : row.recipe;
  rowControl.dispatchEvent(new Event('input', {bubbles: true}));
}

/** @param {KlRow} row */
function kindOf(row) {
  return row.program === 'shorthand' ? 'ours' : 'peers';
}

/**
 * @param {KlRow} row
 * @param {number} x
 * @param {number} y
 * @param {string} label
 */
function makeDot(row, x, y, label) {
  const chosen = row.recipe === rowControl.value;
  const dot = drawing('g', {
    class: `dot ${kindOf(row)}`,
    transform: `translate(${x} ${y})`,
    tabindex: 0,
    role: 'button',
    'aria-pressed': String(chosen),
    'aria-label': label,
    'data-row': row.recipe,
  });
  const size = 2 * kDotSize;
  dot.append(
    drawing('circle', {class: 'hit', r: kHitSize}),
    row.program === 'shorthand'
      ? drawing('circle', {r: kDotSize})
      : drawing('rect', {x: -kDotSize, y: -kDotSize, width: size, height: size}),
  );
  dot.addEventListener('click', () => choose(row));
  dot.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    choose(row);
  });
  return dot;
}

/**
 * Where a name may stand. Below the front and left of it lies no dot.
 * @param {number} x
 * @param {number} y
 * @returns {Place[]}
 */
function placesBeside(x, y) {
  return [
    {x: x - 6, y: y + 17, anchor: 'end'},
    {x: x - 10, y: y + 4, anchor: 'end'},
    {x: x + 8, y: y - 8, anchor: 'start'},
    {x: x + 10, y: y + 4, anchor: 'start'},
    {x: x - 8, y: y - 8, anchor: 'end'},
  ];
}

/**
 * @param {Place} place
 * @param {string} text
 * @returns {Box}
 */
function boxOf({x, y, anchor}, text) {
  const left = anchor === 'end' ? x - text.length * kLetterWidth : x;
  const right = left + text.length * kLetterWidth;
  return {left, right, top: y - kLetterHeight + 3, bottom: y + 3};
}

/**
 * @param {Box} a
 * @param {Box} b
 */
function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/**
 * @param {Chart} chart
 * @param {Box} box
 */
function isInside({width}, box) {
  const bottom = kHeight - kMargin.bottom;
  return box.left > kMargin.left && box.right < width && box.top > 16 && box.bottom < bottom;
}

/**
 * The first place where a text covers nothing.
 * @param {Chart} chart
 * @param {Place[]} places
 * @param {string} text
 * @param {Box[]} taken
 */
function freePlace(chart, places, text, taken) {
  return places.find((place) => {
    const box = boxOf(place, text);
    return isInside(chart, box) && !taken.some((other) => overlap(box, other));
  });
}

/**
 * Writes names beside their dots as long as there is room; short ones first, one for each place.
 * @param {Chart} chart
 * @param {KlRow[]} rows the named ones
 * @param {(row: KlRow) => [number, number]} placeOf
 * @param {Box[]} taken grows by the names
 * @returns {Set<KlRow>} those that have got their name
 */
function writeNames(chart, rows, placeOf, taken) {
  /** @type {Set<KlRow>} */
  const named = new Set();
  for (const row of [...rows].sort((a, b) => a.recipe.length - b.recipe.length)) {
    const text = shortName(row.recipe);
    if ([...named].some((other) => String(placeOf(other)) === String(placeOf(row)))) continue;
    const place = freePlace(chart, placesBeside(...placeOf(row)), text, taken);
    if (!place) continue;
    const {x, y, anchor} = place;
    chart.root.append(drawing('text', {class: 'name', x, y, 'text-anchor': anchor}, text));
    taken.push(boxOf(place, text));
    named.add(row);
  }
  return named;
}

/**
 * The name of the dot under pointer or focus, else of the chosen one.
 * @param {Chart} chart
 * @param {Map<KlRow, SVGElement>} dots
 * @param {(row: KlRow) => [number, number]} placeOf
 * @param {Set<KlRow>} named those whose name stands there anyway
 * @param {Box[]} taken
 */
function addTip(chart, dots, placeOf, named, taken) {
  const tip = drawing('text', {class: 'name'});
  const point = (/** @type {KlRow?} */ row) => {
    const text = row && !named.has(row) ? shortName(row.recipe) : '';
    tip.textContent = text;
    if (!text) return;
    const [x, y] = placeOf(row);
    const anchor = x > chart.width / 2 ? 'end' : 'start';
    const farther = [26, -18, 42, -34].map((down) => ({x, y: y + down, anchor}));
    const places = [...placesBeside(x, y), ...farther];
    const place = freePlace(chart, places, text, taken) ?? farther[0];
    tip.setAttribute('x', String(place.x));
    tip.setAttribute('y', String(place.y));
    tip.setAttribute('text-anchor', place.anchor);
  };
  const chosen = [...dots.keys()].find((row) => row.recipe === rowControl.value) ?? null;
  for (const [row, dot] of dots) {
    for (const kind of ['pointerenter', 'focus']) dot.addEventListener(kind, () => point(row));
    for (const kind of ['pointerleave', 'blur']) dot.addEventListener(kind, () => point(chosen));
  }
  point(chosen);
  chart.root.append(tip);
}

/**
 * @param {KlRow[]} rows
 * @param {Axes} axes
 */
function drawKl(rows, axes) {
  const {key, title} = kKinds[axes.kl];
  const {key: bits, title: bitsTitle} = kBits[axes.bits];
  const drawn = rows.filter((row) => row[key] > 0);
  const leftOut = rows.filter((row) => !drawn.includes(row)).map((row) => row.recipe);
  show('left-out', `No place on a log scale, as KL is 0 or not known: ${leftOut.join(', ')}.`);
  document.getElementById('left-out').hidden = leftOut.length === 0;
  klBox.hidden = drawn.length === 0;
  if (drawn.length === 0) return;

  const widths = drawn.map((row) => row[bits]);
  const losses = drawn.map((row) => row[key]);
  const chart = makeChart(
    klBox,
    linearAxis(bitsTitle, Math.min(...widths), Math.max(...widths)),
    logAxis(`${title}, nats`, Math.min(...losses), Math.max(...losses)),
  );
  chart.root.setAttribute('role', 'group');
  chart.root.setAttribute('aria-label', `${title} over bits, a dot for each recipe`);
  const placeOf = (/** @type {KlRow} */ row) =>
    /** @type {[number, number]} */ ([chart.x(row[bits]), chart.y(row[key])]);
  const front = frontOf(rows, bits, key)
    .filter((row) => drawn.includes(row))
    .sort((a, b) => a[bits] - b[bits]);
  chart.root.append(drawing('path', {class: 'front', d: pathOf(front.map(placeOf))}));
  /** @type {Map<KlRow, SVGElement>} */
  const dots = new Map();
  for (const row of drawn) {
    const label = `${row.recipe}: ${row[bits].toFixed(2)} bits, ${title} ${numberText(row[key])}`;
    dots.set(row, makeDot(row, ...placeOf(row), label));
  }
  chart.root.append(...dots.values());
  const taken = drawn.map((row) => {
    const [x, y] = placeOf(row);
    return {left: x - kDotSize, right: x + kDotSize, top: y - kDotSize, bottom: y + kDotSize};
  });
  const named = writeNames(chart, front, placeOf, taken);
  addTip(chart, dots, placeOf, named, taken);

  // What is drawn anew loses the focus.
  const {activeElement} = document;
  const focused = klBox.contains(activeElement) && activeElement.getAttribute('data-row');
  klBox.replaceChildren(chart.root);
  [...dots].find(([row]) => row.recipe === focused)?.[1].focus({preventScroll: true});
}

/** @param {string} text */
function quoted(text) {
  return /^[\w.,:/=@+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * @param {KlReport} report
 * @param {KlRow} row
 */
function commandOf(report, row) {
  const asked =
    row.program === 'shorthand'
      ? `--kv ${quoted(row.recipe)}`
      : `--peer ${quoted(row.recipe.replace(/^llama\.cpp /, ''))}`;
  const options = report.options ?? ['-m', report.model, '-c', String(report.context)];
  return `shorthand eval ${options.map(quoted).join(' ')} ${asked}`;
}

/**
 * @param {KlReport} report
 * @param {KlRow?} row
 */
function showDetails(report, row) {
  document.getElementById('row-details').hidden = !row;
  if (!row) return;
  show('row-name', row.recipe);
  show('row-bits', numberText(row.bits, 4));
  show('row-true-bits', numberText(row.true_bits, 4));
  show('row-mean', `${numberText(row.kld_mean)} ± ${numberText(row.kld_mean_error, 2)}`);
  show('row-p999', numberText(row.kld_p999));
  show('row-top1', percentText(row.top1));
  show('row-canonical', row.canonical);
  show('row-command', commandOf(report, row));
}

/**
 * @param {string} name
 * @param {string[]} cells
 */
function tableRow(name, cells) {
  const title = element('th', name);
  title.setAttribute('scope', 'row');
  const line = element('tr');
  line.append(title, ...cells.map((text) => element('td', text)));
  return line;
}

/** @param {KlRow} row */
function klTableRow(row) {
  return tableRow(row.recipe, [
    row.bits.toFixed(2),
    numberText(row.kld_mean),
    numberText(row.kld_mean_error, 2),
    numberText(row.kld_p999),
    percentText(row.top1),
  ]);
}

/**
 * @param {KlReport} report
 * @param {Axes} axes
 */
function showKl(report, axes) {
  const rows = [...report.rows].sort((a, b) => a.bits - b.bits);
  drawKl(rows, axes);
  showDetails(report, rows.find((row) => row.recipe === rowControl.value) ?? null);
  document.querySelector('#kl-table tbody').replaceChildren(...rows.map(klTableRow));
}

// Time of a token

/**
 * @param {SpeedReport} report
 * @returns {Line[]}
 */
function linesOf(report) {
  const names = [...new Set(report.rows.map((row) => `${row.engine} ${row.recipe}`))];
  return names.map((name, i) => {
    const rows = report.rows.filter((row) => `${row.engine} ${row.recipe}` === name);
    const program = rows[0].engine === 'shorthand' ? '' : ' peers';
    const kind = `line-${i % kLineColors}${program}`;
    return {name, kind, rows: rows.sort((a, b) => a.depth - b.depth)};
  });
}

/** @param {SpeedReport} report */
function drawSpeed(report) {
  const lines = linesOf(report);
  const depths = [...new Set(report.rows.map((row) => row.depth))].sort((a, b) => a - b);
  const times = report.rows.map((row) => row.decode_ms_per_token);
  const chart = makeChart(
    speedBox,
    linearAxis('Tokens in the context', 0, Math.max(...depths)),
    linearAxis('Milliseconds for a token', 0, Math.max(...times)),
  );
  chart.root.setAttribute('role', 'img');
  chart.root.setAttribute(
    'aria-label',
    'Milliseconds for a token over the tokens in the context; the table has the same numbers',
  );
  for (const {kind, rows} of lines) {
    const points = rows.map((row) =>
      /** @type {[number, number]} */ ([chart.x(row.depth), chart.y(row.decode_ms_per_token)]),
    );
    const group = drawing('g', {class: `line ${kind}`});
    group.append(
      drawing('path', {d: pathOf(points)}),
      ...points.map(([cx, cy]) => drawing('circle', {cx, cy, r: 3.5})),
    );
    chart.root.append(group);
  }
  speedBox.replaceChildren(chart.root);
  const legend = lines.map(({name, kind}) => element('span', name, kind));
  document.getElementById('speed-legend').replaceChildren(...legend);

  const head = element('tr');
  head.append(...['ms for a token', ...depths.map(String)].map((text) => element('th', text)));
  for (const cell of head.children) cell.setAttribute('scope', 'col');
  document.querySelector('#speed-table thead').replaceChildren(head);
  const body = lines.map(({name, rows}) => {
    const at = (/** @type {number} */ depth) => rows.find((row) => row.depth === depth);
    return tableRow(
      name,
      depths.map((depth) => at(depth)?.decode_ms_per_token.toFixed(1) ?? '–'),
    );
  });
  document.querySelector('#speed-table tbody').replaceChildren(...body);
}

// The view

/** @param {KlReport} report */
export function klReportName({file, model, context}) {
  return `${file}: ${model}, context ${context}`;
}

/** @param {SpeedReport} report */
export function speedReportName({file, model, threads}) {
  return `${file}: ${model}, ${threads} thread${threads === 1 ? '' : 's'}`;
}

function draw() {
  const {kl, speed, axes} = shown;
  if (kl) showKl(kl, axes);
  if (speed) drawSpeed(speed);
}

new ResizeObserver(() => {
  if (shown && document.getElementById('recipes').clientWidth > 0) draw();
}).observe(document.getElementById('recipes'));

export const recipes = {
  /** @param {import('./api.js').Request} request */
  async update({state, info, results, signal}) {
    const live = info.model ? await updateLive(signal) : null;
    const report = state.get('report');
    const kl = report === kLiveReport ? live : results.kl[Number(report)];
    const speed = results.speed[Number(state.get('speed'))];
    shown = {kl, speed, axes: {kl: state.get('kl'), bits: state.get('row_bits')}};
    const hide = (/** @type {string} */ id, /** @type {boolean} */ hidden) =>
      (document.getElementById(id).hidden = hidden);
    hide('kl-about', Boolean(!kl && speed));
    hide('no-results', results.kl.length + results.speed.length > 0 || Boolean(kl));
    hide('kl-choice', results.kl.length + (info.model ? 1 : 0) < 2);
    hide('speed-choice', results.speed.length < 2);
    hide('kl-kind', !kl);
    hide('bits-kind', !kl);
    hide('kl-results', !kl);
    hide('speed-results', !speed);
    const sentences = [];
    if (kl) sentences.push(`KL: ${klReportName(kl)}, ${kl.tokens} tokens scored.`);
    if (speed) sentences.push(`Time: ${speedReportName(speed)}.`);
    show('report-text', sentences.join(' ') || 'None.');
    draw();
  },
};
