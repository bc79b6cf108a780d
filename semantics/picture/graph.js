"use strict";
// Draws the boxes of the data in this page. Texts reach the page as text only: fillText, textContent.
const sonnxGraph = (() => {
  const part = (id) => document.getElementById("graph-" + id);
  const section = document.getElementById("graph"), canvas = part("canvas"), side = part("side");
  const pen = canvas.getContext("2d");
  const data = JSON.parse(part("data").textContent);

  // ---- Data -------------------------------------------------------------------------------------
  const steps = (list) => { let at = 0; return list.map((step) => (at += step)); };
  const texts = ({ shared, rest }) => { let last = ""; return rest.map((text, i) => (last = last.slice(0, shared[i]) + text)); };
  const lists = ({ count, flat }) => { const all = steps(flat); let at = 0; return count.map((n) => all.slice(at, (at += n))); };
  const said = Object.fromEntries(Object.entries(data.texts).map(([name, table]) => [name, texts(table)]));
  const named = (column, table) => steps(column).map((i) => said[table][i]);
  const NODE = 0, CALL = 1, BODY = 2, IN = 3;
  const parent = steps(data.parent), kind = [...data.kind].map(Number), count = kind.length;
  const index = steps(data.index), title = named(data.title_of, "title"), name = named(data.name_of, "name");
  const attributes = named(data.attributes_of, "attributes"), marked = steps(data.marked);
  const row = steps(data.row), middle = steps(data.middle), own = steps(data.width);
  const inputs = lists(data.inputs), outputs = lists(data.outputs);
  const from = steps(data.from), to = steps(data.to).map((far, e) => from[e] + far), bends = lists(data.bends);
  const tensor = named(data.tensor, "tensor"), home = steps(data.home), type = named(data.type, "type"), value = named(data.value, "value");
  const stored = new Set(data.stored), marks = data.marks.map(([key, sign, words, tone]) => ({ key, sign, words, tone }));
  const inner = kind.map(() => []), edges = kind.map(() => []), near = kind.map(() => []);
  for (let at = 1; at < count; at++) inner[parent[at]].push(at);
  from.forEach((a, e) => { edges[parent[a]].push(e); near[a].push(e); near[to[e]].push(e); });
  const open = new Set(data.open), makers = new Map(), readers = new Map();
  const all = [...marked], nodes = kind.map((it) => Number(it === NODE)), held = new Array(count).fill(0);
  for (let at = count - 1; at > 0; at--) { all[parent[at]] |= all[at]; held[parent[at]] += held[at] + nodes[at]; }
  const add = (map, key, at) => { const had = map.get(key); if (had) had.push(at); else map.set(key, [at]); };
  for (let at = 0; at < count; at++) {
    if (kind[at] !== NODE && kind[at] !== IN) continue;
    for (const t of outputs[at]) if (t >= 0 && (kind[at] === NODE || kind[parent[at]] === BODY)) add(makers, t, at);
    for (const t of new Set(inputs[at])) if (t >= 0) add(readers, t, at);
  }
  const base = (at) => (kind[at] === CALL ? path(at) + "!" : kind[at] === BODY ? (path(at) === "/" ? "/" : path(at) + "/") : path(at));
  function path(at) {
    if (data.path[at] !== undefined) return data.path[at];
    if (kind[at] !== NODE) return at ? tensorPath(outputs[at][0]) : "/";
    return base(parent[at]) + index[at] + ":" + title[at] + (name[at] ? '("' + name[at] + '")' : "");
  }
  const tensorPath = (t) => data.tensor_path[t] ?? base(home[t]) + '"' + tensor[t] + '"';

  // ---- Places -----------------------------------------------------------------------------------
  const MARGIN = 14, GAP = 22, BEND = 10, BETWEEN = 34, HEAD = 44, TALL = 52, LOW = 36;
  const x = new Float64Array(count), y = new Float64Array(count), w = new Float64Array(count), h = new Float64Array(count);
  const shown = new Uint8Array(count), column = new Int32Array(count), bendX = bends.map((list) => [...list]), bendY = bends.map((list) => list.map(() => [0, 0]));
  const rowsOf = inner.map((list, at) => {
    const rows = [];
    const put = (at, item) => (rows[at] ??= []).push(item);
    for (const it of list) put(row[it], { want: middle[it], box: it });
    for (const e of edges[at]) bends[e].forEach((want, i) => put(row[from[e]] + 1 + i, { want, edge: e, i }));
    for (const items of rows) items.sort((a, b) => a.want - b.want);
    return rows;
  });
  const isOpen = (at) => inner[at].length > 0 && (at === 0 || open.has(at));
  const folds = (at) => at > 0 && inner[at].length > 0 && kind[at] !== BODY;
  const sizeOf = (item) => (item.box === undefined ? BEND : w[item.box]);

  // As near to the wanted positions as can be without two that come too near: pools of neighbours in each other's way.
  function separated(items) {
    let offset = 0;
    const offsets = items.map((item, i) => (offset += i ? (sizeOf(item) + sizeOf(items[i - 1])) / 2 + GAP : 0)), pools = [];
    items.forEach((item, i) => {
      let total = item.want - offsets[i], n = 1;
      while (pools.length && pools.at(-1)[0] / pools.at(-1)[1] >= total / n) { const [sum, more] = pools.pop(); total += sum; n += more; }
      pools.push([total, n]);
    });
    let i = 0;
    for (const [total, n] of pools) for (let k = 0; k < n; k++, i++) items[i].at = total / n + offsets[i];
  }

  function inside(at) {
    let least = Infinity, most = 0, down = at ? HEAD : MARGIN;
    const heights = rowsOf[at].map((items) => Math.max(LOW / 2, ...items.map((item) => (item.box === undefined ? 0 : h[item.box]))));
    for (const items of rowsOf[at]) {
      separated(items);
      for (const item of items) { least = Math.min(least, item.at - sizeOf(item) / 2); most = Math.max(most, item.at + sizeOf(item) / 2); }
    }
    const columns = at ? [rowsOf[at].length] : folded(heights, most - least);
    let left = MARGIN, first = 0, tallest = 0;
    columns.forEach((end, c) => {
      const rows = rowsOf[at].slice(first, end), items = rows.flat();
      const start = Math.min(...items.map((item) => item.at - sizeOf(item) / 2)), stop = Math.max(...items.map((item) => item.at + sizeOf(item) / 2));
      down = at ? HEAD : MARGIN;
      rows.forEach((list, r) => {
        const height = heights[first + r];
        for (const item of list) {
          const middle = item.at - start + left;
          if (item.box === undefined) { bendX[item.edge][item.i] = middle; bendY[item.edge][item.i] = [down, down + height]; }
          else { x[item.box] = middle - w[item.box] / 2; y[item.box] = down + (height - h[item.box]) / 2; column[item.box] = c; }
        }
        down += height + BETWEEN;
      });
      left += stop - start + (c + 1 < columns.length ? 70 : 0);
      tallest = Math.max(tallest, down - BETWEEN + MARGIN);
      first = end;
    });
    return [left + MARGIN, tallest];
  }

  // Where the rows of the whole are far taller than the window, they stand in columns, read like those of a newspaper.
  function folded(heights, width) {
    const total = heights.reduce((sum, it) => sum + it + BETWEEN, 0), wide = canvas.clientWidth || 1, tall = canvas.clientHeight || 1;
    const columns = Math.round(Math.sqrt((total * wide) / ((width + 70) * tall)));
    if (columns < 2 || total < 2.2 * tall) return [heights.length];
    const ends = [];
    let sum = 0;
    heights.forEach((height, r) => {
      if (sum && sum + height > total / columns) { ends.push(r); sum = 0; }
      sum += height + BETWEEN;
    });
    return [...ends, heights.length];
  }

  function place() {
    for (let at = count - 1; at >= 0; at--) {
      w[at] = own[at]; h[at] = kind[at] === NODE || kind[at] === CALL ? TALL : LOW;
      if (isOpen(at)) { const [wide, tall] = inside(at); w[at] = Math.max(w[at], wide); h[at] = tall; }
    }
    shown[0] = 1;
    x[0] = y[0] = 0;
    for (let at = 1; at < count; at++) {
      const around = parent[at];
      shown[at] = shown[around] && isOpen(around) ? 1 : 0;
      x[at] += x[around]; y[at] += y[around];
    }
    routes.fill(null);
  }

  // ---- Edges ------------------------------------------------------------------------------------
  const PLAIN = 0, FAR = 1, BACK = 2, FARTHEST = 2400, routes = new Array(from.length).fill(null);
  function route(e) {
    if (routes[e]) return routes[e];
    const a = from[e], b = to[e], g = parent[a], ax = x[a] + w[a] / 2, ay = y[a] + h[a], bx = x[b] + w[b] / 2, by = y[b];
    const span = row[b] - row[a];
    let points = [[ax, ay]], how = PLAIN;
    if (span < 1) how = BACK;
    else if (column[a] !== column[b] || bends[e].length !== span - 1) how = FAR;
    else bends[e].forEach((_, i) => points.push([x[g] + bendX[e][i], y[g] + bendY[e][i][0]], [x[g] + bendX[e][i], y[g] + bendY[e][i][1]]));
    points.push([bx, by]);
    const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
    if (how === PLAIN && Math.max(...xs) - Math.min(...xs) > FARTHEST) how = FAR;
    return (routes[e] = { points, how, left: Math.min(...xs) - 40, right: Math.max(...xs) + 40, top: Math.min(...ys) - 20, bottom: Math.max(...ys) + 20 });
  }
  function trace(r, whole) {
    const [first] = r.points, last = r.points.at(-1);
    if (r.how === FAR && !whole) {
      pen.moveTo(first[0], first[1]); pen.lineTo(first[0], first[1] + 13);
      pen.moveTo(last[0], last[1] - 13); pen.lineTo(last[0], last[1]);
      return;
    }
    pen.moveTo(first[0], first[1]);
    if (r.how === BACK) {
      const out = Math.max(first[0], last[0]) + 120;
      pen.bezierCurveTo(first[0], first[1] + 60, out, first[1] + 60, out, (first[1] + last[1]) / 2);
      pen.bezierCurveTo(out, last[1] - 60, last[0], last[1] - 60, last[0], last[1]);
      return;
    }
    for (let i = 1; i < r.points.length; i++) {
      const [px, py] = r.points[i - 1], [qx, qy] = r.points[i], half = (py + qy) / 2;
      if (px === qx) pen.lineTo(qx, qy); else pen.bezierCurveTo(px, half, qx, half, qx, qy);
    }
  }

  // ---- Drawing ----------------------------------------------------------------------------------
  let scale = 1, left = 0, top = 0, picked = -1, hits = [], hitting = new Set(), hit = -1, waiting = false, ready = false, colours = {}, letter = 7.22;
  const FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
  function theme() {
    const style = getComputedStyle(section);
    colours = {};
    for (const key of ["ground", "text", "dim", "line", "frame", "group", "pick", "hit"]) colours[key] = style.getPropertyValue("--g-" + key).trim();
    for (const tone of ["plain", "done", "faint", "next", "warn", "bad", "alarm", "open"]) {
      colours[tone] = style.getPropertyValue("--" + tone).trim();
      colours[tone + "-line"] = style.getPropertyValue("--" + tone + "-line").trim();
    }
  }
  const bitsOf = (at) => (isOpen(at) ? marked[at] : all[at]);
  const toneOf = (bits) => marks.find((mark, i) => mark.tone && bits & (1 << i))?.tone ?? "plain";
  const strong = new Set(["warn", "bad", "alarm"]);
  const signs = (bits) => {
    const kept = marks.filter((mark, i) => mark.sign && bits & (1 << i)), worse = kept.some((mark) => strong.has(mark.tone) || mark.tone === "next");
    return kept.filter((mark) => !worse || !["done", "faint"].includes(mark.tone)).map((mark) => mark.sign).join(" ");
  };
  const fit = (text, width) => { const most = Math.floor(width / letter); return text.length <= most ? text : most > 1 ? text.slice(0, most - 1) + "\u2026" : ""; };
  const lightIn = (tone) => (tone === "alarm" ? colours.ground : colours.text);

  function draw() {
    waiting = false;
    const wide = canvas.clientWidth, tall = canvas.clientHeight, dots = window.devicePixelRatio || 1;
    if (!wide || !tall) return;
    if (canvas.width !== Math.round(wide * dots) || canvas.height !== Math.round(tall * dots)) { canvas.width = Math.round(wide * dots); canvas.height = Math.round(tall * dots); }
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.fillStyle = colours.ground;
    pen.fillRect(0, 0, wide, tall);
    pen.setTransform(dots * scale, 0, 0, dots * scale, -left * scale * dots, -top * scale * dots);
    const right = left + wide / scale, bottom = top + tall / scale;
    const seen = (at) => shown[at] && x[at] <= right && x[at] + w[at] >= left && y[at] <= bottom && y[at] + h[at] >= top;
    const visible = [];
    for (let at = 1; at < count; at++) if (seen(at)) visible.push(at);
    pen.lineJoin = "round";
    for (const at of visible) if (isOpen(at)) frame(at);
    lines(right, bottom);
    for (const at of visible) if (!isOpen(at)) box(at);
    for (const at of visible) if (isOpen(at) && (at === picked || hitting.has(at))) outline(at);
  }

  function frame(at) {
    pen.fillStyle = colours.group;
    pen.strokeStyle = marked[at] ? colours[toneOf(marked[at]) + "-line"] : colours.frame;
    pen.lineWidth = marked[at] ? 2 : 1;
    pen.beginPath();
    pen.roundRect(x[at], y[at], w[at], h[at], 8);
    pen.fill();
    pen.setLineDash(kind[at] === CALL ? [6, 4] : []);
    pen.stroke();
    pen.setLineDash([]);
    if (scale < 0.25) return;
    const sign = signs(marked[at]);
    pen.fillStyle = colours.text;
    pen.font = "600 12px " + FONT;
    pen.textAlign = "left";
    pen.fillText(fit((folds(at) ? "\u25be " : "") + title[at] + (sign ? "  " + sign : ""), w[at] - 16), x[at] + 10, y[at] + 17);
    if (name[at]) { pen.font = "12px " + FONT; pen.fillStyle = colours.dim; pen.fillText(fit(name[at], w[at] - 16), x[at] + 10, y[at] + 33); }
  }

  function lines(right, bottom) {
    const groups = { plain: [], far: [], back: [], bad: [], pick: [] };
    for (let e = 0; e < from.length; e++) {
      if (!shown[from[e]]) continue;
      const r = route(e), of = picked >= 0 && (from[e] === picked || to[e] === picked);
      if (r.right < left || r.left > right || r.bottom < top || r.top > bottom) continue;
      const tone = toneOf(bitsOf(from[e]));
      (of ? groups.pick : strong.has(tone) && r.how === PLAIN ? groups.bad : r.how === BACK ? groups.back : r.how === FAR ? groups.far : groups.plain).push([e, r, tone]);
    }
    const stroke = (list, colour, width, dash, whole) => {
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.setLineDash(dash);
      pen.beginPath();
      for (const [, r] of list) trace(r, whole);
      pen.stroke();
      pen.setLineDash([]);
      if (scale < 0.3) return;
      pen.fillStyle = colour;
      pen.beginPath();
      for (const [, r] of list) { const [px, py] = r.points.at(-1); pen.moveTo(px, py); pen.lineTo(px - 4, py - 7); pen.lineTo(px + 4, py - 7); pen.closePath(); }
      pen.fill();
    };
    const thin = Math.max(1.1, 0.6 / scale);
    pen.globalAlpha = scale < 0.12 ? 0.35 : 1;
    stroke(groups.plain, colours.line, thin, [], false);
    if (scale >= 0.12) stroke(groups.far, colours.line, thin, [3, 3], false);
    stroke(groups.back, colours["warn-line"], thin * 1.3, [7, 4], true);
    pen.globalAlpha = 1;
    for (const tone of strong) stroke(groups.bad.filter((it) => it[2] === tone), colours[tone + "-line"], thin * 1.6, [], false);
    stroke(groups.pick, colours.pick, thin * 2, [], true);
  }

  function box(at) {
    const bits = bitsOf(at), tone = toneOf(bits), line = colours[tone + "-line"], round = kind[at] > BODY ? h[at] / 2 : 5;
    if (scale < 0.16) {
      const least = strong.has(tone) || tone === "next" ? 5 / scale : 0, wide = Math.max(w[at], least), tall = Math.max(h[at], least);
      pen.fillStyle = tone === "plain" ? colours.frame : line;
      pen.fillRect(x[at] + (w[at] - wide) / 2, y[at] + (h[at] - tall) / 2, wide, tall);
      if (at === picked || hitting.has(at)) outline(at);
      return;
    }
    pen.fillStyle = kind[at] > BODY ? colours.ground : colours[tone];
    pen.strokeStyle = line;
    pen.lineWidth = tone === "plain" || kind[at] > BODY ? 1 : 1.8;
    pen.beginPath();
    pen.roundRect(x[at], y[at], w[at], h[at], round);
    pen.fill();
    pen.stroke();
    if (inner[at].length) { pen.beginPath(); pen.roundRect(x[at] + 3, y[at] + 3, w[at] - 6, h[at] - 6, 4); pen.lineWidth = 1; pen.stroke(); }
    if (scale >= 0.3) words(at, bits, lightIn(tone));
    if (at === picked || hitting.has(at)) outline(at);
  }

  function words(at, bits, colour) {
    const from = x[at] + 9, sign = signs(bits), room = w[at] - 18, pill = kind[at] > BODY;
    const first = outputs[at].length && outputs[at][0] >= 0 ? type[outputs[at][0]] : "";
    pen.textAlign = "left";
    pen.fillStyle = colour;
    pen.font = (pill ? "" : "600 ") + "12px " + FONT;
    if (sign) { pen.textAlign = "right"; pen.fillText(sign, x[at] + w[at] - 8, y[at] + 16); pen.textAlign = "left"; }
    const front = inner[at].length ? "\u25b8 " : pill ? (kind[at] === IN ? "\u25b9 " : "\u25c3 ") : "";
    pen.fillText(fit(front + title[at], room - (sign ? (sign.length + 1) * letter : 0)), from + (pill ? 4 : 0), y[at] + (pill ? 15 : 16));
    pen.font = "12px " + FONT;
    const second = inner[at].length ? held[at] + (held[at] === 1 ? " node" : " nodes") : first;
    if (!pill) { pen.fillText(fit(name[at] || (outputs[at][0] >= 0 ? tensor[outputs[at][0]] ?? "" : ""), room), from, y[at] + 31); }
    pen.globalAlpha = 0.75;
    pen.fillText(fit(second, room), from + (pill ? 4 : 0), y[at] + (pill ? 29 : 45));
    pen.globalAlpha = 1;
  }

  function outline(at) {
    pen.strokeStyle = at === picked ? colours.pick : colours.hit;
    pen.lineWidth = Math.max(3, 2.2 / scale);
    if (at !== picked) pen.setLineDash([8 / Math.min(scale, 1), 4 / Math.min(scale, 1)]);
    pen.beginPath();
    pen.roundRect(x[at] - 3, y[at] - 3, w[at] + 6, h[at] + 6, 7);
    pen.stroke();
    pen.setLineDash([]);
  }
  const again = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };

  // ---- Looking around ---------------------------------------------------------------------------
  const free = () => canvas.clientWidth - (side.hidden || innerWidth <= 640 ? 0 : side.clientWidth);
  const freeDown = () => canvas.clientHeight - (side.hidden || innerWidth > 640 ? 0 : side.clientHeight);
  function whole() {
    scale = Math.min(free() / w[0], freeDown() / h[0], 1.4);
    left = -(free() / scale - w[0]) / 2;
    top = -(freeDown() / scale - h[0]) / 2;
    again();
  }
  function centre(at, least) {
    scale = Math.max(scale, least);
    left = x[at] + Math.min(w[at], free() / scale) / 2 - free() / scale / 2;
    top = y[at] + Math.min(h[at], freeDown() / scale) / 2 - freeDown() / scale / 2;
    again();
  }
  function zoom(factor, px, py) {
    const before = scale;
    scale = Math.min(4, Math.max(0.002, scale * factor));
    left += px / before - px / scale;
    top += py / before - py / scale;
    again();
  }
  function toggle(at) {
    const px = x[at], py = y[at];
    if (open.has(at)) open.delete(at); else open.add(at);
    place();
    left += x[at] - px;
    top += y[at] - py;
    again();
  }
  function reveal(at) {
    let hidden = false;
    for (let it = parent[at]; it; it = parent[it]) if (!open.has(it)) { open.add(it); hidden = true; }
    if (hidden) place();
  }
  function go(at) { reveal(at); pick(at); centre(at, 0.75); }
  function under(px, py) {
    const wx = left + px / scale, wy = top + py / scale, slack = 3 / scale;
    let best = -1;
    for (let at = 1; at < count; at++) if (shown[at] && wx >= x[at] - slack && wx <= x[at] + w[at] + slack && wy >= y[at] - slack && wy <= y[at] + h[at] + slack) if (best < 0 || w[at] * h[at] < w[best] * h[best]) best = at;
    return best;
  }

  // ---- What is said of a box --------------------------------------------------------------------
  function made(tag, text, around, kind) {
    const it = document.createElement(tag);
    if (text) it.textContent = text;
    if (kind) it.className = kind;
    around?.append(it);
    return it;
  }
  function button(text, around, run) { const it = made("button", text, around); it.type = "button"; it.addEventListener("click", run); return it; }
  function pick(at) {
    picked = at;
    side.replaceChildren();
    side.hidden = at < 0;
    if (at >= 0) { describe(at); uncover(at); }
    again();
  }
  function uncover(at) {
    const over = (x[at] + w[at] - left) * scale - free() + 12, below = (y[at] + h[at] - top) * scale - freeDown() + 12;
    if (over > 0 && w[at] * scale < free()) left += over / scale;
    if (below > 0 && h[at] * scale < freeDown()) top += below / scale;
  }
  const short = (at) => (kind[at] === NODE ? title[at] + (name[at] ? " " + name[at] : " " + index[at]) : title[at]);
  function describe(at) {
    button("\u2715", side, () => { pick(-1); canvas.focus(); }).className = "close";
    side.lastChild.setAttribute("aria-label", "close");
    made("h2", ({ [NODE]: "", [CALL]: "call ", [BODY]: "body " }[kind[at]] ?? "tensor ") + title[at], side);
    if (name[at]) made("p", "name " + name[at], side);
    const bits = bitsOf(at);
    marks.forEach((mark, i) => { if (bits & (1 << i)) made("p", (mark.sign ? mark.sign + " " : "") + mark.words + (isOpen(at) || !inner[at].length || marked[at] & (1 << i) ? "" : " (in it)"), side); });
    for (const line of data.said[at] ?? []) made("p", said.line[line], side, "said");
    const place = made("p", "", side);
    made("code", path(at), place);
    if (folds(at)) button(open.has(at) ? "Close" : "Open: " + held[at] + (held[at] === 1 ? " node" : " nodes"), made("p", "", side), () => { toggle(at); pick(at); });
    if (attributes[at]) { made("h3", "attributes", side); const list = made("ul", "", side); for (const it of attributes[at].split("\n")) made("li", it, list); }
    if (kind[at] === NODE) { ports("inputs", inputs[at], makers, "from "); ports("outputs", outputs[at], readers, "to "); }
    else if (outputs[at].length) { ports("tensor", outputs[at], makers, "from "); ports("", outputs[at], readers, "to ", true); }
  }
  function ports(heading, list, others, word, bare) {
    if (!list.length) return;
    if (heading) made("h3", heading, side);
    list.forEach((t, i) => {
      const it = made("div", "", side, "tensor");
      if (t < 0) { made("span", i + ": left out", it); return; }
      if (!bare) {
        made("span", (list.length > 1 ? i + ": " : "") + '"' + tensor[t] + '" ' + (type[t] || "no declared type") + (stored.has(t) ? ", stored in the model" : ""), it);
        if (value[t]) {
          const rows = made("dl", "", it);
          for (const text of value[t].split("\n")) { const at = text.indexOf(" "); made("dt", text.slice(0, at), rows); made("dd", text.slice(at + 1), rows); }
        }
        made("div", "", it).append(made("code", tensorPath(t)));
      }
      const targets = others.get(t) ?? [];
      for (const other of targets.slice(0, 20)) button(word + short(other), it, () => go(other));
      if (targets.length > 20) made("span", "and " + (targets.length - 20) + " more", it);
    });
  }

  // ---- Search and legend ------------------------------------------------------------------------
  const escaped = (text) => text.replace(/[^ -~]|["\\<>&]/g, (c) => (c === '"' || c === "\\" ? "\\" + c : "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")));
  let haystack = null;
  function search() {
    const wanted = escaped(part("search").value.trim()).toLowerCase();
    haystack ??= kind.map((it, at) => (title[at] + "\n" + name[at] + "\n" + (it === NODE ? outputs[at].map((t) => (t < 0 ? "" : tensor[t])).join("\n") : "")).toLowerCase());
    hits = [];
    if (wanted) for (let at = 1; at < count; at++) if (haystack[at].includes(wanted)) hits.push(at);
    hit = -1;
    part("hits").textContent = wanted ? (hits.length === 1 ? "1 hit" : hits.length + " hits") : "";
    hitting = new Set(hits);
    again();
  }
  function jump(by) {
    if (!hits.length) return;
    hit = hit < 0 ? (by > 0 ? 0 : hits.length - 1) : (hit + by + hits.length) % hits.length;
    part("hits").textContent = hit + 1 + " of " + hits.length;
    go(hits[hit]);
  }
  let along = 0;
  function step(i, by) {
    const with_ = [];
    for (let at = 1; at < count; at++) if (marked[at] & (1 << i)) with_.push(at);
    if (!with_.length) return;
    along = i;
    const here = with_.indexOf(picked);
    go(with_[here < 0 ? (by > 0 ? 0 : with_.length - 1) : (here + by + with_.length) % with_.length]);
  }
  function legend() {
    marks.forEach((mark, i) => {
      let n = 0;
      for (let at = 1; at < count; at++) if (marked[at] & (1 << i)) n++;
      const it = button("", part("legend"), () => step(i, 1)), swatch = made("i", mark.sign || "\u00a0", it);
      swatch.style.background = mark.tone ? "var(--" + mark.tone + ")" : "transparent";
      swatch.style.borderColor = mark.tone ? "var(--" + mark.tone + "-line)" : "transparent";
      if (mark.tone === "alarm") swatch.style.color = "var(--g-ground)";
      made("span", mark.words + " " + n, it);
      it.disabled = !n;
    });
    const ways = new Set(from.map((_, e) => route(e).how)), notes = [];
    if (ways.has(FAR)) notes.push("\u2504 the two ends of a long edge: choose a box to see it whole");
    if (ways.has(BACK)) notes.push("\u254c an edge that closes a cycle");
    for (const text of [...notes, ...data.general]) made("small", text, part("legend"));
  }

  // ---- Pointer and keys -------------------------------------------------------------------------
  const fingers = new Map();
  let moved = 0, apart = 0;
  const at = (event) => { const r = canvas.getBoundingClientRect(); return [event.clientX - r.left, event.clientY - r.top]; };
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); fingers.set(event.pointerId, at(event)); if (fingers.size === 1) moved = 0; apart = 0; });
  canvas.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const before = fingers.get(event.pointerId), now = at(event);
    fingers.set(event.pointerId, now);
    moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
    left -= (now[0] - before[0]) / scale / fingers.size;
    top -= (now[1] - before[1]) / scale / fingers.size;
    if (fingers.size === 2) {
      const [p, q] = [...fingers.values()], far = Math.hypot(p[0] - q[0], p[1] - q[1]);
      if (apart && far) zoom(far / apart, (p[0] + q[0]) / 2, (p[1] + q[1]) / 2);
      apart = far;
    }
    again();
  });
  const release = (event) => {
    if (!fingers.delete(event.pointerId)) return;
    apart = 0;
    if (event.type === "pointerup" && moved < 6 && !fingers.size) pick(under(...at(event)));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("dblclick", (event) => { const it = under(...at(event)); if (it >= 0 && folds(it)) { toggle(it); pick(it); } });
  canvas.addEventListener("wheel", (event) => {
    if (!section.classList.contains("alone") && document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...at(event));
  }, { passive: false });
  function beside(key) {
    if (picked < 0) return data.focus || 1;
    if (key === "ArrowUp" || key === "ArrowDown") {
      const own = near[picked].filter((e) => (key === "ArrowDown" ? from[e] : to[e]) === picked).map((e) => (key === "ArrowDown" ? to[e] : from[e]));
      if (own.length) return own[0];
      return key === "ArrowUp" && parent[picked] ? parent[picked] : key === "ArrowDown" && isOpen(picked) ? inner[picked][0] : picked;
    }
    const same = inner[parent[picked]].filter((it) => row[it] === row[picked]).sort((a, b) => x[a] - x[b]), place = same.indexOf(picked);
    return same[Math.min(Math.max(place + (key === "ArrowRight" ? 1 : -1), 0), same.length - 1)];
  }
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key, wide = canvas.clientWidth, tall = canvas.clientHeight;
    if (key.startsWith("Arrow") && event.shiftKey) {
      left += ({ ArrowLeft: -80, ArrowRight: 80 }[key] ?? 0) / scale;
      top += ({ ArrowUp: -80, ArrowDown: 80 }[key] ?? 0) / scale;
      again();
    } else if (key.startsWith("Arrow")) go(beside(key));
    else if (key === "+" || key === "=") zoom(1.25, wide / 2, tall / 2);
    else if (key === "-") zoom(0.8, wide / 2, tall / 2);
    else if (key === "0" || key === "f") whole();
    else if (key === "Enter" && picked >= 0 && folds(picked)) { toggle(picked); pick(picked); }
    else if (key === "Escape") pick(-1);
    else if (key === "n" || key === "p") step(along, key === "n" ? 1 : -1);
    else if (key === "c" || key === "o") each(key === "o");
    else return;
    event.preventDefault();
  });
  function each(opened) {
    for (let at = 1; at < count; at++) if (folds(at)) { if (opened) open.add(at); else open.delete(at); }
    part("fold").textContent = opened ? "Close all" : "Open all";
    place();
    whole();
  }
  section.addEventListener("keydown", (event) => { if (event.key === "/" && event.target !== part("search")) { event.preventDefault(); part("search").focus(); } });
  part("search").addEventListener("input", search);
  part("search").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); jump(event.shiftKey ? -1 : 1); } if (event.key === "Escape") { part("search").value = ""; search(); canvas.focus(); } });
  part("after").addEventListener("click", () => jump(1));
  part("before").addEventListener("click", () => jump(-1));
  part("fit").addEventListener("click", whole);
  part("in").addEventListener("click", () => zoom(1.3, canvas.clientWidth / 2, canvas.clientHeight / 2));
  part("out").addEventListener("click", () => zoom(1 / 1.3, canvas.clientWidth / 2, canvas.clientHeight / 2));
  part("fold").addEventListener("click", () => each(![...Array(count).keys()].some((it) => folds(it) && open.has(it))));
  if (!kind.some((_, it) => folds(it))) part("fold").hidden = true; else if (![...Array(count).keys()].some((it) => folds(it) && open.has(it))) part("fold").textContent = "Open all";

  // ---- Begin ------------------------------------------------------------------------------------
  function begin() {
    if (!canvas.clientWidth || !canvas.clientHeight) return;
    if (!ready) {
      ready = true;
      pen.font = "12px " + FONT;
      letter = pen.measureText("0").width || letter;
      place();
      legend();
      whole();
      if (scale < 0.42 && data.focus) {
        scale = 0.8;
        centre(data.focus, 0.8);
        top = Math.max(0, Math.min(top, h[0] - freeDown() / scale)); // no empty space beside the graph
        again();
      }
      draw();
      performance.mark("graph");
    } else again();
  }
  theme();
  new ResizeObserver(begin).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { theme(); again(); });
  begin();
  return { x, y, w, h, shown, inner, parent, kind, title, name, path, tensorPath, row, from, to, open, go, toggle, isOpen, pick, get scale() { return scale; }, get picked() { return picked; }, get hits() { return hits; } };
})();
