const plan = recorded;
const byName = new Map(plan.buffers.map(b => [b.buffer, b]));
const placed = plan.buffers.filter(b => b.address !== null);

const node = i => `${i} (${plan.nodes[i].op})`;
const rangeOf = b => `${b.address.toLocaleString('en-US')} \u2013 ${(b.address + b.bytes_per_core - 1).toLocaleString('en-US')}`;
const named = names => {
  const ops = new Map(plan.nodes.map(n => [n.name, n.op]));
  return names.map(n => `${n} (${ops.get(n)})`).join(', ');
};

// ---- one colour per slot: what takes over a slot, or is another division of the same data, keeps the colour ----
const rootOf = b => {
  const parent = byName.get(b.in_place_of || b.copy_of || b.part_of);
  return parent && parent !== b ? rootOf(parent) : b;
};
const roots = [...new Set(placed.map(rootOf))];
const hue = b => (25 + roots.indexOf(rootOf(b)) * 137.508) % 360;

// ---- summary ----
document.getElementById('name').textContent = plan.graph;
const gap = plan.bound - plan.saved;
document.getElementById('lead').textContent =
  `${placed.length} of ${plan.buffers.length} buffers live in the scratchpads of ${plan.cores} ` +
  `${plan.cores === 1 ? 'core' : 'cores'}, over ${plan.nodes.length} nodes; what they save is traffic of device memory.` +
  (plan.refused_hints || []).map(hint => ` Refused: ${hint.reason}.`).join('');

tile('Traffic avoided', bytes(plan.saved), `${percent(plan.saved, plan.at_stake)} of ${bytes(plan.at_stake)} at stake`,
     plan.saved, plan.at_stake, 'var(--lx)');
tile('Traffic left', bytes(plan.moved), `${bytes(plan.compulsory)} of it compulsory`,
     plan.compulsory, plan.moved, 'var(--hbm)');
tile('LX in use at the peak', bytes(plan.peak), `of ${bytes(plan.capacity)} in every core`, plan.peak, plan.capacity, 'var(--lx)');
tile('Could still be avoided', plan.optimal || gap === 0 ? '0 B' : `\u2264 ${bytes(gap)}`,
     `${plan.solver}: ${plan.optimal ? 'proven best' : gap > 0 ? 'not proven best' : 'meets the bound'}`,
     plan.saved, plan.bound, 'var(--lx)');
tile('Modelled time', time(plan.cost.us),
     `memory ${time(plan.cost.memory_us)}, ring ${time(plan.cost.ring_us)}`, plan.cost.memory_us,
     plan.cost.memory_us + plan.cost.compute_us + plan.cost.vector_us + plan.cost.ring_us, 'var(--hbm)');

// ---- what is said about one buffer ----
function facts(b) {
  const rows = [['place', b.address === null ? 'device memory' : 'LX', 'place']];
  if (b.address !== null) rows.push(['address', rangeOf(b), 'address']);
  rows.push([b.address === null && !b.copy_of ? 'size' : 'per core', exact(b.bytes_per_core), 'bytes_per_core'],
            ['from', 'node ' + node(b.first), 'first'], ['to', 'node ' + node(b.last), 'last']);
  if (b.made_by.length) rows.push(['made by', named(b.made_by), 'made_by']);
  if (b.read_by.length) rows.push(['read by', named(b.read_by), 'read_by']);
  rows.push([b.address === null ? 'would save' : 'saves', exact(b.saves), 'saves']);
  rows.push(['still moves', exact(b.moves), 'moves']);
  if (b.remark) rows.push([b.address === null ? 'why' : 'how', b.remark, 'remark']);
  return rows;
}
function show(b, x, y) {
  showTip(b.buffer, facts(b), x, y);
  for (const part of document.querySelectorAll('[data-buffer]')) {
    const other = byName.get(part.dataset.buffer);
    part.classList.toggle('chosen', other === b);
    part.classList.toggle('kin', b.address !== null && other.address !== null && rootOf(other) === rootOf(b));
  }
  document.getElementById('map').classList.toggle('busy', b.address !== null);
}
function hide() {
  hideTip();
  document.getElementById('map').classList.remove('busy');
  for (const part of document.querySelectorAll('.chosen, .kin')) part.classList.remove('chosen', 'kin');
}
function explains(element, b) {
  element.dataset.buffer = b.buffer;
  element.addEventListener('mousemove', event => show(b, event.clientX, event.clientY));
  element.addEventListener('mouseleave', hide);
  element.addEventListener('focus', () => { const r = element.getBoundingClientRect(); show(b, r.right, r.top); });
  element.addEventListener('blur', hide);
}

// ---- the map ----
const chevron = 'M0,-4 L4,0 L0,4 L-1.5,4 L2.5,0 L-1.5,-4 Z';
function patterns(svg, id) {
  const hatch = make(make(svg, 'defs'), 'pattern', {id, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'});
  make(hatch, 'rect', {width: 1.6, height: 6, fill: 'var(--mark)', 'fill-opacity': 0.75});
}
function step(most) {  // of the address axis: a power of two with at most eight lines
  let size = 128;
  while (most / size > 8) size *= 2;
  return size;
}
function drawMap() {
  const width = 1184, left = 76, right = 20, top = 30, plot = 410;
  const names = plan.nodes.length <= 72, bottom = names ? 120 : 50;
  const svg = make(document.getElementById('map'), 'svg', {viewBox: `0 0 ${width} ${top + plot + bottom}`, role: 'img',
    'aria-label': 'Addresses of LX over time, one rectangle per buffer'});
  patterns(svg, 'hatch');
  const tallest = Math.max(plan.peak, 1), limit = plan.capacity <= tallest * 1.25;
  const most = limit ? plan.capacity * 1.02 : tallest * 1.06;
  const x = t => left + (width - left - right) * t / (2 * Math.max(1, plan.nodes.length));
  const y = a => top + plot * (1 - a / most);
  const lines = step(most), columns = Math.ceil(plan.nodes.length / 30);
  for (let a = 0; a <= most; a += lines) {
    make(svg, 'line', {class: 'grid', x1: left, x2: width - right, y1: y(a), y2: y(a)});
    make(svg, 'text', {x: left - 8, y: y(a) + 4, 'text-anchor': 'end'}, a ? bytes(a) : '0');
  }
  plan.nodes.forEach((n, i) => {
    const middle = x(2 * i + 1);
    if (i % columns === 0) make(svg, 'line', {class: 'grid', x1: x(2 * i), x2: x(2 * i), y1: top, y2: top + plot, 'stroke-opacity': 0.55});
    if (i % (names ? Math.ceil(plan.nodes.length / 52) : columns) === 0)
      make(svg, 'text', {x: middle, y: top + plot + 15, 'text-anchor': 'middle'}, i);
    if (names) make(svg, 'text', {transform: `translate(${middle + 3.5} ${top + plot + 22}) rotate(-90)`, 'text-anchor': 'end'},
                    n.op.length > 12 ? n.op.slice(0, 11) + '\u2026' : n.op);
  });
  make(svg, 'text', {class: 'axis', x: left, y: 19}, 'address in LX, bytes');
  make(svg, 'text', {class: 'axis', x: width - right, y: top + plot + bottom - 3, 'text-anchor': 'end'}, 'time in nodes \u2192');
  if (limit) make(svg, 'line', {class: 'limit', x1: left, x2: width - right, y1: y(plan.capacity), y2: y(plan.capacity)});
  make(svg, 'text', {class: 'axis', x: width - right, y: 19, 'text-anchor': 'end'},
       limit ? `capacity ${bytes(plan.capacity)}` : `peak ${bytes(plan.peak)} of ${bytes(plan.capacity)} capacity`);
  // Parents share their last step with the child that takes over their slot; the drawing shares it evenly.
  const successors = new Map(placed.filter(b => b.in_place_of).map(b => [b.in_place_of, b]));
  const byArea = [...placed].sort((a, b) => b.bytes_per_core - a.bytes_per_core);  // small ones on top
  for (const b of byArea) {
    const begin = x(b.live[0] + (b.in_place_of ? 0.5 : 0));
    const end = x(b.live[1] - (successors.has(b.buffer) ? 0.5 : 0));
    const height = Math.max(3, y(b.address) - y(b.address + b.bytes_per_core)), y0 = y(b.address) - height;
    const group = make(svg, 'g', {class: b.copy_of ? 'buffer copy' : 'buffer', style: `--hue:${hue(b).toFixed(1)}`, tabindex: 0,
                                  role: 'button', 'aria-label': b.buffer});
    const box = {x: begin, y: y0, width: Math.max(2, end - begin), height, rx: Math.min(3, height / 2)};
    make(group, 'rect', {class: 'body', ...box});
    if (b.clone) make(group, 'rect', {class: 'over', ...box, fill: 'url(#hatch)'});
    if (b.in_place_of && height >= 6)
      make(group, 'path', {class: 'chevron', d: chevron, transform: `translate(${begin + 4} ${y0 + height / 2}) scale(${Math.min(1, height / 12)})`});
    const label = b.copied_out ? b.buffer + ' \u2197' : b.buffer, room = end - begin - (b.in_place_of ? 16 : 6);
    if (height >= 13 && room >= label.length * 6.1)
      make(group, 'text', {x: (begin + end + (b.in_place_of ? 8 : 0)) / 2, y: y0 + height / 2 + 3.7, 'text-anchor': 'middle'}, label);
    explains(group, b);
  }
}
function drawLegend() {
  const legend = document.getElementById('legend');
  const entry = (text, draw) => {
    const item = make(legend, 'span');
    const svg = make(item, 'svg', {viewBox: '0 0 26 14'});
    draw(svg);
    make(item, 'span', {}, text);
  };
  const box = (svg, kind) => make(make(svg, 'g', {class: kind, style: '--hue:190'}), 'rect', {class: 'body', x: 1, y: 1, width: 24, height: 12, rx: 3});
  entry('made on the cores', svg => box(svg, 'buffer'));
  entry('takes over the slot to its left', svg => {
    const group = box(svg, 'buffer').parentNode;
    make(group, 'path', {class: 'chevron', d: chevron, transform: 'translate(6 7)'});
  });
  entry('clone of an input', svg => { box(svg, 'buffer'); make(svg, 'rect', {x: 1, y: 1, width: 24, height: 12, rx: 3, fill: 'url(#hatch)'}); });
  entry('shuffled to other cores over the ring', svg => box(svg, 'buffer copy'));
  if (placed.some(b => b.copied_out)) entry('copied out once', svg => make(svg, 'text', {x: 9, y: 12}, '\u2197'));
  make(legend, 'span', {}, 'One colour: one slot, or one buffer in several divisions.');
}

// ---- tables ----
function drawBuffers() {
  const table = document.getElementById('buffers');
  row(make(table, 'thead'), [['buffer'], ['place'], ['address', 'number'], ['nodes', 'number'], ['bytes per core', 'number'],
      ['saves', 'number'], ['still moves', 'number'], ['remark']], 'th');
  const body = make(table, 'tbody');
  for (const b of plan.buffers) {
    const lx = b.address !== null;
    const line = row(body, [[''], [lx ? 'LX' : 'device memory', lx ? 'in-lx' : 'in-hbm'], [lx ? b.address.toLocaleString('en-US') : '\u2013', 'number'],
      [`${b.first} \u2013 ${b.last}`, 'number'], [bytes(b.bytes_per_core), 'number'], [lx ? bytes(b.saves) : '\u2013', 'number'],
      [bytes(b.moves), 'number'], [b.remark, 'remark']]);
    make(line.firstChild, 'span', lx ? {class: 'swatch', style: `--hue:${hue(b).toFixed(1)}`} : {class: 'swatch off'});
    line.firstChild.append(b.buffer);
    explains(line, b);
  }
}
function drawFilters() {
  const filters = document.getElementById('filters');
  const choices = [['all', () => true], ['in LX', b => b.address !== null], ['in device memory', b => b.address === null]];
  for (const [name, wanted] of choices) {
    const button = make(filters, 'button', {'aria-pressed': name === 'all'}, `${name} (${plan.buffers.filter(wanted).length})`);
    button.addEventListener('click', () => {
      for (const other of filters.children) other.setAttribute('aria-pressed', other === button);
      for (const line of document.querySelectorAll('#buffers tbody tr')) line.hidden = !wanted(byName.get(line.dataset.buffer));
    });
  }
}
function drawAlternatives() {
  if (!plan.alternatives) return;
  document.getElementById('others').hidden = false;
  const table = document.getElementById('alternatives');
  row(make(table, 'thead'), [['solver'], ['saves', 'number'], ['left', 'number'], ['modelled time', 'number'],
      ['units of work', 'number'], ['']], 'th');
  const body = make(table, 'tbody');
  for (const a of plan.alternatives)
    row(body, [[a.solver], [bytes(a.saved), 'number'], [bytes(a.moved), 'number'], [time(a.us), 'number'],
               [a.work.toLocaleString('en-US'), 'number'], [a.optimal ? 'proven best' : '']]);
}
drawMap();
drawLegend();
drawBuffers();
drawFilters();
drawAlternatives();
