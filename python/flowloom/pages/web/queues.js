// Colours of flows, kinds and classes; queues as bars on the network and over time.

// A group has a colour: it is a flow, a kind of packet or a priority class. The last group may be `others`, in grey.
const MOST_GROUPS = 2 * COLOURS.length;

// Returns the names of groups, and a function from a key to its group.
function grouped(shows, keys, name, rank) {
  const all = [...new Set(shows.flatMap(show => keys(show)))].sort((a, b) => rank(b) - rank(a) || a - b);
  const order = all.slice(0, MOST_GROUPS).sort((a, b) => (typeof a === 'number' ? a - b : 0));
  const index = new Map(order.map((key, i) => [key, i])), rest = all.length - order.length;
  return {of: key => index.get(key) ?? order.length, size: order.length, names: [...order.map(name), ...rest ? [`${rest} others`] : []]};
}

function groups(shows) {
  const sizes = new Map(shows.flatMap(show => show.flows.map(flow => [flow.id, flow.size])));
  // Kinds are texts and classes are numbers, so one map counts the packets of both.
  const counts = new Map(), count = key => counts.set(key, (counts.get(key) ?? 0) + 1);
  for (const show of shows) { show.kind.forEach(kind => count(show.kinds[kind])); show.class.forEach(count); }
  // The flows that the page shows packets around get colours first.
  const own = new Set(shows.flatMap(show => show.flows.filter(flow => !flow.passing).map(flow => flow.id)));
  const rank = id => (own.has(id) ? Number.MAX_SAFE_INTEGER : 0) + sizes.get(id);
  const flow = grouped(shows, show => show.flows.map(one => one.id), id => `${id}, ${kilobytes(sizes.get(id))}`, rank);
  const kind = grouped(shows, show => show.kinds, name => name, name => counts.get(name));
  const classes = grouped(shows, show => [...new Set(show.class)], number => number ? `${number}` : '0, the highest', number => counts.get(number));
  for (const show of shows) {
    const kinds = show.kind.map(one => kind.of(show.kinds[one]));
    show.group = {flow: show.flow.map(flow.of), kind: kinds, class: show.class.map(classes.of)};
  }
  return {flow, kind, class: classes};
}

const look = (set, group) => group >= set.size ? {colour: OTHERS, striped: false}
  : {colour: COLOURS[group % COLOURS.length], striped: group >= COLOURS.length};

const pageColour = () => getComputedStyle(document.body).backgroundColor;

// Draws the current path in the colour of a group. Stripes cross the path.
function stroke(c, set, group, width) {
  const {colour, striped} = look(set, group);
  c.strokeStyle = colour; c.lineWidth = width; c.stroke();
  if (!striped) return;
  c.strokeStyle = pageColour(); c.lineWidth = width / 2; c.setLineDash([3, 3]); c.stroke(); c.setLineDash([]);
}

const tiles = new Map();
// Returns the fill of an area of a group.
function fill(c, set, group) {
  const {colour, striped} = look(set, group);
  if (!striped) return colour;
  const page = pageColour(), key = colour + page;
  if (!tiles.has(key)) {
    const tile = document.createElement('canvas'), t = tile.getContext('2d');
    tile.width = tile.height = 6;
    t.fillStyle = colour; t.fillRect(0, 0, 6, 6);
    t.strokeStyle = page; t.lineWidth = 1.4; t.beginPath();
    for (const from of [-6, 0, 6]) { t.moveTo(from - 1, 7); t.lineTo(from + 7, -1); }
    t.stroke();
    tiles.set(key, tile);
  }
  return c.createPattern(tiles.get(key), 'repeat');
}

// Returns a swatch with the fill of a group, for a name.
function swatch(set, group) {
  const {colour, striped} = look(set, group), made = document.createElement('span');
  made.className = 'swatch';
  made.style.background = striped ? `repeating-linear-gradient(135deg, ${colour} 0 3px, var(--page) 3px 5px)` : colour;
  return made;
}

// Computes, for each port, its waiting packets sorted by the time when they join the queue, and the times when packets leave.
function queues(show) {
  show.queue = show.links.map(() => ({rows: [], joins: [], leaves: [], longest: 0, peak: 0}));
  // A packet that the port drops on arrival does not wait.
  show.port.forEach((port, i) => { if (show.start[i] - show.joined[i] > 1e-3) show.queue[port].rows.push(i); });
  for (const queue of show.queue) {
    queue.rows.sort((a, b) => show.joined[a] - show.joined[b]);
    queue.joins = queue.rows.map(i => show.joined[i]);
    queue.leaves = queue.rows.map(i => show.start[i]).sort((a, b) => a - b);
    queue.rows.forEach((i, n) => {
      queue.longest = Math.max(queue.longest, show.start[i] - show.joined[i]);
      queue.peak = Math.max(queue.peak, n + 1 - upTo(queue.leaves, show.joined[i]));
    });
  }
}

const waiting = (queue, t) => Math.max(0, upTo(queue.joins, t) - upTo(queue.leaves, t));

// Returns how many packets of each group wait at a port.
function pieces(show, port, by, set, t) {
  const queue = show.queue[port], found = Array(set.names.length).fill(0);
  for (let n = upTo(queue.joins, t) - 1; n >= 0 && queue.joins[n] >= t - queue.longest; n--) {
    const i = queue.rows[n];
    if (show.start[i] > t) found[show.group[by][i]]++;
  }
  return found;
}

// Returns the longest queue of a port in each of `columns` intervals, by group.
function history(show, port, by, set, from, until, columns) {
  const events = show.queue[port].rows.flatMap(i => [[show.joined[i], 1, show.group[by][i]], [show.start[i], -1, show.group[by][i]]]);
  events.sort((a, b) => a[0] - b[0]);
  const now = Array(set.names.length).fill(0), found = [];
  let total = 0, next = 0;
  for (let column = 1; column <= columns; column++) {
    const stop = column === columns ? Infinity : from + column / columns * (until - from);
    let most = total, longest = [...now];
    while (next < events.length && events[next][0] < stop) {
      for (const time = events[next][0]; next < events.length && events[next][0] === time; next++) {
        const [, change, group] = events[next];
        now[group] += change; total += change;
      }
      if (total > most) { most = total; longest = [...now]; }
    }
    found.push(longest);
  }
  return found;
}

// Returns the positions of nodes, cables and labels, and for each port the start and direction of the bar of its queue.
const BAR = 7, AWAY = 9.5, ENOUGH = 40, LONGEST = 110;
function places(show, width, height) {
  const top = largest(show.nodes.map(node => node[2]), 0), left = 24, above = 30;
  const at = show.nodes.map(([, x, y]) => [left + x * (width - 2 * left), height - above - y / Math.max(top, 1) * (height - 2 * above)]);
  const labels = [];
  [...show.nodes.keys()].sort((a, b) => at[a][0] - at[b][0]).forEach(i => {
    const [name, , tier] = show.nodes[i], half = 3.4 * name.length + 2, [x, y] = at[i], up = tier > 0;
    const box = [x - half, up ? y - 20 : y + 7, x + half, up ? y - 6 : y + 22];
    // A name that would touch its neighbour is left out.
    if (!labels.some(other => other.box[1] === box[1] && other.box[2] > box[0])) labels.push({name, x, y: up ? y - 9 : y + 18, box});
  });
  const cables = show.links.map(([a, b], port) => {
    const [x, y] = at[a], [u, v] = at[b], length = Math.hypot(u - x, v - y) || 1, dx = (u - x) / length, dy = (v - y) / length;
    // Each direction of a cable is drawn on its right side, and the bar of its queue further right.
    const shift = far => [x - dy * far, y + dx * far];
    const [sx, sy] = shift(3), [bx, by] = shift(AWAY);
    const hidden = far => labels.some(({box: [l, t, r, b]}) => {
      const px = bx + dx * far, py = by + dy * far;
      return px > l - BAR && px < r + BAR && py > t - BAR && py < b + BAR;
    });
    // Finds the first stretch without labels that is long enough, or else the longest stretch.
    let from = 10, room = 0;
    for (let far = 10, clear = 0; show.queue[port].peak && far < length - 10 && room < ENOUGH; far += 2) {
      clear = hidden(far) ? 0 : clear + 2;
      if (clear > room) { room = clear; from = far + 2 - clear; }
    }
    while (room && room < LONGEST && from + room < length - 10 && !hidden(from + room)) room += 2;
    return {start: [sx, sy], end: [sx + u - x, sy + v - y], length, bar: [bx + dx * from, by + dy * from], way: [dx, dy], room};
  });
  const rooms = cables.filter((_, port) => show.queue[port].peak).map(cable => cable.room);
  return {at, labels, cables, reach: Math.max(4, rooms.reduce((a, b) => Math.min(a, b), LONGEST))};
}

// Draws the bar of a port's queue, one piece for each group; `unit` is the length of a packet.
function bar(c, {bar: [x, y], way: [dx, dy]}, set, found, unit) {
  let from = 0;
  found.forEach((count, group) => {
    if (!count) return;
    const to = from + count * unit;
    c.beginPath(); c.moveTo(x + dx * from, y + dy * from); c.lineTo(x + dx * to, y + dy * to);
    stroke(c, set, group, BAR);
    from = to;
  });
}

// Draws the queue of a port over time, stacked, with a line at `now`. `most` is the top of the scale.
function strip(canvas, drawn, set, found, most, now) {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight, floor = height - 3, room = floor - 16;
  canvas.width = width * scale; canvas.height = height * scale;
  const c = canvas.getContext('2d'), text = getComputedStyle(document.body).color;
  c.scale(scale, scale);
  const fills = set.names.map((_, group) => fill(c, set, group));
  found.forEach((counts, column) => {
    let y = floor;
    counts.forEach((count, group) => {
      if (!count) return;
      const tall = count / most * room;
      c.fillStyle = fills[group];
      c.fillRect(column / found.length * width, y - tall, width / found.length + 0.3, tall);
      y -= tall;
    });
  });
  c.strokeStyle = text; c.globalAlpha = 0.4; c.lineWidth = 1;
  for (const y of [floor, floor - room]) { c.beginPath(); c.moveTo(0, y + 0.5); c.lineTo(width, y + 0.5); c.stroke(); }
  c.globalAlpha = 1; c.fillStyle = text; c.font = '11px system-ui, sans-serif';
  c.fillText(drawn, 4, 12);
  c.lineWidth = 1.5; c.beginPath(); c.moveTo(now * width, 16); c.lineTo(now * width, height); c.stroke();
}
