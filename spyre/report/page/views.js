// The parts of a report that are no timeline. Each draws facts into an element; what is chosen is for who calls.

const rate = (amount, us) => us > 0 ? amount / us / 1000 : 0;  // of bytes: GB/s
const gbps = value => value.toFixed(value < 10 ? 1 : 0) + ' GB/s';
const count = n => n.toLocaleString('en-US');
const moved = item => item.read_bytes + item.written_bytes;
const operations = item => item.macs + item.elements;
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? '' : 's'}`;
const boundWord = {memory: 'memory', matrix: 'matrix arithmetic', vector: 'vector arithmetic', LX: 'LX', ring: 'the ring', nothing: 'nothing',
                   launch: 'launches', copy: 'copies', idle: 'an idle card'};
const sourceOf = item => [item.aten, item.source].filter(Boolean).join(' at ');

// What of the time each limit bounds: names and us, the longest first.
const sharesOf = facts => {
  const shares = Object.entries(facts.bound.us).filter(([, us]) => us > 0).sort((a, b) => b[1] - a[1]);
  return shares.length ? shares : [[facts.bound.by, 0]];
};
const idealOf = facts => facts.waterfall.find(step => step.step === 'ideal').us;
const longest = facts => facts.items.map((item, i) => i).sort((a, b) => facts.items[b].us - facts.items[a].us);

function says(facts, item) {  // lines about an item, as [label, text, name of the fact]
  const lines = [['time', `${time(item.us)}, ${percent(item.us, facts.totals.total_us)} of all`, 'us'], ['bound by', boundWord[item.bound_by], 'bound_by']];
  if (item.file) lines.push(['file', item.file, 'file']);
  if (item.count > 1) lines.push([item.kind === 'operation' ? 'executes' : 'launches', count(item.count), 'count']);
  if (item.aten) lines.push(['ATen', item.aten, 'aten']);
  if (item.source) lines.push(['source', item.source, 'source']);
  if (item.modules) lines.push(['modules', item.modules, 'modules']);
  if (moved(item)) lines.push(['device memory', `${bytes(item.read_bytes)} read, ${bytes(item.written_bytes)} written, ${gbps(rate(moved(item), item.us))}`, 'bytes']);
  if (item.lx_bytes) lines.push(['LX', bytes(item.lx_bytes) + ' through its ports', 'lx_bytes']);
  if (item.ring_bytes) lines.push(['ring', bytes(item.ring_bytes) + ' sent', 'ring_bytes']);
  if (item.macs) lines.push(['multiply-accumulates', count(item.macs), 'macs']);
  if (item.elements) lines.push(['vector elements', count(item.elements), 'elements']);
  if (item.cores) lines.push(['cores', `${item.cores} of ${facts.machine.cores}`, 'cores']);
  return lines;
}
function helpOf(item) { return item.help ? `${item.help}${item.help_us > 0 ? ` (up to ${time(item.help_us)})` : ''}.` : ''; }

function sentence(facts) {
  const t = facts.totals, [[most, us]] = sharesOf(facts), where = `on ${facts.machine.name}`;
  const parts = [['kernels', t.kernel_us], ['copies', t.copy_us], ['launches', t.launch_us], ['idle', t.idle_us]].filter(([, spent]) => spent > 0);
  return `${time(t.total_us)} ${where}: ${parts.map(([what, spent]) => `${time(spent)} ${what}`).join(', ')}. ` +
    `Most of it, ${percent(us, t.total_us)}, is bound by ${boundWord[most]}.`;
}

function drawStack(root, facts) {
  root.replaceChildren();
  for (const [name, us] of sharesOf(facts)) {
    const part = make(root, 'i', {style: `width:${100 * us / facts.totals.total_us}%;background:${colourOf(name)}`, 'data-bound': name,
                                  title: `${boundWord[name]}: ${time(us)}, ${percent(us, facts.totals.total_us)}`},
                      us / facts.totals.total_us > 0.07 ? `${name} ${percent(us, facts.totals.total_us)}` : '');
    part.style.color = onColour(palette[colourName(name)]);
  }
}

function drawFirst(root, facts, open) {
  root.replaceChildren();
  for (const i of longest(facts).slice(0, 3)) {
    const item = facts.items[i];
    const card = make(root, 'button', {style: `border-left-color:${colourOf(item.bound_by)}`, 'data-item': i});
    const rank = make(card, 'div', {class: 'rank'});
    make(rank, 'span', {}, item.name);
    make(rank, 'span', {}, `${time(item.us)} \u00b7 ${percent(item.us, facts.totals.total_us)}`);
    make(card, 'div', {class: 'more'}, [`bound by ${boundWord[item.bound_by]}`, sourceOf(item) || item.file].filter(Boolean).join(', '));
    make(card, 'div', {class: 'help'}, helpOf(item));
    card.onclick = () => open(i);
  }
}

// Steps from the ideal to the total, of one set of facts or of several on one scale.
function drawWaterfall(root, all, names) {
  root.replaceChildren();
  const most = Math.max(...all.map(facts => facts.totals.total_us));
  const level = all.map(() => 0);
  const line = (step, why, values, offsets, colour, kind) => values.forEach((us, side) => {
    const box = make(root, 'div', {class: kind, 'data-step': step, 'data-side': side});
    const label = make(box, 'div', {}, side === 0 ? step : '');
    if (names) make(label, 'div', {class: 'side'}, names[side]);
    make(make(box, 'div', {class: 'track'}), 'i', {style: `left:${100 * offsets[side] / most}%;width:${100 * us / most}%;background:${colour};opacity:${side ? 0.55 : 1}`});
    make(box, 'div', {class: 'value'}, time(us));
    if (why && side === values.length - 1) make(box, 'div', {class: 'why'}, why);
  });
  const colours = {ideal: '--copy', 're-reads': '--hbm', 'memory below peak': '--hbm', 'arithmetic below peak': '--matrix', imbalance: '--matrix',
                   ring: '--ring', waits: '--soft', launch: '--launch', copies: '--copy', idle: '--soft'};
  for (const {step, why} of all[0].waterfall) {
    const values = all.map(facts => (facts.waterfall.find(other => other.step === step) || {us: 0}).us);
    if (values.every(us => us < 1e-6)) continue;
    line(step, why, values, [...level], `var(${colours[step] || '--soft'})`, 'step');
    values.forEach((us, side) => level[side] += us);
  }
  line('total', '', all.map(facts => facts.totals.total_us), all.map(() => 0), 'var(--ink)', 'step total');
}

// How long an item takes by itself: its window may be shorter, since it loads while the one before it computes.
const ownTime = item => Math.max(item.us, ...['memory_us', 'matrix_us', 'vector_us', 'lx_us', 'ring_us'].map(part => item[part] || 0));

function drawRoofline(root, facts, open) {
  root.replaceChildren();
  const width = 1184, height = 400, left = 92, right = 24, top = 22, bottom = 46, m = facts.machine;
  const points = facts.items.map((item, i) => ({item, i, x: moved(item) ? operations(item) / moved(item) : Infinity, y: operations(item) / ownTime(item) / 1000}))
    .filter(p => p.y > 0 && Number.isFinite(p.y));
  if (!points.length) { make(root, 'p', {class: 'soft', style: 'padding: 8px 18px'}, 'Nothing here computes.'); return; }
  const finite = points.filter(p => Number.isFinite(p.x)), peak = Math.max(m.macs_per_ns, m.elements_per_ns);
  const ridge = peak / m.memory_gb_per_s;
  const lowX = Math.min(0.1, ...finite.map(p => p.x)) / 1.5, highX = Math.max(ridge * 4, ...finite.map(p => p.x * 1.5)) * 3;
  const lowY = Math.min(m.elements_per_ns / 10, ...points.map(p => p.y)) / 1.6, highY = peak * 2;
  const X = v => left + (width - left - right) * (Math.log(v / lowX) / Math.log(highX / lowX));
  const Y = v => top + (height - top - bottom) * (1 - Math.log(v / lowY) / Math.log(highY / lowY));
  const svg = make(root, 'svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Roofline: operations per ns over operations per byte'});
  for (let d = Math.ceil(Math.log10(lowX)); 10 ** d <= highX; ++d) {
    make(svg, 'line', {class: 'grid', x1: X(10 ** d), x2: X(10 ** d), y1: top, y2: height - bottom});
    make(svg, 'text', {x: X(10 ** d), y: height - bottom + 16, 'text-anchor': 'middle'}, d < 0 ? (10 ** d).toFixed(-d) : count(10 ** d));
  }
  for (let d = Math.ceil(Math.log10(lowY)); 10 ** d <= highY; ++d) {
    make(svg, 'line', {class: 'grid', x1: left, x2: width - right, y1: Y(10 ** d), y2: Y(10 ** d)});
    const speed = d >= 3 ? count(10 ** (d - 3)) + ' T/s' : (d < 0 ? (10 ** d).toFixed(-d) : 10 ** d) + ' G/s';
    make(svg, 'text', {x: left - 8, y: Y(10 ** d) + 4, 'text-anchor': 'end'}, speed);
  }
  make(svg, 'text', {class: 'axis', x: width - right, y: height - 8, 'text-anchor': 'end'}, 'operations for each byte of device memory \u2192');
  make(svg, 'text', {class: 'axis', x: left, y: 14}, 'operations per second: multiply-accumulates and vector elements');
  for (const [roof, name] of [[m.macs_per_ns, 'matrix arrays'], [m.elements_per_ns, 'vector arrays']]) {
    const meets = roof / m.memory_gb_per_s;
    make(svg, 'path', {class: 'roof', d: `M${X(Math.max(lowX, lowY / m.memory_gb_per_s))},${Y(Math.max(lowY, lowX * m.memory_gb_per_s))} L${X(meets)},${Y(roof)} L${width - right},${Y(roof)}`,
                       style: `stroke:var(--${name.split(' ')[0]})`});
    make(svg, 'text', {x: width - right - 4, y: Y(roof) - 6, 'text-anchor': 'end'}, `${name}, ${(roof / 1000).toFixed(1)} T/s`);
  }
  const slope = Math.sqrt(lowX * m.elements_per_ns / m.memory_gb_per_s);
  make(svg, 'text', {x: X(slope), y: Y(slope * m.memory_gb_per_s) - 10, 'text-anchor': 'end'}, `device memory, ${m.memory_gb_per_s} GB/s`);
  const area = facts.totals.total_us;
  for (const p of [...points].sort((a, b) => b.item.us - a.item.us)) {
    const x = Number.isFinite(p.x) ? X(p.x) : width - right - 10;
    const dot = make(svg, 'circle', {class: 'point', cx: x, cy: Y(p.y), r: 4 + 16 * Math.sqrt(p.item.us / area), style: `fill:${colourOf(p.item.bound_by)}`,
                                     'data-item': p.i, tabindex: 0, role: 'button', 'aria-label': p.item.name});
    const lines = [['per byte', Number.isFinite(p.x) ? p.x.toFixed(2) + ' operations' : 'no byte of device memory', 'intensity'],
                   ['speed', (p.y / 1000).toFixed(3) + ' T operations/s', 'speed'], ...says(facts, p.item)];
    dot.addEventListener('mousemove', event => showTip(p.item.name, lines, event.clientX, event.clientY));
    dot.addEventListener('mouseleave', hideTip);
    dot.addEventListener('focus', () => { const box = dot.getBoundingClientRect(); showTip(p.item.name, lines, box.right, box.top); });
    dot.addEventListener('blur', hideTip);
    dot.addEventListener('click', () => open(p.i));
    dot.addEventListener('keydown', event => { if (event.key === 'Enter') open(p.i); });
  }
}

// The table of items; columns sort. `wanted` is a set of items, or null for all.
const kMostRows = 200;
class Items {
  constructor(table, facts, open) {
    Object.assign(this, {table, facts, open, by: 'time', wanted: null, whole: false});
    const total = facts.totals.total_us;
    this.columns = [
      ['name', item => item.name, null, ''], ['from', sourceOf, null, 'remark'], ['runs', item => item.count, item => count(item.count), 'number'],
      ['time', item => item.us, item => time(item.us), 'number'], ['share', item => item.us, item => percent(item.us, total), 'number'],
      ['bound by', item => item.bound_by, null, ''],
      ['bytes moved', moved, item => bytes(moved(item)), 'number'], ['speed', item => rate(moved(item), item.us), item => moved(item) ? gbps(rate(moved(item), item.us)) : '\u2013', 'number'],
      ['cores', item => item.cores || 0, item => item.cores ? String(item.cores) : '\u2013', 'number'],
      ['what would help', item => item.help_us || 0, helpOf, 'remark']];
    this.draw();
  }
  draw() {
    const {table, facts} = this, [, key, , ] = this.columns.find(([name]) => name === this.by);
    table.replaceChildren();
    const head = make(make(table, 'thead'), 'tr');
    for (const [name, , , kind] of this.columns) {
      const cell = make(head, 'th', {class: kind === 'number' ? 'number' : '', ...(name === this.by ? {'aria-sort': 'descending'} : {})});
      make(cell, 'button', {}, name + (name === this.by ? ' \u2193' : '')).onclick = () => { this.by = name; this.draw(); };
    }
    const order = facts.items.map((item, i) => i).filter(i => !this.wanted || this.wanted.has(i)).sort((a, b) => {
      const x = key(facts.items[a]), y = key(facts.items[b]);
      return typeof x === 'string' ? x.localeCompare(y) || a - b : y - x || a - b;
    });
    const body = make(table, 'tbody');
    for (const i of this.whole ? order : order.slice(0, kMostRows)) {
      const item = facts.items[i];
      const line = row(body, this.columns.map(([, value, text, kind]) => [(text || value)(item), kind]));
      line.dataset.item = i;
      line.tabIndex = 0;
      line.children[0].className = 'name';
      line.children[0].title = item.name;
      if (item.file) make(line.children[0], 'span', {class: 'file'}, item.file);
      const bound = line.children[5];
      bound.replaceChildren();
      make(bound, 'span', {class: 'swatch', style: `background:${colourOf(item.bound_by)}`});
      bound.append(boundWord[item.bound_by]);
      line.onclick = () => this.open(i);
      line.onkeydown = event => { if (event.key === 'Enter') this.open(i); };
    }
    if (order.length > kMostRows && !this.whole) {
      const line = row(body, [[`${count(order.length - kMostRows)} more: show all`]]);
      line.tabIndex = 0;
      line.firstChild.colSpan = this.columns.length;
      line.onclick = line.onkeydown = event => { if (event.type === 'click' || event.key === 'Enter') { this.whole = true; this.draw(); } };
    }
  }
}
