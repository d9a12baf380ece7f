// Everything that has time along it: rows of slices, rates, addresses of LX. All of it shows the same span of time and
// moves together. Drawn on canvases: what one pixel hides costs one look, so a frame is as quick with a million slices as
// with a thousand.

const colourName = name => '--' + ({memory: 'hbm', LX: 'lx', nothing: 'idle', fill: 'copy'}[name] || name);
const colourOf = name => `var(${colourName(name)})`;
let palette = {};
function readPalette() {
  const style = getComputedStyle(document.documentElement);
  palette = new Proxy({}, {get: (known, name) => known[name] ??= style.getPropertyValue(name).trim()});
}

// ---- the span of time that is shown, in ns ----
class Span {
  constructor(total) { this.total = Math.max(1, total); this.from = 0; this.to = this.total; this.changed = []; }
  set(from, to) {
    const length = Math.min(this.total, Math.max(20, to - from));
    this.from = Math.min(Math.max(0, from), this.total - length);
    this.to = this.from + length;
    if (!this.waiting) this.waiting = requestAnimationFrame(() => { this.waiting = 0; for (const draw of this.changed) draw(); });
  }
  zoom(factor, at = (this.from + this.to) / 2) { this.set(at - (at - this.from) * factor, at + (this.to - at) * factor); }
  move(part) { const by = part * (this.to - this.from); this.set(this.from + by, this.to + by); }
}
const gutter = canvas => canvas.clientWidth < 640 ? 62 : 92;
function ticks(span, most) {
  let step = 10 ** Math.ceil(Math.log10((span.to - span.from) / most));
  if ((span.to - span.from) / (step / 5) <= most) step /= 5;
  else if ((span.to - span.from) / (step / 2) <= most) step /= 2;
  const found = [];
  for (let at = Math.ceil(span.from / step) * step; at <= span.to; at += step) found.push(at);
  return found;
}
// A canvas in the pixels of the screen, empty, with lines of time behind; answers the context and where things are.
function board(canvas, height, span, below = 24) {
  const width = Math.max(200, canvas.clientWidth), ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + 'px';
  }
  const pen = canvas.getContext('2d'), left = gutter(canvas), right = 14;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = palette['--card'];
  pen.fillRect(0, 0, width, height);
  pen.font = '11px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  const scale = (width - left - right) / (span.to - span.from);
  const x = ns => left + (ns - span.from) * scale;
  pen.textAlign = 'center';
  for (const at of ticks(span, Math.max(2, width / 130))) {
    pen.fillStyle = palette['--line'];
    pen.fillRect(Math.round(x(at)), 4, 1, height - below);
    pen.fillStyle = palette['--soft'];
    pen.fillText(time(at / 1000), Math.min(x(at), width - 26), height - below / 2);
  }
  pen.textAlign = 'left';
  return {pen, width, height, left, right, scale, x};
}

// ---- rows of slices ----
class Rows {
  constructor(canvas, facts, rows, span) {
    Object.assign(this, {canvas, facts, span, match: null, chosen: null, at: 0});
    this.rows = rows.map(({name, slices}) => {
      const count = slices.length / 4, state = new Uint8Array(count), item = new Int32Array(count), begin = new Float64Array(count), end = new Float64Array(count);
      for (let i = 0; i < count; ++i) {
        state[i] = slices[4 * i]; item[i] = slices[4 * i + 1];
        begin[i] = slices[4 * i + 2]; end[i] = begin[i] + slices[4 * i + 3];
      }
      return {name, count, state, item, begin, end};
    });
    this.tall = 22; this.low = 15;  // the first rows, which have names in them; and the cores
    this.top = 8;
    span.changed.push(() => this.draw());
    this.listen();
  }
  heightOf(row) { return /^core /.test(row.name) ? this.low : this.tall; }
  // First slice that ends after the moment.
  static find(row, ns) {
    let low = 0, high = row.count;
    while (low < high) { const middle = (low + high) >> 1; if (row.end[middle] <= ns) low = middle + 1; else high = middle; }
    return low;
  }
  draw() {
    const height = this.top + this.rows.reduce((sum, row) => sum + this.heightOf(row) + 2, 0) + 28;
    const space = board(this.canvas, height, this.span), {pen, left, scale, x} = space;
    const names = this.facts.states, colours = names.map(name => palette[colourName(name)]);
    let y = this.top;
    for (const row of this.rows) {
      const tall = this.heightOf(row);
      pen.fillStyle = palette['--soft'];
      pen.fillText(row.name, 10, y + tall / 2, left - 14);
      this.drawRow(row, y, tall, space, colours);
      y += tall + 2;
    }
    if (this.chosen) this.drawChosen(space);
  }
  drawRow(row, y, tall, {pen, scale, x}, colours) {
    const perPixel = 1 / scale, {from, to} = this.span;
    let faint = false;
    for (let i = Rows.find(row, from); i < row.count && row.begin[i] < to;) {
      const begin = Math.max(from, row.begin[i]), end = Math.min(to, row.end[i]);
      const x0 = x(begin), wide = Math.max(1, (end - begin) * scale - (end - begin > 4 * perPixel ? 0.6 : 0));
      const wanted = !this.match || this.match.has(row.item[i]);
      if (wanted === faint) { pen.globalAlpha = wanted ? 1 : 0.16; faint = !wanted; }
      pen.fillStyle = colours[row.state[i]];
      pen.fillRect(x0, y, wide, tall);
      if (wide > 46 && tall === this.tall && row.item[i] >= 0) this.drawName(pen, row, i, x0, y, wide, tall);
      if (end - begin >= perPixel) { ++i; continue; }
      // What else begins within this pixel is hidden by it.
      const next = Rows.find(row, Math.max(row.end[i], row.begin[i] + perPixel));
      i = Math.max(i + 1, next);
    }
    pen.globalAlpha = 1;
  }
  drawName(pen, row, i, x0, y, wide, tall) {
    pen.save();
    pen.beginPath();
    pen.rect(x0, y, wide - 4, tall);
    pen.clip();
    pen.fillStyle = onColour(palette[colourName(this.facts.states[row.state[i]])]);
    pen.fillText(this.facts.items[row.item[i]].name, x0 + 5, y + tall / 2 + 0.5);
    pen.restore();
  }
  drawChosen({pen, x}) {
    const {row: number, i} = this.chosen, row = this.rows[number];
    if (row.end[i] < this.span.from || row.begin[i] > this.span.to) return;
    let y = this.top;
    for (let r = 0; r < number; ++r) y += this.heightOf(this.rows[r]) + 2;
    const x0 = Math.max(x(this.span.from), x(row.begin[i]));
    pen.strokeStyle = palette['--ink'];
    pen.lineWidth = 2;
    pen.strokeRect(x0 - 1, y - 1, Math.max(3, Math.min(x(this.span.to), x(row.end[i])) - x0 + 2), this.heightOf(row) + 2);
  }
  // What is at a place of the canvas: {row, i}, or null.
  pick(px, py) {
    let y = this.top;
    const left = gutter(this.canvas), wide = this.canvas.clientWidth - left - 14;
    if (px < left) return null;
    const ns = this.span.from + (px - left) / wide * (this.span.to - this.span.from), slack = (this.span.to - this.span.from) / wide;
    for (let number = 0; number < this.rows.length; ++number) {
      const row = this.rows[number], tall = this.heightOf(row);
      if (py >= y && py < y + tall + 2) {
        const i = Rows.find(row, ns);
        return i < row.count && row.begin[i] <= ns + slack ? {row: number, i} : null;
      }
      y += tall + 2;
    }
    return null;
  }
  sliceOf({row: number, i}) {
    const row = this.rows[number];
    return {row: row.name, state: this.facts.states[row.state[i]], item: row.item[i], begin: row.begin[i], end: row.end[i]};
  }
  choose(place, quietly) {
    this.chosen = place;
    this.draw();
    if (!quietly && this.chose) this.chose(place && this.sliceOf(place));
  }
  // Makes a slice visible, wide enough to see.
  reveal(place) {
    const {begin, end} = this.sliceOf(place), {from, to} = this.span;
    if (begin < from || end > to || (end - begin) / (to - from) < 0.01) {
      const margin = Math.max((end - begin) * 4, 100);
      this.span.set(begin - margin, end + margin);
    }
    this.choose(place);
  }
  firstOf(wanted, after = null) {
    const start = after || {row: 0, i: -1};
    for (let pass = 0; pass < 2; ++pass)
      for (let number = 0; number < this.rows.length; ++number)
        for (let i = 0; i < this.rows[number].count; ++i) {
          const later = number > start.row || (number === start.row && i > start.i);
          if ((pass === 1 || later) && wanted.has(this.rows[number].item[i])) return {row: number, i};
        }
    return null;
  }
  step(by) {
    if (!this.chosen) return this.reveal({row: 0, i: 0});
    const {row, i} = this.chosen;
    this.reveal({row, i: Math.min(this.rows[row].count - 1, Math.max(0, i + by))});
  }
  listen() {
    const canvas = this.canvas;
    let grip = null;
    const nsAt = event => {
      const left = gutter(canvas), box = canvas.getBoundingClientRect();
      return this.span.from + (event.clientX - box.left - left) / (canvas.clientWidth - left - 14) * (this.span.to - this.span.from);
    };
    canvas.onwheel = event => {
      if (event.ctrlKey || event.metaKey) { event.preventDefault(); this.span.zoom(Math.exp(event.deltaY * 0.002), nsAt(event)); }
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.span.move((event.deltaX || event.deltaY) / canvas.clientWidth);
      }
    };
    canvas.onpointerdown = event => { grip = {x: event.clientX, from: this.span.from, to: this.span.to, moved: false}; canvas.setPointerCapture(event.pointerId); };
    canvas.onpointermove = event => {
      if (grip) {
        const by = (grip.x - event.clientX) / (canvas.clientWidth - gutter(canvas) - 14) * (grip.to - grip.from);
        grip.moved ||= Math.abs(event.clientX - grip.x) > 3;
        if (grip.moved) { canvas.classList.add('moving'); this.span.set(grip.from + by, grip.to + by); hideTip(); }
        return;
      }
      const place = this.pick(event.offsetX, event.offsetY);
      if (place) showTip(...this.says(this.sliceOf(place)), event.clientX, event.clientY); else hideTip();
    };
    canvas.onpointerup = event => {
      canvas.classList.remove('moving');
      if (grip && !grip.moved) this.choose(this.pick(event.offsetX, event.offsetY));
      grip = null;
    };
    canvas.onpointerleave = hideTip;
    canvas.ondblclick = event => this.span.zoom(0.4, nsAt(event));
    canvas.onkeydown = event => {
      const act = {ArrowLeft: () => this.span.move(-0.2), ArrowRight: () => this.span.move(0.2), '+': () => this.span.zoom(0.6), '=': () => this.span.zoom(0.6),
                   '-': () => this.span.zoom(1 / 0.6), '0': () => this.span.set(0, this.span.total), Home: () => this.span.set(0, this.span.to - this.span.from),
                   End: () => this.span.set(this.span.total - (this.span.to - this.span.from), this.span.total),
                   ']': () => this.step(1), '[': () => this.step(-1), ArrowDown: () => this.otherRow(1), ArrowUp: () => this.otherRow(-1),
                   Enter: () => this.open && this.chosen && this.open(this.sliceOf(this.chosen)), Escape: () => this.choose(null)}[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    };
  }
  otherRow(by) {
    if (!this.chosen) return this.reveal({row: 0, i: 0});
    const {begin} = this.sliceOf(this.chosen), row = Math.min(this.rows.length - 1, Math.max(0, this.chosen.row + by));
    this.reveal({row, i: Math.min(this.rows[row].count - 1, Rows.find(this.rows[row], begin))});
  }
}
// Text that can be read on a colour, given as #rrggbb.
function onColour(colour) {
  const [r, g, b] = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
  return 0.3 * r + 0.59 * g + 0.11 * b > 140 ? '#14181d' : '#ffffff';
}

// ---- rates over time; a pixel shows the mean of what it covers ----
class Rates {
  constructor(canvas, counters, peak, span) {
    Object.assign(this, {canvas, peak, span});
    this.series = counters.map(({name, unit, points}) => {
      const count = points.length / 2, at = new Float64Array(count), value = new Float64Array(count), sum = new Float64Array(count);
      for (let i = 0; i < count; ++i) {
        at[i] = points[2 * i]; value[i] = points[2 * i + 1];
        sum[i] = i ? sum[i - 1] + value[i - 1] * (at[i] - at[i - 1]) : 0;
      }
      return {name, unit, at, value, sum, most: value.reduce((a, b) => Math.max(a, b), 0)};
    });
    span.changed.push(() => this.draw());
    canvas.onpointermove = event => {
      const left = gutter(canvas), wide = canvas.clientWidth - left - 14;
      if (event.offsetX < left) return hideTip();
      const ns = span.from + (event.offsetX - left) / wide * (span.to - span.from), pixel = (span.to - span.from) / wide;
      showTip(time(ns / 1000), this.series.map(s => [s.name, this.mean(s, ns, ns + pixel).toFixed(1) + ' ' + s.unit, s.name]), event.clientX, event.clientY);
    };
    canvas.onpointerleave = hideTip;
  }
  static until({at, value, sum}, ns) {  // the integral from the first point
    let low = 0, high = at.length;
    while (low < high) { const middle = (low + high) >> 1; if (at[middle] <= ns) low = middle + 1; else high = middle; }
    return low ? sum[low - 1] + value[low - 1] * (ns - at[low - 1]) : 0;
  }
  mean(series, from, to) { return Math.max(0, (Rates.until(series, to) - Rates.until(series, from)) / (to - from)); }
  draw() {
    const {pen, width, height, left, right, scale, x} = board(this.canvas, 170, this.span);
    const most = Math.max(1, this.peak || 0, ...this.series.map(s => s.most)) * 1.05, floor = height - 26, tall = floor - 10;
    const y = value => floor - tall * value / most;
    pen.textAlign = 'right';
    let step = 10 ** Math.floor(Math.log10(most / 2));
    while (most / step > 5) step *= 2;
    for (let value = 0; value <= most; value += step) {
      pen.fillStyle = palette['--line'];
      pen.fillRect(left, Math.round(y(value)), width - left - right, 1);
      pen.fillStyle = palette['--soft'];
      pen.fillText(value + ' GB/s', left - 8, y(value));
    }
    pen.textAlign = 'left';
    for (const series of this.series) {
      pen.beginPath();
      pen.moveTo(left, floor);
      const last = width - right;
      for (let px = left; px < last; ++px) {
        const ns = this.span.from + (px - left) / scale, value = y(this.mean(series, ns, ns + 1 / scale));
        pen.lineTo(px, value);
        pen.lineTo(px + 1, value);
      }
      pen.lineTo(last, floor);
      pen.closePath();
      pen.fillStyle = pen.strokeStyle = palette[counterColour(series.name)];
      pen.globalAlpha = 0.28; pen.fill();
      pen.globalAlpha = 1; pen.lineWidth = 1.2; pen.stroke();
    }
    if (!this.peak) return;
    pen.strokeStyle = palette['--hbm'];
    pen.setLineDash([6, 4]);
    pen.beginPath();
    pen.moveTo(left, y(this.peak));
    pen.lineTo(width - right, y(this.peak));
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = palette['--soft'];
    pen.textAlign = 'right';
    pen.fillText(`peak of device memory ${this.peak} GB/s`, width - right - 4, y(this.peak) + 9);
  }
}
const counterColour = name => ({'HBM read': '--load', 'HBM written': '--store', ring: '--ring'}[name] || '--copy');

// ---- values in LX: rectangles of time and address ----
class Lives {
  constructor(canvas, facts, span) {
    Object.assign(this, {canvas, facts, span});
    this.top = Math.max(1, facts.totals.lx_top_bytes);
    span.changed.push(() => this.draw());
    canvas.onpointermove = event => {
      const life = this.pick(event.offsetX, event.offsetY);
      if (life) showTip(life.tensor, this.says(life), event.clientX, event.clientY); else hideTip();
    };
    canvas.onpointerleave = hideTip;
  }
  says(life) {
    return [['address', `${life.address.toLocaleString('en-US')} \u2013 ${(life.address + life.bytes - 1).toLocaleString('en-US')}`, 'address'],
            ['per core', exact(life.bytes), 'bytes'], ['held by', `${life.cores} ${life.cores === 1 ? 'core' : 'cores'}`, 'cores'],
            ['written by', this.facts.items[life.item].name, 'item'], ['from', time(life.begin_ns / 1000), 'begin'], ['to', time(life.end_ns / 1000), 'end']];
  }
  space() { return {floor: this.canvas.clientHeight - 26, tall: this.canvas.clientHeight - 40}; }
  pick(px, py) {
    const left = gutter(this.canvas), wide = this.canvas.clientWidth - left - 14, {floor, tall} = this.space();
    const ns = this.span.from + (px - left) / wide * (this.span.to - this.span.from), address = (floor - py) / tall * this.top * 1.04;
    return this.facts.lx.findLast(l => l.begin_ns <= ns && ns < l.end_ns && l.address <= address && address < l.address + l.bytes);
  }
  draw() {
    const {pen, width, height, left, right, x} = board(this.canvas, 260, this.span), floor = height - 26, tall = height - 40;
    const y = address => floor - tall * address / (this.top * 1.04);
    let step = 128;
    while (this.top / step > 6) step *= 2;
    pen.textAlign = 'right';
    for (let address = 0; address <= this.top * 1.04; address += step) {
      pen.fillStyle = palette['--line'];
      pen.fillRect(left, Math.round(y(address)), width - left - right, 1);
      pen.fillStyle = palette['--soft'];
      pen.fillText(address ? bytes(address) : '0 B', left - 8, y(address));
    }
    pen.textAlign = 'left';
    this.facts.lx.forEach((life, i) => {
      if (life.end_ns <= this.span.from || life.begin_ns >= this.span.to) return;
      const x0 = x(Math.max(this.span.from, life.begin_ns)), x1 = x(Math.min(this.span.to, life.end_ns));
      const y0 = y(life.address + life.bytes), tallness = Math.max(1.5, y(life.address) - y0);
      pen.globalAlpha = 0.5 + 0.4 * ((life.item * 0.618) % 1);
      pen.fillStyle = palette['--lx'];
      pen.fillRect(x0, y0, Math.max(1, x1 - x0 - 0.6), tallness);
      pen.globalAlpha = 1;
      if (tallness >= 13 && x1 - x0 > life.tensor.length * 6.4 + 8) {
        pen.fillStyle = onColour(palette['--lx']);
        pen.fillText(life.tensor, x0 + 5, y0 + tallness / 2);
      }
    });
  }
}
