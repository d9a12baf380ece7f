// Two reports: what differs, from the first to the second.
const at = id => document.getElementById(id);
const {from, to} = recorded.sides, changes = recorded.changes;
readPalette();
const change = (a, b) => a ? `${b >= a ? '+' : '\u2212'}${percent(Math.abs(b - a), a)}` : '';
const kind = (a, b) => b < a * 0.999 ? 'better' : b > a * 1.001 ? 'worse' : '';
const names = recorded.names;
at('name').textContent = `${names.from} \u2192 ${names.to}`;
const a = from.totals, b = to.totals;
at('lead').textContent = a.total_us === b.total_us ? `Both take ${time(a.total_us)}.`
  : `${names.to} takes ${time(b.total_us)}, ${percent(Math.abs(b.total_us - a.total_us), a.total_us)} ${b.total_us < a.total_us ? 'less' : 'more'} than ${names.from} with ${time(a.total_us)}.`;
const moves = t => t.read_bytes + t.written_bytes;
tile('Total', `${time(a.total_us)} \u2192 ${time(b.total_us)}`, change(a.total_us, b.total_us), b.total_us, a.total_us, 'var(--matrix)', 'total');
tile('Kernels', `${time(a.kernel_us)} \u2192 ${time(b.kernel_us)}`, change(a.kernel_us, b.kernel_us), b.kernel_us, a.kernel_us, 'var(--matrix)', 'kernel');
tile('Bound by', from.bound.by === to.bound.by ? from.bound.by : `${from.bound.by} \u2192 ${to.bound.by}`, 'the longest part of the time', 1, 1, colourOf(to.bound.by), 'bound');
tile('Device memory', `${bytes(moves(a))} \u2192 ${bytes(moves(b))}`, change(moves(a), moves(b)), moves(b), moves(a), 'var(--hbm)', 'bytes');
tile('Ring', `${bytes(a.ring_bytes)} \u2192 ${bytes(b.ring_bytes)}`, change(a.ring_bytes, b.ring_bytes), b.ring_bytes, a.ring_bytes, 'var(--ring)', 'ring');

const stacks = [[names.from, from], [names.to, to]].map(([name, facts]) => {
  const side = make(at('sides'), 'div');
  make(side, 'p', {class: 'soft', style: 'margin-top:14px'}, name.includes(facts.machine.name) ? name : `${name}, on ${facts.machine.name}`);
  return [make(side, 'div', {class: 'stack', style: 'margin-top:2px'}), facts];
});

row(make(at('changes'), 'thead'), [['name'], ['from'], [names.from, 'number'], [names.to, 'number'], ['difference', 'number'], ['bound by'], ['bytes moved', 'number']], 'th');
const body = make(at('changes'), 'tbody');
for (const c of changes.slice(0, 200)) {
  const side = us => us === null ? '\u2013' : time(us);
  const line = row(body, [[c.name], [sourceOf(c), 'remark'], [side(c.from_us), 'number'], [side(c.to_us), 'number'],
    [`${c.us >= 0 ? '+' : '\u2212'}${time(Math.abs(c.us))}`, 'number ' + kind(c.from_us || 0, c.to_us || 0)],
    [c.from_bound === c.to_bound ? c.from_bound : `${c.from_bound || '\u2013'} \u2192 ${c.to_bound || '\u2013'}`],
    [`${bytes(c.from_bytes)} \u2192 ${bytes(c.to_bytes)}`, 'number']]);
  line.dataset.change = c.name;
}

drawWaterfall(at('waterfall'), [from, to], [names.from, names.to]);
const span = new Span(Math.max(a.total_us, b.total_us) * 1000);
for (const [facts, id] of [[from, 'timeline-from'], [to, 'timeline-to']]) {
  const rows = new Rows(at(id), facts, facts.rows.filter(r => !/^core /.test(r.name)), span);
  rows.says = slice => slice.item < 0 ? [slice.state, [['for', time((slice.end - slice.begin) / 1000), 'length']]] : [facts.items[slice.item].name, says(facts, facts.items[slice.item])];
}
function redraw() {
  readPalette();
  for (const draw of span.changed) draw();
  for (const [root, facts] of stacks) drawStack(root, facts);
}
for (const media of ['(prefers-color-scheme: dark)', 'print']) matchMedia(media).addEventListener('change', redraw);
addEventListener('beforeprint', redraw);
addEventListener('afterprint', redraw);
addEventListener('resize', redraw);
redraw();
