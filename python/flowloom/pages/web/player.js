// Plays packets over a network. Times are in ns; arrays of transmissions are sorted by their starts.
const $ = id => document.getElementById(id);
const state = {now: 0, playing: false, last: 0, shows: [], panes: []};

async function start(text) {
  state.shows = JSON.parse(await unpacked(text));
  state.shows.forEach(prepare);
  state.sets = groups(state.shows);
  state.first = Math.min(...state.shows.map(show => show.start[0]));
  // The playback ends where the first trace was cut: later packets are unknown.
  const cuts = state.shows.filter(show => !show.whole).map(show => show.until);
  state.end = cuts.length ? Math.min(...cuts) : Math.max(...state.shows.map(show => show.until));
  // The queues of all systems have the same scale.
  state.most = largest(state.shows.flatMap(show => show.queue.map(queue => queue.peak)), 1);
  $('scale').textContent = `The longest queue has ${state.most} packets; the bars of all systems have the same scale.`;
  for (const [id, first] of [['left', 0], ['right', Math.min(1, state.shows.length - 1)]]) {
    state.shows.forEach((show, i) => $(id).add(new Option(show.system, i)));
    if (id === 'right') $(id).add(new Option('none', ''));
    $(id).value = id === 'right' && state.shows.length === 1 ? '' : first;
    $(id).onchange = arrange;
  }
  const peaks = new Map();
  for (const show of state.shows) show.queue.forEach(({peak}, port) => {
    if (peak) peaks.set(titled(show, port), Math.max(peak, peaks.get(titled(show, port)) ?? 0));
  });
  state.peaks = new Map([...peaks].sort((a, b) => b[1] - a[1]));
  for (const [name, peak] of state.peaks) $('port').add(new Option(`${name} (up to ${peak})`, name));
  $('ports').hidden = !state.peaks.size;
  $('port').onchange = draw;
  $('colours').onchange = () => { legend(); draw(); };
  $('play').onclick = toggle;
  $('back').onclick = () => step(-1);
  $('forward').onclick = () => step(1);
  $('time').oninput = () => seek(state.first + $('time').value / 1e4 * (state.end - state.first));
  $('speed').oninput = pace;
  addEventListener('resize', draw);
  addEventListener('keydown', event => {
    const {tagName} = event.target;
    // These elements handle the keys themselves.
    if (['INPUT', 'SELECT'].includes(tagName) || (tagName === 'BUTTON' && event.key === ' ')) return;
    const act = {' ': toggle, ArrowLeft: () => step(-1), ArrowRight: () => step(1)}[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  state.now = opening();
  pace();
  legend();
  arrange();
  document.body.dataset.player = 'ready';
}

const titled = (show, port) => { const [a, b] = show.links[port]; return `${show.nodes[a][0]}->${show.nodes[b][0]}`; };

// Returns the time when the first packet is in the middle of its first cable.
function opening() {
  const show = state.shows.find(show => show.start[0] === state.first);
  return (show.start[0] + show.end[0] + show.delay[show.port[0]]) / 2;
}

function legend() {
  const by = $('colours').value, set = state.sets[by], what = by === 'kind' ? '' : `${by} `;
  $('legend').replaceChildren(...set.names.map((name, group) => {
    const item = document.createElement('li');
    item.append(swatch(set, group), group < set.size ? what + name : name);
    return item;
  }));
}

// Without `Math.max(...values)`: large networks have more ports than a function takes arguments.
const largest = (values, least) => values.reduce((a, b) => Math.max(a, b), least);

// Returns how many numbers of a sorted array are at most x.
function upTo(sorted, x) {
  let low = 0, high = sorted.length;
  while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] <= x) low = middle + 1; else high = middle; }
  return low;
}

function prepare(show) {
  const left = show.port.map((port, i) => show.end[i] + show.delay[port]);
  show.longest = largest(left.map((time, i) => time - show.start[i]), 0);
  // A trace that was cut has the time of the last transmission that is played.
  show.until ??= largest(left, 0);
  queues(show);
  for (const flow of show.flows) {
    flow.times = flow.got.map(([time]) => time);
    flow.windowTimes = (flow.window ?? []).map(([time]) => time);
  }
}

// The simulated time per second of playback, in ns, on a logarithmic scale.
const speed = () => 10 ** (3 + 6 * $('speed').value / 100);
function written(ns) {
  const [size, unit] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']].find(([size]) => Math.abs(ns) >= size) ?? [1, 'ns'];
  return `${(ns / size).toPrecision(4)} ${unit}`;
}
function pace() { $('pace').value = `${written(speed())} per second`; }

function arrange() {
  $('panes').replaceChildren();
  state.panes = [$('left').value, $('right').value].filter(value => value !== '').map(value => {
    const pane = document.createElement('section'), show = state.shows[value];
    pane.className = 'pane';
    pane.innerHTML = '<h2></h2><canvas class="network" role="img"></canvas><canvas class="strip" role="img"></canvas><canvas class="ranks" role="img"></canvas><table class="flows"><thead><tr><th>flow</th><th>received</th><th></th><th class=n>window</th></tr></thead><tbody></tbody></table><p class="note queues"></p><div class="agent" hidden><label>table at <select></select></label><table><thead><tr></tr></thead><tbody></tbody></table></div>';
    pane.querySelector('h2').textContent = show.system;
    offer(show, pane);
    const [canvas, over, ranks] = ['network', 'strip', 'ranks'].map(name => pane.querySelector(`canvas.${name}`));
    canvas.setAttribute('aria-label', `packets of ${show.system} on the network`);
    ranks.setAttribute('aria-label', `computations and collectives of ranks of ${show.system} over time`);
    over.onclick = ranks.onclick = event => seek(state.first + event.offsetX / event.currentTarget.clientWidth * (state.end - state.first));
    over.hidden = !state.peaks.size;
    ranks.hidden = !show.ranks.length;
    $('panes').append(pane);
    const shown = {show, pane, canvas, over, ranks};
    canvas.onclick = event => choose(shown, event);
    return shown;
  });
  draw();
}

function toggle() {
  state.playing = !state.playing;
  if (state.playing && state.now >= state.end) state.now = state.first;
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
function seek(t) { state.now = Math.max(state.first, Math.min(state.end, t)); draw(); }

// Goes to the next or previous start of a transmission.
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

// Chooses the port whose bar is nearest to a click.
function choose(shown, {offsetX, offsetY}) {
  const {cables, reach} = placed(shown), {show} = shown;
  const far = cables.map(({bar: [x, y], way: [dx, dy]}, port) => {
    const along = Math.max(0, Math.min(reach, (offsetX - x) * dx + (offsetY - y) * dy));
    return show.queue[port].peak ? Math.hypot(x + dx * along - offsetX, y + dy * along - offsetY) : Infinity;
  });
  const nearest = Math.min(...far);
  if (nearest < 40) { $('port').value = titled(show, far.indexOf(nearest)); draw(); }
}

// Returns the positions in a pane, computed anew if its size has changed.
function placed(shown) {
  const {show, canvas} = shown, size = [canvas.clientWidth, canvas.clientHeight];
  if (shown.size !== size.join()) { shown.size = size.join(); shown.places = places(show, ...size); }
  return shown.places;
}

function draw() {
  const done = (state.now - state.first) / (state.end - state.first || 1), by = $('colours').value, set = state.sets[by];
  $('time').value = done * 1e4;
  $('now').value = written(state.now);
  const drawn = state.panes.map(placed);
  const unit = Math.min(...drawn.map(({reach}) => reach)) / state.most;
  state.panes.forEach((shown, i) => {
    paint(shown.show, shown.canvas, state.now, drawn[i], unit, by, set);
    overTime(shown, by, set, done);
    doing(shown, done);
    showState(shown.show, shown.pane, state.now);
  });
}

// Draws the queue of the chosen port over time.
function overTime(shown, by, set, done) {
  if (!state.peaks.size) return;
  const {show, over} = shown, name = $('port').value, most = state.peaks.get(name);
  const port = show.links.findIndex((_, port) => titled(show, port) === name), columns = Math.max(1, over.clientWidth);
  const key = [name, by, columns].join(' ');
  if (shown.key !== key) {
    shown.found = port < 0 ? [] : history(show, port, by, set, state.first, state.end, columns);
    shown.key = key;
    over.setAttribute('aria-label', `queue of ${name} over time: up to ${port < 0 ? 0 : show.queue[port].peak} packets`);
  }
  strip(over, `${name}: ${port < 0 ? 0 : waiting(show.queue[port], state.now)} packets, scale to ${most}`, set, shown.found, most, done);
}

// Draws what the ranks of programs do over time: a row for each rank, below the names of the operations.
function doing({show, ranks}, done) {
  if (!show.ranks.length) return;
  const row = 10, top = 18, scale = devicePixelRatio || 1, width = ranks.clientWidth, height = top + row * show.ranks.length;
  ranks.style.height = `${height}px`;
  ranks.width = width * scale; ranks.height = height * scale;
  const c = ranks.getContext('2d'), text = getComputedStyle(document.body).color, place = t => (t - state.first) / (state.end - state.first || 1) * width;
  c.scale(scale, scale); c.font = '11px system-ui, sans-serif';
  const operations = [...new Set(state.shows.flatMap(show => show.ranks.flatMap(({parts}) => parts.map(([, , operation]) => operation))))];
  const colour = operation => operation === 'compute' ? OTHERS : COLOURS[operations.filter(name => name !== 'compute').indexOf(operation) % COLOURS.length];
  let x = 4;
  for (const operation of operations) {
    c.fillStyle = colour(operation); c.fillRect(x, 4, 9, 9);
    c.fillStyle = text; c.fillText(operation, x + 12, 12);
    x += c.measureText(operation).width + 24;
  }
  const lanes = 1 + largest(show.ranks.flatMap(({parts}) => parts.map(part => part[3])), 0), tall = (row - 2) / lanes;
  show.ranks.forEach(({parts}, i) => {
    for (const [from, until, operation, lane] of parts) {
      c.fillStyle = colour(operation);
      c.fillRect(place(from), top + row * i + tall * lane, Math.max(place(until) - place(from) - 0.5, 0.5), tall);
    }
  });
  c.strokeStyle = c.fillStyle = text;
  c.fillText(`ranks from above: ${show.ranks[0].name} to ${show.ranks.at(-1).name}`, x + 8, 12);
  c.lineWidth = 1.5; c.beginPath(); c.moveTo(done * width, top); c.lineTo(done * width, height); c.stroke();
}

function paint(show, canvas, t, {at, labels, cables}, unit, by, set) {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale; canvas.height = height * scale;
  const c = canvas.getContext('2d'), text = getComputedStyle(document.body).color;
  c.scale(scale, scale);
  c.strokeStyle = text; c.globalAlpha = 0.25; c.lineWidth = 1;
  for (const {start, end} of cables) { c.beginPath(); c.moveTo(...start); c.lineTo(...end); c.stroke(); }
  c.globalAlpha = 1;
  for (let i = upTo(show.start, t) - 1; i >= 0 && show.start[i] >= t - show.longest; i--) {
    const port = show.port[i], delay = Math.max(show.delay[port], 1), {start: [x, y], end: [u, v], length} = cables[port];
    if (show.dropped[i]) {
      if (t - show.start[i] > show.longest / 2) continue;
      c.beginPath(); c.moveTo(x - 5, y - 5); c.lineTo(x + 5, y + 5); c.moveTo(x - 5, y + 5); c.lineTo(x + 5, y - 5);
      stroke(c, set, show.group[by][i], 2);
      continue;
    }
    const head = Math.min(1, (t - show.start[i]) / delay), tail = Math.max(0, Math.min(1, (t - show.end[i]) / delay));
    if (tail >= 1) continue;
    // Leaves a gap between consecutive packets.
    const from = Math.min(tail + 2 / length, head - 0.02);
    c.beginPath(); c.moveTo(x + (u - x) * from, y + (v - y) * from); c.lineTo(x + (u - x) * head, y + (v - y) * head);
    stroke(c, set, show.group[by][i], show.kinds[show.kind[i]] === 'data' ? 5 : 2);
  }
  show.queue.forEach((queue, port) => { if (waiting(queue, t)) bar(c, cables[port], set, pieces(show, port, by, set, t), unit); });
  c.fillStyle = text; c.textAlign = 'center'; c.font = '11px system-ui, sans-serif';
  for (const [x, y] of at) { c.beginPath(); c.arc(x, y, 4, 0, 7); c.fill(); }
  c.strokeStyle = getComputedStyle(canvas).backgroundColor; c.lineWidth = 3; c.lineJoin = 'round';
  for (const {name, x, y} of labels) { c.strokeText(name, x, y); c.fillText(name, x, y); }
}

const kilobytes = bytes => `${(bytes / 1e3).toFixed(bytes < 1e4 ? 1 : 0)} kB`;

// Returns the colour of a flow for a table, if colours denote flows.
const swatches = (set, flow) => $('colours').value === 'flow' ? [swatch(set, set.of(flow))] : [];

function showState(show, pane, t) {
  // The arrivals of flows that only pass recorded ports are unknown.
  const begun = show.flows.filter(flow => !flow.passing && flow.start <= t), open = begun.filter(flow => flow.finish === null || t < flow.finish);
  const live = (open.length ? open : begun).slice(-8), {flow: set} = state.sets;
  const rows = live.map(flow => {
    const i = upTo(flow.times, t), share = i ? flow.got[i - 1][1] / flow.wire : 0;
    const row = document.createElement('tr');
    const w = flow.window ? flow.window[upTo(flow.windowTimes, t) - 1] : null;
    row.innerHTML = '<td></td><td><meter min=0 max=1></meter></td><td class=n></td><td class=n></td>';
    const cells = row.cells;
    cells[0].append(...swatches(set, flow.id), `${flow.id}, ${kilobytes(flow.size)}`);
    row.querySelector('meter').value = share;
    cells[2].textContent = flow.finish !== null && t >= flow.finish ? `done after ${written(flow.finish - flow.start)}` : `${Math.round(100 * share)} %`;
    // Transports that are paced by a rate have no window.
    cells[3].textContent = w && w[1] > 0 ? kilobytes(w[1]) : '-';
    return row;
  });
  pane.querySelector('tbody').replaceChildren(...rows);
  know(show, pane, t);
  const long = show.queue.map((queue, port) => [waiting(queue, t), port]).filter(([count]) => count).sort((a, b) => b[0] - a[0]).slice(0, 4);
  const named = long.map(([count, port]) => `${titled(show, port)}: ${count}`);
  pane.querySelector('.queues').textContent = `waiting packets: ${named.join(', ') || 'none'}`;
}

// Offers the ports whose agents keep a table of flows: the port with the most rows comes first.
function offer(show, pane) {
  if (!show.tables.length) return;
  pane.querySelector('.agent').hidden = false;
  const pick = pane.querySelector('.agent select'), size = table => table.rows.reduce((sum, rows) => sum + rows.length, 0);
  [...show.tables].sort((a, b) => size(b) - size(a)).forEach(table => {
    pick.add(new Option(titled(show, table.link), show.tables.indexOf(table)));
  });
  pick.onchange = draw;
}

// Returns a value as text, in the unit at the end of its name.
function valued(name, value) {
  if (value === null || value === undefined) return '-';
  if (name === 'paused') return value ? 'yes' : 'no';
  if (name.endsWith('_s')) return written(value * 1e9);
  if (name.endsWith('_bytes')) return kilobytes(value);
  if (name.endsWith('_bps')) return `${(value / 1e6).toFixed(0)} Mbit/s`;
  return Number.isInteger(value) ? `${value}` : value.toPrecision(4);
}

// Shows the last sample of the table of a port, sorted by its first column.
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
    row.cells[0].prepend(...swatches(state.sets.flow, flow));
    return row;
  }));
}
