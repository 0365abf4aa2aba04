// @ts-check
// What weights and cache take, and whether that fits.

import {Refused, getPlan} from './api.js';
import {element, show} from './dom.js';

/**
 * @typedef {import('./api.js').Plan} Plan
 * @typedef {import('./api.js').PlanRow} PlanRow
 */

const kBytesOfGigabyte = 1e9;

/**
 * As `shorthand plan` prints it.
 * @param {number} bytes
 */
function sizeText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let unit = 0;
  for (; bytes >= 1024 && unit < 6; ++unit) bytes /= 1024;
  const bare = unit === 0 || (unit === 1 && Number.isInteger(bytes));
  return `${bytes.toFixed(bare ? 0 : 1)} ${units[unit]}`;
}

/** @param {number} tokens */
function tokensText(tokens) {
  if (tokens >= 2 ** 20) return `${tokens / 2 ** 20}M`;
  return tokens < 1024 ? `${tokens}` : `${tokens / 1024}k`;
}

/**
 * @param {Plan} plan
 * @param {PlanRow} row
 */
function verdict(plan, row) {
  if (row.error) return row.error;
  if (row.spare_bytes === null) return `${sizeText(row.allocated_bytes)} of cache.`;
  if (row.fits) return `Fits, with ${sizeText(row.spare_bytes)} to spare.`;
  const ways = [];
  if (row.max_context) ways.push(`with at most ${row.max_context} tokens each`);
  if (row.max_users) ways.push(`${row.max_users} user${row.max_users === 1 ? '' : 's'}`);
  const smaller = plan.recipes.filter((other) => other.fits);
  if (smaller.length > 0) {
    const best = smaller.reduce((a, b) => (b.true_bits > a.true_bits ? b : a));
    ways.push(`with ${best.recipe}`);
  }
  const fits = ways.length > 0 ? `; fits ${ways.join(', or ')}` : ', whatever the context';
  return `${sizeText(-row.spare_bytes)} too much${fits}.`;
}

/**
 * @param {Plan} plan
 * @param {PlanRow} row
 * @param {number} most bytes of the longest bar
 */
function bar(plan, row, most) {
  const weights = plan.weights_bytes ?? 0;
  const part = (/** @type {string} */ kind, /** @type {number} */ bytes) => {
    const span = element('span', '', kind);
    span.style.width = `${(100 * bytes) / most}%`;
    return span;
  };
  const limit = element('span', '', 'limit');
  limit.style.left = `${(100 * plan.memory_bytes) / most}%`;
  const track = element('div', '', 'track');
  track.setAttribute('aria-hidden', 'true');
  track.append(
    part('weights', weights),
    part(row.fits === false ? 'over' : 'cache', row.allocated_bytes ?? 0),
    limit,
  );
  const title = element('div');
  title.append(element('b', row.recipe), element('code', row.canonical));
  const item = element('li');
  item.append(title, track, element('p', verdict(plan, row)));
  return item;
}

/** @param {PlanRow} row */
function tableRow(row) {
  const name = element('th', row.recipe);
  name.setAttribute('scope', 'row');
  const known = (/** @type {number?} */ bytes) => (bytes === null ? '–' : sizeText(bytes));
  const cells = [
    row.true_bits?.toFixed(2) ?? '–',
    known(row.kv_bytes_per_token),
    known(row.allocated_bytes),
    known(row.total_bytes),
  ];
  const line = element('tr');
  line.append(name, ...cells.map((text) => element('td', text)));
  return line;
}

/** @param {import('./api.js').PlanModel} model */
function modelText(model) {
  const heads = `${model.kv_heads} KV head${model.kv_heads === 1 ? '' : 's'}`;
  const sentences = [
    `${model.name}: ${model.layers} layers, ${model.query_heads} query heads, ` +
      `${heads} of ${model.k_dim} channels.`,
  ];
  // Latent attention keeps one vector from which keys and values are made.
  if (model.v_dim === 0) sentences.push('Keys and values are one.');
  if (model.windowed_layers > 0) {
    sentences.push(`${model.windowed_layers} layers see the last ${model.window} tokens only.`);
  }
  return [...sentences, ...model.notes].join(' ');
}

/**
 * @param {Plan} plan
 * @param {Plan} half the same with weights of 16 bits
 * @param {string} weightBits
 */
function draw(plan, half, weightBits) {
  const totals = plan.recipes.map((row) => (plan.weights_bytes ?? 0) + (row.allocated_bytes ?? 0));
  const most = Math.max(plan.memory_bytes, ...totals);
  show('memory-model', modelText(plan.model));
  document
    .getElementById('bars')
    .replaceChildren(...plan.recipes.map((row) => bar(plan, row, most)));
  document.querySelector('#memory-table tbody').replaceChildren(...plan.recipes.map(tableRow));

  // The weights of a file are what they are.
  const chosen = plan.weights_bytes !== half.weights_bytes;
  const known = (/** @type {number?} */ bytes) => (bytes === null ? 'unknown' : sizeText(bytes));
  show('kv-per-token', sizeText(plan.model.kv_bytes_per_token_f16));
  show('weights-title', chosen ? `Weights, ${weightBits}-bit` : 'Weights');
  show('weights', known(plan.weights_bytes));
  show('weights-16', known(half.weights_bytes));
  document.getElementById('weights-16').parentElement.hidden = !chosen;
  show('memory-size', sizeText(plan.memory_bytes));

  const notes = [];
  if (plan.weights_reason) notes.push(`Weights unknown: ${plan.weights_reason}.`);
  if (plan.model.max_context && plan.context > plan.model.max_context) {
    notes.push(`The model was made for ${plan.model.max_context} tokens.`);
  }
  show('memory-note', notes.join(' '));
}

export const memory = {
  /** @param {import('./api.js').Request} request */
  async update({state, signal}) {
    document.getElementById('context-text').textContent = tokensText(Number(state.get('context')));
    document.getElementById('users-text').textContent = state.get('users');
    const recipes = state.getAll('kv');
    document.getElementById('memory-results').hidden = recipes.length === 0;
    if (recipes.length === 0) {
      document.getElementById('memory-note').textContent = 'Choose a recipe.';
      return;
    }
    const ask = (/** @type {string} */ weightBits) =>
      getPlan(
        [
          ['model', state.get('model')],
          ['context', state.get('context')],
          ['users', state.get('users')],
          ['memory', Number(state.get('memory')) * kBytesOfGigabyte],
          ['weight_bits', weightBits],
          ...recipes.map((recipe) => /** @type {[string, string]} */ (['kv', recipe])),
        ],
        signal,
      );
    const weightBits = state.get('weight_bits');
    try {
      const [plan, half] = await Promise.all([ask(weightBits), ask('16')]);
      draw(plan, half, weightBits);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      document.getElementById('memory-results').hidden = true;
      document.getElementById('memory-note').textContent = error.message;
    }
  },
};
