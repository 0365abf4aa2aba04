// @ts-check
// Pieces of the page that every view writes.

/**
 * @param {string} id
 * @param {string} text
 */
export function show(id, text) {
  document.getElementById(id).textContent = text;
}

/**
 * @param {string} tag
 * @param {string} text
 * @param {string} kind a class of the style sheet
 */
export function element(tag, text = '', kind = '') {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = kind;
  return made;
}
