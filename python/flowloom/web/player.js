// Plays packets over a network. Times are in ns; arrays of transmissions are in the order of their starts.
const $ = id => document.getElementById(id);
const state = {now: 0, playing: false, last: 0, shows: [], panes: []};

async function start(text) {
  state.shows = JSON.parse(await unpacked(text));
  state.shows.forEach(prepare);
  state.end = Math.max(...state.shows.map(show => show.until));
  for (const [id, first] of [['left', 0], ['right', Math.min(1, state.shows.length - 1)]]) {
    state.shows.forEach((show, i) => $(id).add(new Option(show.system, i)));
    if (id === 'right') $(id).add(new Option('none', ''));
    $(id).value = id === 'right' && state.shows.length === 1 ? '' : first;
    $(id).onchange = arrange;
  }
  $('play').onclick = toggle;
  $('back').onclick = () => step(-1);
  $('forward').onclick = () => step(1);
  $('time').oninput = () => seek($('time').value / 1e4 * state.end);
  $('speed').oninput = pace;
  addEventListener('resize', draw);
  addEventListener('keydown', event => {
    if (['INPUT', 'SELECT', 'BUTTON'].includes(event.target.tagName)) return;
    const act = {' ': toggle, ArrowLeft: () => step(-1), ArrowRight: () => step(1)}[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  pace();
  arrange();
  document.body.dataset.player = 'ready';
}

// How many of the numbers of a sorted array are at most x.
function upTo(sorted, x) {
  let low = 0, high = sorted.length;
  while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] <= x) low = middle + 1; else high = middle; }
  return low;
}

function prepare(show) {
  show.joins = show.links.map(() => []);
  show.starts = show.links.map(() => []);
  show.longest = 0;
  show.until = 0;
  show.port.forEach((port, i) => {
    if (!show.dropped[i]) { show.joins[port].push(show.joined[i]); show.starts[port].push(show.start[i]); }
    const last = show.end[i] + show.delay[port];
    show.longest = Math.max(show.longest, last - show.start[i]);
    show.until = Math.max(show.until, last);
  });
  for (const times of [...show.joins, ...show.starts]) times.sort((a, b) => a - b);
  show.most = 1;
  show.joins.forEach((times, port) => times.forEach((t, i) => { show.most = Math.max(show.most, i + 1 - upTo(show.starts[port], t)); }));
  for (const flow of show.flows) {
    flow.times = flow.got.map(([time]) => time);
    flow.windowTimes = (flow.window ?? []).map(([time]) => time);
  }
}

const waiting = (show, port, t) => Math.max(0, upTo(show.joins[port], t) - upTo(show.starts[port], t));
const pickedColour = flow => COLOURS[flow % COLOURS.length];

// ns of the network in a second of ours, on a logarithmic scale.
const speed = () => 10 ** (3 + 6 * $('speed').value / 100);
function written(ns) {
  const [size, unit] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']].find(([size]) => Math.abs(ns) >= size) ?? [1, 'ns'];
  return `${(ns / size).toPrecision(4)} ${unit}`;
}
function pace() { $('pace').value = `${written(speed())} a second`; }

function arrange() {
  $('panes').replaceChildren();
  state.panes = [$('left').value, $('right').value].filter(value => value !== '').map(value => {
    const pane = document.createElement('section'), show = state.shows[value];
    pane.className = 'pane';
    pane.innerHTML = '<h2></h2><canvas role="img"></canvas><table><thead><tr><th>flow</th><th>received</th><th></th><th class=n>window</th></tr></thead><tbody></tbody></table><p class="note queues"></p><div class="agent" hidden><label>table at <select></select></label><table><thead><tr></tr></thead><tbody></tbody></table></div>';
    pane.querySelector('h2').textContent = show.system;
    offer(show, pane);
    const canvas = pane.querySelector('canvas');
    canvas.setAttribute('aria-label', `packets of ${show.system} on the network`);
    $('panes').append(pane);
    return {show, pane, canvas};
  });
  draw();
}

function toggle() {
  state.playing = !state.playing;
  if (state.playing && state.now >= state.end) state.now = 0;
  $('play').textContent = state.playing ? 'stop' : 'play';
  state.last = performance.now();
  if (state.playing) requestAnimationFrame(frame);
}
function frame(time) {
  if (!state.playing) return;
  state.now += Math.max(0, time - state.last) / 1e3 * speed();
  state.last = time;
  if (state.now >= state.end) { state.now = state.end; toggle(); }
  draw();
  if (state.playing) requestAnimationFrame(frame);
}
function seek(t) { state.now = Math.max(0, Math.min(state.end, t)); draw(); }

// The next or last start of a transmission in what is shown.
function step(way) {
  if (state.playing) toggle();
  const found = state.panes.map(({show}) => {
    let i = upTo(show.start, state.now);
    if (way > 0) return show.start[i] ?? Infinity;
    while (i > 0 && show.start[i - 1] >= state.now) i--;
    return i > 0 ? show.start[i - 1] : -Infinity;
  });
  const next = way > 0 ? Math.min(...found) : Math.max(...found);
  if (Number.isFinite(next)) seek(next);
}

function draw() {
  $('time').value = state.end ? state.now / state.end * 1e4 : 0;
  $('now').value = written(state.now);
  for (const {show, pane, canvas} of state.panes) { paint(show, canvas, state.now); tell(show, pane, state.now); }
}

function paint(show, canvas, t) {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale; canvas.height = height * scale;
  const c = canvas.getContext('2d'), ink = getComputedStyle(document.body).color;
  c.scale(scale, scale);
  const top = Math.max(...show.nodes.map(node => node[2])), left = 24, above = 26;
  const at = show.nodes.map(([, x, y]) => [left + x * (width - 2 * left), height - above - y / Math.max(top, 1) * (height - 2 * above)]);
  // A cable has two directions: each keeps to its right.
  const ends = show.links.map(([a, b]) => {
    const [x, y] = at[a], [u, v] = at[b], length = Math.hypot(u - x, v - y) || 1, dx = -(v - y) / length * 3, dy = (u - x) / length * 3;
    return [x + dx, y + dy, u + dx, v + dy];
  });
  c.strokeStyle = ink; c.globalAlpha = 0.25; c.lineWidth = 1;
  for (const [x, y, u, v] of ends) { c.beginPath(); c.moveTo(x, y); c.lineTo(u, v); c.stroke(); }
  c.globalAlpha = 1;
  for (let i = upTo(show.start, t) - 1; i >= 0 && show.start[i] >= t - show.longest; i--) {
    const port = show.port[i], delay = Math.max(show.delay[port], 1), [x, y, u, v] = ends[port];
    c.strokeStyle = pickedColour(show.flow[i]);
    if (show.dropped[i]) {
      if (t - show.start[i] > show.longest / 2) continue;
      c.lineWidth = 2; c.beginPath();
      c.moveTo(x - 5, y - 5); c.lineTo(x + 5, y + 5); c.moveTo(x - 5, y + 5); c.lineTo(x + 5, y - 5); c.stroke();
      continue;
    }
    const head = Math.min(1, (t - show.start[i]) / delay), tail = Math.max(0, Math.min(1, (t - show.end[i]) / delay));
    if (tail >= 1) continue;
    // Packets that follow each other at once stay apart.
    const from = Math.min(tail + 2 / Math.hypot(u - x, v - y), head - 0.02);
    c.lineWidth = show.payload[i] ? 5 : 2;
    c.beginPath(); c.moveTo(x + (u - x) * from, y + (v - y) * from); c.lineTo(x + (u - x) * head, y + (v - y) * head); c.stroke();
  }
  show.links.forEach(([a], port) => {
    const count = waiting(show, port, t);
    if (!count) return;
    const [x, y, u, v] = ends[port], length = Math.hypot(u - x, v - y) || 1;
    const bar = 4 + 34 * count / show.most;
    c.strokeStyle = ink; c.lineWidth = 5; c.globalAlpha = 0.6; c.beginPath();
    c.moveTo(x + (v - y) / length * -4, y + (u - x) / length * 4);
    c.lineTo(x + (v - y) / length * -4 - (u - x) / length * bar, y + (u - x) / length * 4 - (v - y) / length * bar);
    c.stroke(); c.globalAlpha = 1;
  });
  c.fillStyle = ink; c.textAlign = 'center'; c.font = '11px system-ui, sans-serif';
  const crowded = show.nodes.length > 24;
  show.nodes.forEach(([name, , tier], i) => {
    const [x, y] = at[i];
    c.beginPath(); c.arc(x, y, 4, 0, 7); c.fill();
    if (!crowded) c.fillText(name, x, tier ? y - 9 : y + 18);
  });
}

const kilobytes = bytes => `${(bytes / 1e3).toFixed(bytes < 1e4 ? 1 : 0)} kB`;

function tell(show, pane, t) {
  const live = show.flows.filter(flow => flow.start <= t).slice(-8);
  const rows = live.map(flow => {
    const i = upTo(flow.times, t), all = flow.got.length ? flow.got[flow.got.length - 1][1] : 0, got = i ? flow.got[i - 1][1] : 0;
    const row = document.createElement('tr');
    const w = flow.window ? flow.window[upTo(flow.windowTimes, t) - 1] : null;
    row.innerHTML = '<td></td><td><meter min=0 max=1></meter></td><td class=n></td><td class=n></td>';
    const cells = row.cells;
    cells[0].textContent = `${flow.id}, ${kilobytes(flow.size)}`;
    cells[0].style.color = pickedColour(flow.id);
    row.querySelector('meter').value = all ? got / all : 0;
    cells[2].textContent = flow.finish !== null && t >= flow.finish ? `done after ${written(flow.finish - flow.start)}` : `${Math.round(100 * (all ? got / all : 0))} %`;
    // Transports that are paced by rates have no window.
    cells[3].textContent = w && w[1] > 0 ? kilobytes(w[1]) : '-';
    return row;
  });
  pane.querySelector('tbody').replaceChildren(...rows);
  know(show, pane, t);
  const queues = show.links.map((link, port) => [waiting(show, port, t), link]).filter(([count]) => count).sort((a, b) => b[0] - a[0]).slice(0, 4);
  const named = queues.map(([count, [a, b]]) => `${show.nodes[a][0]}->${show.nodes[b][0]}: ${count}`);
  pane.querySelector('.queues').textContent = `packets that wait: ${named.join(', ') || 'none'}`;
}

// The ports whose agents keep a table of flows: that with the most rows comes first.
function offer(show, pane) {
  if (!show.tables.length) return;
  pane.querySelector('.agent').hidden = false;
  const pick = pane.querySelector('.agent select'), size = table => table.rows.reduce((sum, rows) => sum + rows.length, 0);
  [...show.tables].sort((a, b) => size(b) - size(a)).forEach(table => {
    const [from, to] = show.links[table.link];
    pick.add(new Option(`${show.nodes[from][0]}->${show.nodes[to][0]}`, show.tables.indexOf(table)));
  });
  pick.onchange = draw;
}

// A value in the unit that its name ends in.
function valued(name, value) {
  if (value === null || value === undefined) return '-';
  if (name === 'paused') return value ? 'yes' : 'no';
  if (name.endsWith('_s')) return written(value * 1e9);
  if (name.endsWith('_bytes')) return kilobytes(value);
  if (name.endsWith('_bps')) return `${(value / 1e6).toFixed(0)} Mb/s`;
  return Number.isInteger(value) ? `${value}` : value.toPrecision(4);
}

// The table of a port as it was sampled last, by its first column.
function know(show, pane, t) {
  if (!show.tables.length) return;
  const {columns, times, rows} = show.tables[pane.querySelector('.agent select').value];
  const cell = (text, tag, number) => { const made = document.createElement(tag); made.textContent = text; made.className = number ? 'n' : ''; return made; };
  const head = ['flow', ...columns.map(name => name.replace(/_(s|bytes|bps)$/, '').replaceAll('_', ' '))];
  pane.querySelector('.agent thead tr').replaceChildren(...head.map((name, i) => cell(name, 'th', i > 0)));
  const last = [...rows[upTo(times, t) - 1] ?? []].sort((a, b) => a[1] - b[1]).slice(0, 12);
  pane.querySelector('.agent tbody').replaceChildren(...last.map(([flow, ...values]) => {
    const row = document.createElement('tr');
    row.append(cell(flow, 'td'), ...values.map((value, i) => cell(valued(columns[i], value), 'td', true)));
    row.cells[0].style.color = pickedColour(flow);
    return row;
  }));
}
