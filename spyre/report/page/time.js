// One report: a program, or a run with its longest kernels beside it.
const at = id => document.getElementById(id);
const shown = {};  // what is on the page: facts, span, rows, items

function show(facts) {
  readPalette();
  Object.assign(shown, {facts, match: null, drawn: []});
  at('kind').textContent = facts.kind === 'run' ? 'What the cards did' : 'Time of one launch';
  at('name').textContent = facts.name;
  at('lead').textContent = sentence(facts);
  at('tiles').replaceChildren();
  const t = facts.totals, all = t.read_bytes + t.written_bytes, [[most, us]] = sharesOf(facts), ideal = idealOf(facts);
  tile('Total', time(t.total_us), `simulated; the card computes for ${time(t.kernel_us)}`, t.kernel_us, t.total_us, 'var(--matrix)', 'total');
  tile('Bound by', most, `${percent(us, t.total_us)} of the time`, us, t.total_us, colourOf(most), 'bound');
  tile('Device memory', bytes(all), `${gbps(rate(all, t.kernel_us))} of ${facts.machine.memory_gb_per_s}; ${bytes(t.compulsory_bytes)} compulsory`,
       t.compulsory_bytes, all, 'var(--hbm)', 'bytes');
  tile('LX', bytes(t.lx_top_bytes || 0), `highest address used, of ${bytes(facts.machine.lx_bytes_per_core)} a core`, t.lx_top_bytes || 0,
       facts.machine.lx_bytes_per_core, 'var(--lx)', 'lx');
  tile('Ideal', time(ideal), `${percent(ideal, t.total_us)} of the total is what no plan avoids`, ideal, t.total_us, 'var(--copy)', 'ideal');
  drawStack(at('bounds'), facts);
  drawFirst(at('first'), facts, openItem);

  const span = shown.span = new Span(facts.totals.total_us * 1000);
  shown.rows = new Rows(at('timeline'), facts, facts.rows, span);
  shown.rows.says = slice => slice.item < 0 ? [slice.state, [['row', slice.row, 'row'], ['time', time((slice.end - slice.begin) / 1000), 'length']]]
    : [facts.items[slice.item].name, [['now', slice.state, 'state'], ['row', slice.row, 'row'], ['from', time(slice.begin / 1000), 'begin'],
       ['for', time((slice.end - slice.begin) / 1000), 'length'], ...says(facts, facts.items[slice.item]).slice(1)]];
  shown.rows.chose = slice => select(slice && slice.item >= 0 ? slice.item : -1, slice);
  shown.rows.open = slice => slice.item >= 0 && openItem(slice.item);
  const peak = facts.kind === 'run' ? 0 : facts.machine.memory_gb_per_s;
  const ofMemory = facts.counters.filter(c => c.name.startsWith('HBM')), others = facts.counters.filter(c => !c.name.startsWith('HBM') && c.points.length);
  shown.rates = [[at('memory-rate'), ofMemory, peak], [at('ring-rate'), others, 0]].map(([canvas, counters, most]) => {
    canvas.hidden = !counters.length;
    return counters.length ? new Rates(canvas, counters, most, span) : null;
  });
  at('traffic').hidden = !facts.counters.some(c => c.points.length);
  shown.lives = facts.lx && facts.lx.length ? new Lives(at('lives'), facts, span) : null;
  at('lx').hidden = !shown.lives;
  drawWaterfall(at('waterfall'), [facts]);
  drawRoofline(at('roofline'), facts, openItem);
  at('items-title').textContent = facts.kind === 'run' ? 'All kernels and copies' : 'All operations';
  shown.items = new Items(at('items'), facts, openItem);
  drawLegends(facts);
  select(-1);
  at('search').value = '';
  search();
  at('made').textContent = Object.entries(recorded.made || {}).map(([name, text]) => `${name} ${text}`).join(' \u00b7 ');
  redraw();
}

// An operation is shown by what bounds it, a core by what it does.
const stateWord = {memory: 'bound by memory', LX: 'bound by LX', nothing: 'bound by nothing', load: 'loads', store: 'stores'};
function drawLegends(facts) {
  const used = new Set();
  for (const {slices} of facts.rows) for (let i = 0; i < slices.length; i += 4) used.add(slices[i]);
  const entry = (root, colour, text) => { const item = make(root, 'span'); make(item, 'i', {class: 'swatch', style: `background:var(${colour});margin:0`}); item.append(text); };
  at('states').replaceChildren();
  facts.states.forEach((name, i) => { if (used.has(i)) entry(at('states'), colourName(name), stateWord[name] || name); });
  if (facts.left_out && facts.left_out.cores) make(at('states'), 'span', {}, `cores are left out: ${count(facts.left_out.cores)} phases are too many for a page`);
  at('counter-names').replaceChildren();
  for (const counter of facts.counters.filter(c => c.points.length)) entry(at('counter-names'), counterColour(counter.name), `${counter.name}, ${counter.unit}`);
}

function redraw() {
  readPalette();
  for (const draw of shown.span.changed) draw();
  drawStack(at('bounds'), shown.facts);
}

// ---- what is chosen ----
function select(i, slice) {
  const box = at('selected'), facts = shown.facts;
  for (const part of document.querySelectorAll('#items tr, #roofline .point')) part.classList.toggle('chosen', i >= 0 && Number(part.dataset.item) === i);
  box.hidden = i < 0;
  box.replaceChildren();
  if (i < 0) return;
  const item = facts.items[i];
  make(box, 'strong', {'data-fact': 'name'}, item.name);
  if (slice) box.append(` ${slice.state} on ${slice.row}, from ${time(slice.begin / 1000)} for ${time((slice.end - slice.begin) / 1000)}`);
  const list = make(box, 'dl');
  for (const [label, text, fact] of says(facts, item)) {
    const pair = make(list, 'div');
    make(pair, 'dt', {}, label);
    const value = make(pair, 'dd', {'data-fact': fact});
    const file = fact === 'source' && /^(\/.*):(\d+)$/.exec(text);
    if (file) make(value, 'a', {href: `file://${encodeURI(file[1])}#L${file[2]}`}, text); else value.textContent = text;
  }
  if (item.help) make(box, 'p', {'data-fact': 'help'}, 'What would help: ' + helpOf(item));
  if (item.program !== undefined && item.program !== null && shown.facts.kind === 'run') {
    const bar = make(box, 'div', {class: 'filters', style: 'margin:8px 0 0'});
    make(bar, 'button', {}, 'its operations and cores').onclick = () => showPart(item.program + 1);
  }
}
// From anywhere to the slice of an item.
function openItem(i) {
  const place = shown.rows.firstOf(new Set([i]));
  if (place) shown.rows.reveal(place);
  select(i, place && shown.rows.sliceOf(place));
  at('timeline').scrollIntoView({block: 'center'});
  at('timeline').focus({preventScroll: true});
}

// ---- search: operations whose names, files or origins have the text ----
function search() {
  const text = at('search').value.trim().toLowerCase(), facts = shown.facts;
  const found = text && new Set(facts.items.map((item, i) => i).filter(i => {
    const {name, file, aten, source, modules} = facts.items[i];
    return [name, file, aten, source, modules].some(field => field && field.toLowerCase().includes(text));
  }));
  shown.match = shown.rows.match = shown.items.wanted = found || null;
  at('found').textContent = found ? `${found.size} of ${count(facts.items.length)}` : '';
  shown.rows.draw();
  shown.items.draw();
}
function next() {
  if (!shown.match || !shown.match.size) return;
  const place = shown.rows.firstOf(shown.match, shown.rows.chosen);
  if (place) shown.rows.reveal(place);
}

// ---- a run, or one of its kernels ----
function showPart(number) {
  [...at('parts').children].forEach((button, i) => button.setAttribute('aria-pressed', i === number));
  show(number === 0 ? recorded : recorded.programs[number - 1]);
}
function drawParts() {
  if (!recorded.programs || !recorded.programs.length) return;
  at('parts').hidden = false;
  ['the whole run', ...recorded.programs.map(part => part.name)].forEach((name, i) => { make(at('parts'), 'button', {}, name).onclick = () => showPart(i); });
}

at('search').addEventListener('input', search);
at('search').addEventListener('keydown', event => { if (event.key === 'Enter') next(); if (event.key === 'Escape') { at('search').value = ''; search(); at('timeline').focus(); } });
at('next').onclick = next;
at('in').onclick = () => shown.span.zoom(0.6);
at('out').onclick = () => shown.span.zoom(1 / 0.6);
at('all').onclick = () => shown.span.set(0, shown.span.total);
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === 'INPUT') return;
  if (event.key === '/') { event.preventDefault(); at('search').focus(); at('search').scrollIntoView({block: 'center'}); }
  if (event.key === 'n') next();
});
for (const media of ['(prefers-color-scheme: dark)', 'print']) matchMedia(media).addEventListener('change', redraw);
addEventListener('beforeprint', redraw);
addEventListener('afterprint', redraw);
let resized = 0;
addEventListener('resize', () => { cancelAnimationFrame(resized); resized = requestAnimationFrame(redraw); });
drawParts();
showPart(0);
