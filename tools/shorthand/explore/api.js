// @ts-check
// The server's answers. All arithmetic on keys and values is done there.

/**
 * @typedef {{layer: number, head: number, side: string, dim: number, token_error: number,
 *   channel_error: number, first_channel?: number, source: Source}} Head
 *     the errors of all of it in 2 bits; first_channel: of the 16 among which the largest one lies
 * @typedef {{name: 'model' | 'synthetic', model_name: string, text: string,
 *   captured_tokens: number, layers: number, dim_k: number, dim_v: number, heads: Head[]}} Source
 * @typedef {{version: string, model: string?, sources: Source[], shapes: string[],
 *   presets: {name: string}[]}} Info
 *
 * @typedef {{recipe: string, canonical: string, true_bits: number, kv_bytes_per_token: number,
 *   allocated_bytes: number, total_bytes: number?, fits: boolean?, spare_bytes: number?,
 *   max_context: number?, max_users: number?, error: string?}} PlanRow
 * @typedef {{name: string, layers: number, kv_heads: number, query_heads: number, k_dim: number,
 *   v_dim: number, windowed_layers: number, window: number?, kv_bytes_per_token_f16: number,
 *   max_context: number?, notes: string[]}} PlanModel
 * @typedef {{model: PlanModel, context: number, users: number, memory_bytes: number,
 *   weights_bytes: number?, weights_reason: string?, recipes: PlanRow[]}} Plan
 *
 * @typedef {{code: string, relative_error: number, head_relative_error: number,
 *   token_edges: number[], channel_edges: number[], head_group: number, head_scales: number,
 *   scales_4096: [number, number], code_bits: number, scale_bits: number}} Code
 *     edges: where groups begin, then where the last one ends
 * @typedef {{layer: number, head: number, side: string, dim: number, tokens: [number, number],
 *   channels: [number, number], exact: number, sink: number, codes: Code[]}} SliceHeader
 * @typedef {SliceHeader & {values: Float32Array, read: Float32Array}} Slice
 *     of one code; values and what is read back lie as [tokens][channels]
 * @typedef {{token: number, tokens: number, channel: number, channels: number, exact?: number,
 *   sink?: number}} Part
 *
 * @typedef {{recipe: string, canonical: string, program: string, bits: number, true_bits: number,
 *   kld_mean: number?, kld_mean_error: number?, kld_p999: number?, top1: number?}} KlRow
 * @typedef {{file: string, model: string, context: number, tokens: number, rows: KlRow[],
 *   options?: string[]}} KlReport  options: those of `shorthand eval` that measure it again
 * @typedef {{engine: string, recipe: string, depth: number, decode_ms_per_token: number}} SpeedRow
 * @typedef {{file: string, model: string, threads: number, rows: SpeedRow[]}} SpeedReport
 * @typedef {{kl: KlReport[], speed: SpeedReport[]}} Results
 * @typedef {{running: {recipe: string, done: number}?, report: KlReport?, error: string?}} Live
 *     done: the share of it; error: why the last run failed
 *
 * @typedef {[string, string | number][]} Query
 *
 * What a view needs to show itself.
 * @typedef {{state: URLSearchParams, info: Info, results: Results, head: Head,
 *   signal: AbortSignal}} Request
 */

/** The server refused what was asked, with a reason for people. */
export class Refused extends Error {}

/**
 * @param {string} path
 * @param {Query} query
 * @param {RequestInit} options
 */
async function ask(path, query, options) {
  const parameters = new URLSearchParams(query.map(([name, value]) => [name, String(value)]));
  let response;
  try {
    response = await fetch(`api/${path}?${parameters}`, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Error('The server does not answer. Does “shorthand explore” still run?');
  }
  if ([400, 409].includes(response.status)) throw new Refused((await response.json()).error);
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return response;
}

/**
 * @param {string} path
 * @param {Query} query
 * @param {AbortSignal} [signal]
 */
function get(path, query, signal) {
  return ask(path, query, {signal});
}

/** @type {(signal: AbortSignal) => Promise<Info>} */
export async function getInfo(signal) {
  /** @type {Info} */
  const info = await (await get('info', [], signal)).json();
  for (const source of info.sources) {
    for (const head of source.heads) head.source = source;
  }
  return info;
}

/** @type {(signal: AbortSignal) => Promise<Results>} */
export async function getResults(signal) {
  return (await get('results', [], signal)).json();
}

/**
 * @param {AbortSignal} [signal]
 * @returns {Promise<Live>}
 */
export async function getLive(signal) {
  return (await get('live', [], signal)).json();
}

/** @type {(recipe: string) => Promise<Live>} */
export async function startLive(recipe) {
  return (await ask('live', [['kv', recipe]], {method: 'POST'})).json();
}

/** @type {() => Promise<Live>} */
export async function stopLive() {
  return (await ask('live', [], {method: 'DELETE'})).json();
}

/** @type {(query: Query, signal: AbortSignal) => Promise<Plan>} */
export async function getPlan(query, signal) {
  return (await get('plan', query, signal)).json();
}

/**
 * @param {Head} head
 * @param {Part} part
 * @param {string} code
 * @param {AbortSignal} signal
 * @returns {Promise<Slice>}
 */
export async function getSlice(head, part, code, signal) {
  const span = (/** @type {number} */ first, /** @type {number} */ count) =>
    `${first}..${first + count - 1}`;
  /** @type {Query} */
  const query = [
    ['source', head.source.name],
    ['layer', head.layer],
    ['head', head.head],
    ['side', head.side],
    ['tokens', span(part.token, part.tokens)],
    ['channels', span(part.channel, part.channels)],
    ['code', code],
    ['exact', part.exact ?? 0],
    ['sink', part.sink ?? 0],
  ];
  const body = await (await get('slice', query, signal)).arrayBuffer();
  const headerBytes = new DataView(body).getUint32(0, true);
  /** @type {SliceHeader} */
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(body, 4, headerBytes)));
  const count = tokensOf(header) * channelsOf(header);
  const array = (/** @type {number} */ index) =>
    new Float32Array(body, 4 + headerBytes + 4 * count * index, count);
  return {...header, values: array(0), read: array(1)};
}

/** @param {SliceHeader} slice */
export function tokensOf(slice) {
  return slice.tokens[1] - slice.tokens[0] + 1;
}

/** @param {SliceHeader} slice */
export function channelsOf(slice) {
  return slice.channels[1] - slice.channels[0] + 1;
}

/**
 * What a part of a head shows.
 * @param {Head} head
 * @param {Part} part
 */
export function placeText(head, part) {
  const [side, made] = head.side === 'K' ? ['Keys', 'keys'] : ['Values', 'values'];
  const name =
    head.source.name === 'synthetic'
      ? `Synthetic ${made}`
      : `${side} of layer ${head.layer}, head ${head.head}`;
  return (
    `${name}: tokens ${part.token} to ${part.token + part.tokens - 1} down, ` +
    `channels ${part.channel} to ${part.channel + part.channels - 1} of ${head.dim} across.`
  );
}

/** @param {number} error relative, 1 for all of it */
export function errorText(error) {
  return `${(100 * error).toFixed(1)} %`;
}
