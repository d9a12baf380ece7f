'use strict';
// What every page uses: the facts, words and numbers with their units, and making elements. Everything visible is made
// from the facts as text and never as markup, so that no name in them can change the page.
const recorded = JSON.parse(document.getElementById('facts').textContent);

const exact = n => n.toLocaleString('en-US') + ' B';
function bytes(n) {
  for (const [unit, size] of [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]])
    if (n >= size) return (n / size).toFixed(n / size < 10 && n % size ? 2 : n / size < 100 && n % size ? 1 : 0) + ' ' + unit;
  return n + ' B';
}
const time = us => us >= 1e6 ? (us / 1e6).toFixed(2) + ' s' : us >= 1000 ? (us / 1000).toFixed(2) + ' ms'
                 : us >= 0.1 || us === 0 ? us.toFixed(us < 10 ? 2 : 1) + ' \u00b5s' : (us * 1000).toFixed(1) + ' ns';
const percent = (part, whole) => whole ? (100 * part / whole).toFixed(part === whole ? 0 : 1) + ' %' : '100 %';

function make(parent, tag, attributes = {}, text) {
  const svg = parent.namespaceURI === 'http://www.w3.org/2000/svg' || tag === 'svg';
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}
function row(parent, cells, tag = 'td') {
  const line = make(parent, 'tr');
  for (const [text, kind] of cells) make(line, tag, kind ? {class: kind} : {}, text);
  return line;
}
function tile(what, value, more, part, whole, colour, fact) {
  const card = make(document.getElementById('tiles'), 'div', {class: 'tile'});
  make(card, 'div', {class: 'what'}, what);
  make(card, 'div', fact ? {class: 'value', 'data-fact': fact} : {class: 'value'}, value);
  make(card, 'div', {class: 'more'}, more);
  const bar = make(card, 'div', {class: 'bar'});
  make(bar, 'i', {style: `width:${whole ? Math.min(100, 100 * part / whole) : 100}%;background:${colour}`});
}

// ---- the box that tells about what is under the pointer, or has the focus: lines of [label, text, name of the fact] ----
const tip = document.getElementById('tip');
function showTip(title, lines, x, y) {
  tip.replaceChildren();
  make(tip, 'strong', {'data-fact': 'title'}, title);
  const list = make(tip, 'dl');
  for (const [label, text, fact] of lines) {
    make(list, 'dt', {}, label);
    make(list, 'dd', {'data-fact': fact}, text);
  }
  tip.classList.add('shown');
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(8, x + 18 + box.width > innerWidth ? x - box.width - 14 : x + 18) + 'px';
  tip.style.top = Math.max(8, Math.min(y + 14, innerHeight - box.height - 8)) + 'px';
}
function hideTip() { tip.classList.remove('shown'); }
