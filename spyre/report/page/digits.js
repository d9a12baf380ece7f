// Which layer lost the digits: modules and operators of a model, with how far they are off.
const at = id => document.getElementById(id);
const number = n => n === null ? 'NaN or infinite' : n === 0 ? '0' : n.toPrecision(3);
const {modules, operators, weights, notes} = recorded;
const shape = r => `${r.dtype}[${r.shape.join(', ')}]`;
const share = r => r.error === null ? Infinity : r.error === 0 ? 0 : r.bound ? r.error / r.bound : Infinity;
const judged = operators.filter(r => r.judged), out = judged.filter(r => r.out);
const mark = r => r.out ? ['out of bound', 'worse'] : ['', ''];

at('answer').textContent = recorded.answer;
at('lead').textContent = `${recorded.model}, ${recorded.mode}, judged by ${recorded.reference}`;
const result = modules[modules.length - 1];
if (result) tile('Result off by', number(result.accumulated), `${number(result.rounding)} by rounding alone`,
                 result.accumulated === null ? 1 : result.accumulated, result.bound || 1, 'var(--accent)', 'result');
tile('Operators judged', judged.length.toLocaleString('en-US'), out.length ? `${out.length} out of bound` : 'all within bounds',
     out.length, judged.length, 'var(--worse)', 'judged');
const worst = judged.reduce((a, b) => share(b) > share(a) ? b : a, judged[0] || null);
if (worst) tile('Nearest to its bound', share(worst) === Infinity ? 'beyond any' : percent(share(worst), 1), worst.operator,
                Math.min(share(worst), 1), 1, worst.out ? 'var(--worse)' : 'var(--accent)', 'worst');
tile('Held by the reference', bytes(recorded.held_bytes), 'at most, besides weights while they were read', 0, 1, 'var(--accent)', 'held');

function table(id, heads, rows, cells, fact) {
  at(id).replaceChildren();
  row(make(at(id), 'thead'), heads, 'th');
  const body = make(at(id), 'tbody');
  for (const r of rows) row(body, cells(r)).setAttribute(`data-${fact}`, r.path || r.operator || r.name || r.text);
}
const n = 'number';
if (weights.length) {
  at('weights-section').hidden = false;
  table('weights', [['weight'], ['differ', n], ['of', n], ['at'], ['card', n], ['reference', n]], weights,
    w => [[w.name], [w.differ, n], [w.elements, n], [`[${w.index.join(', ')}]`], [number(w.card), n], [number(w.reference), n]], 'weight');
}
table('modules', [['result of'], ['kind'], ['shape'], ['off by', n], ['rounding alone', n], ['bound', n], ['own', n], ['operators', n], ['']], modules,
  m => [[m.path], [m.kind], [shape(m)], [number(m.accumulated), n], [number(m.rounding), n], [number(m.bound), n],
        [m.own === null ? '' : number(m.own), n], [m.last - m.first, n], mark(m)], 'module');

function drawChart() {
  at('chart').replaceChildren();
  const shown = modules.filter(m => m.accumulated !== null);
  const values = shown.flatMap(m => [m.accumulated, m.rounding]).filter(v => v);
  if (!values.length) { at('chart').hidden = true; return; }
  const low = Math.floor(Math.log10(Math.min(...values))), high = Math.ceil(Math.log10(Math.max(...values)) + 1e-9);
  const width = 1180, height = 220, left = 60, top = 14, bottom = 26;
  const x = i => left + (i + 0.5) / modules.length * (width - left - 14);
  const y = v => top + (high - Math.max(Math.log10(v), low)) / Math.max(high - low, 1) * (height - top - bottom);
  const svg = make(at('chart'), 'svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Error of each module'});
  for (let power = low; power <= high; ++power) {
    make(svg, 'line', {class: 'grid', x1: left, x2: width - 14, y1: y(10 ** power), y2: y(10 ** power)});
    make(svg, 'text', {x: left - 8, y: y(10 ** power) + 4, 'text-anchor': 'end'}, `1e${power}`);
  }
  make(svg, 'text', {x: left, y: height - 8, class: 'axis'}, modules[0].path);
  make(svg, 'text', {x: width - 14, y: height - 8, class: 'axis', 'text-anchor': 'end'}, result.path);
  modules.forEach((m, i) => {
    const point = make(svg, 'g', {tabindex: 0, 'data-point': m.path});
    if (m.rounding) make(point, 'circle', {cx: x(i), cy: y(m.rounding), r: 4.5, fill: 'none', stroke: 'var(--soft)'});
    const level = m.accumulated === null ? top : m.accumulated ? y(m.accumulated) : height - bottom;
    make(point, 'circle', {cx: x(i), cy: level, r: 3, fill: m.out ? 'var(--worse)' : 'var(--accent)'});
    const says = event => {
      const box = point.getBoundingClientRect();
      showTip(m.path, [['off by', number(m.accumulated)], ['rounding alone', number(m.rounding)], ['bound', number(m.bound)]],
              event.clientX || box.left, event.clientY || box.top);
    };
    point.addEventListener('pointermove', says);
    point.addEventListener('focus', says);
    point.addEventListener('pointerleave', hideTip);
    point.addEventListener('blur', hideTip);
  });
}
drawChart();

let only = out.length ? 'out' : 'all', text = '';
const filters = [['all', 'All', () => true], ['out', 'Out of bound', r => r.out], ['near', 'Beyond half of it', r => share(r) > 0.5],
                 ['unjudged', 'Not judged', r => !r.judged]];
function drawOperators() {
  const keep = filters.find(f => f[0] === only)[2];
  const rows = operators.filter(r => keep(r) && `${r.operator} ${r.module} ${r.kernel} ${r.source}`.includes(text));
  table('operators', [['operator'], ['in'], ['source'], ['shape'], ['error', n], ['bound', n], ['card', n], ['reference', n],
                      ['accumulated', n], ['']], rows,
    r => [[r.operator], [r.kernel || r.module], [r.source], [shape(r)], [r.judged ? number(r.error) : '', n], [r.judged ? number(r.bound) : '', n],
          [r.judged ? number(r.card) : '', n], [r.judged ? number(r.reference) : '', n], [number(r.accumulated), n],
          [[mark(r)[0], r.note].filter(Boolean).join(': '), `remark ${mark(r)[1]}`]], 'operator');
  for (const button of at('filters').querySelectorAll('button')) button.setAttribute('aria-pressed', button.dataset.filter === only);
}
for (const [name, label, keep] of filters) {
  const button = make(at('filters'), 'button', {'data-filter': name}, `${label} (${operators.filter(keep).length})`);
  button.addEventListener('click', () => { only = name; drawOperators(); });
}
const search = make(at('filters'), 'input', {type: 'search', placeholder: 'operator, module, line', 'aria-label': 'Search operators'});
search.addEventListener('input', () => { text = search.value; drawOperators(); });
drawOperators();

if (notes.length) {
  at('notes-section').hidden = false;
  table('notes', [['times', n], ['']], notes, r => [[r.times, n], [r.text, 'remark']], 'note');
}
