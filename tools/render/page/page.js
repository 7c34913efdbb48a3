/* The script of a page, and the things that a page can do with it. Without it every number still
   stands on the page: tables and drawings are complete, and marks have the browser's own tooltips.

   Numbers are written as numbers.cpp writes them. Drawings describe themselves in attributes:
   `data-x`, `data-y` and `data-points` (line_chart.cpp), `data-grid` (heat_map.cpp), `data-row`
   (row_chart.cpp), `data-choices` (scatter.cpp). */
'use strict';
(() => {
const all = (root, selector) => [...root.querySelectorAll(selector)];
const make = (tag, attributes, ...children) => {
  const e = tag[0] === '+' ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(1))
    : document.createElement(tag);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  e.append(...children);
  return e;
};
const button = (text, label, act) => {
  const b = make('button', {type: 'button', title: label}, text);
  if (text.length < 2 || label.toLowerCase().includes(text.toLowerCase()))
    b.setAttribute('aria-label', label);
  b.addEventListener('click', act);
  return b;
};

/* Numbers for people. */
const significant = v => {
  const s = Math.abs(v);
  return v.toFixed(s >= 99.95 || s === 0 ? 0 : s >= 9.995 ? 1 : s >= .9995 ? 2
    : Math.min(9, 2 - Math.floor(Math.log10(s))));
};
const bare = t => t.includes('.') ? t.replace(/\.?0+$/, '') : t;
const scaled = (v, scales) => {
  let best = scales[0];
  for (const s of scales) if (Math.abs(v) >= s[0] * .9995) best = s;
  return bare(significant(v / best[1])) + best[2];
};
const SECONDS = [[0, 1e-6, '\u00a0µs'], [1e-3, 1e-3, '\u00a0ms'], [1, 1, '\u00a0s'],
  [600, 60, '\u00a0min'], [36000, 3600, '\u00a0h']];
const PLAIN = [[0, 1, ''], [1e4, 1e3, '\u00a0k'], [1e6, 1e6, '\u00a0M'], [1e9, 1e9, '\u00a0G']];
const plain = v => Math.abs(v) >= 999.5 && Math.abs(v) < 9995 ? v.toFixed(0) : scaled(v, PLAIN);
const human = (v, unit) => {
  if (unit === 's') return v === 0 ? '0\u00a0s' : scaled(v, SECONDS);
  if (unit === 'ratio') return bare(significant(100 * v)) + '\u00a0%';
  if (unit === '%') return bare(significant(v)) + '\u00a0%';
  if (unit === '$') return '$' + plain(v);
  return plain(v) + (unit.endsWith('/s') ? '\u00a0' + unit : '');
};

/* Downloads: the numbers as they stand in the data block. */
const slug = t => t.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60);
const save = (name, type, text) => {
  const link = make('a', {download: name, href: URL.createObjectURL(new Blob([text], {type}))});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const field = v => /[",\n\r]/.test(v) ? '"' + String(v).replaceAll('"', '""') + '"' : String(v);
const csv = rows => rows.map(r => r.map(field).join(',') + '\r\n').join('');
const json = ([names, ...rows]) => JSON.stringify(rows.map(r =>
  Object.fromEntries(r.map((v, i) => [names[i] || 'column ' + (i + 1), v]))), null, 1) + '\n';
/* Buttons that download what `rows` gives: a heading, then cells that are numbers or text. */
const downloads = (what, rows) => ['CSV', 'JSON'].map(kind =>
  button(kind, 'Download ' + what() + ' as ' + kind, () => save(slug(document.title.split(' · ')[0])
    + '-' + slug(what()) + '.' + kind.toLowerCase(), kind === 'CSV' ? 'text/csv' :
    'application/json', (kind === 'CSV' ? csv : json)(rows()))));

/* The box with the numbers under the pointer or the keyboard's cursor. */
const tip = document.getElementById('tip');
const hide = () => { tip.style.display = 'none'; };
const show = (x, y, ...content) => {
  (document.querySelector('dialog[open]') || document.body).append(tip);
  tip.replaceChildren(...content);
  tip.style.display = 'block';
  const base = tip.offsetParent ? tip.offsetParent.getBoundingClientRect() : {left: 0, top: 0};
  const inside = tip.parentElement.tagName === 'DIALOG';
  const w = tip.offsetWidth, h = tip.offsetHeight, room = document.documentElement.clientWidth;
  const left = x + 14 + w < room ? x + 14 : Math.max(6, x - 14 - w);
  const top = y - h - 10 > 0 ? y - h - 10 : y + 14;
  tip.style.left = left - (inside ? base.left : -scrollX) + 'px';
  tip.style.top = top - (inside ? base.top : -scrollY) + 'px';
};
addEventListener('scroll', hide, {passive: true});

/* Client pixels to the units of a drawing, and back. */
const inside = (svg, event) => new DOMPoint(event.clientX, event.clientY)
  .matrixTransform(svg.getScreenCTM().inverse());
const outside = (svg, x, y) => new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());

/* What every figure can do: be read by pointer and keys, enlarged, and downloaded. `read` gets a
   point and shows its numbers, `step` moves the keyboard's cursor. */
const enliven = (svg, {read, step, rows, buttons = []}) => {
  const figure = svg.closest('figure');
  all(svg, 'title').forEach(t => t.remove());
  svg.classList.add('live');
  svg.tabIndex = 0;
  svg.setAttribute('aria-label', svg.getAttribute('aria-label') + ' Arrow keys read the numbers.');
  svg.addEventListener('pointermove', e => { const p = inside(svg, e); read(p.x, p.y); });
  svg.addEventListener('pointerdown', e => { const p = inside(svg, e); read(p.x, p.y); });
  svg.addEventListener('pointerleave', () => { hide(); read(null); });
  svg.addEventListener('blur', () => { hide(); read(null); });
  svg.addEventListener('keydown', e => {
    const moves = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]};
    if (e.key === 'Escape') { hide(); read(null); }
    else if (moves[e.key]) { e.preventDefault(); step(...moves[e.key]); }
  });
  const name = () => figure.querySelector('figcaption strong').textContent;
  const large = button('enlarge', 'Enlarge: ' + name(), () => {
    const open = figure.closest('dialog');
    if (open) { open.close(); return; }
    const place = make('span', {hidden: ''});
    const dialog = make('dialog', {'aria-label': name()});
    figure.replaceWith(place);
    dialog.append(figure);
    document.querySelector('main').append(dialog);
    dialog.showModal();
    large.textContent = 'close';
    large.setAttribute('aria-label', 'close');
    dialog.addEventListener('close', () => {
      hide();
      document.body.append(tip);
      place.replaceWith(figure);
      dialog.remove();
      large.textContent = 'enlarge';
      large.setAttribute('aria-label', 'Enlarge: ' + name());
      large.focus();
    });
  });
  figure.append(make('div', {class: 'tools screen'}, ...buttons, large, ...downloads(name, rows)));
};

/* Line charts. */
const axis = text => {
  const [kind, low, high, from, to, unit, ...title] = text.split(' ');
  return {log: kind === 'log', low: +low, high: +high, from: +from, to: +to, unit,
    title: title.join(' '), home: [+low, +high]};
};
const pixel = (a, v) => a.from + ((a.log ? Math.log10(Math.max(v, 1e-300)) : v) - a.low) /
  (a.high - a.low) * (a.to - a.from);
const unpixel = (a, p) => a.low + (p - a.from) / (a.to - a.from) * (a.high - a.low);
const ticks = a => {
  const out = [];
  const span = a.high - a.low;
  if (a.log && span > .7) {
    for (let e = Math.floor(a.low); e <= a.high; ++e)
      for (const f of span < 2.2 ? [1, 2, 5] : [1]) out.push(f * 10 ** e);
  } else {
    const low = a.log ? 10 ** a.low : a.low, high = a.log ? 10 ** a.high : a.high;
    const power = 10 ** Math.floor(Math.log10((high - low) / 5));
    const size = power * [1, 2, 2.5, 5, 10].find(f => f * power >= (high - low) / 5);
    for (let i = Math.ceil(low / size); i * size <= high; ++i) out.push(i * size);
  }
  return out.filter(t => { const v = a.log ? Math.log10(t) : t;
    return v >= a.low - span / 1e6 && v <= a.high + span / 1e6; });
};
const plots = [];
let clips = 0;
const plot = svg => {
  const x = axis(svg.dataset.x), y = axis(svg.dataset.y);
  const series = all(svg, '.series').map(g => ({g, name: g.dataset.name, off: false,
    points: g.dataset.points ? g.dataset.points.split(';').map(t => {
      const v = t.replace('!', '').split(' ').map(Number);
      return {x: v[0], y: v[1], low: v[2], high: v[3], over: t.endsWith('!')};
    }) : [],
    /* Everything drawn, with its place in the drawing at first. */
    lines: all(g, '.line').map(e => ({e, d: e.getAttribute('d')})),
    marks: all(g, '.mark').map(e => ({e, at: e.getAttribute('transform').match(/[-\d.]+/g)
      .map(Number)})),
    bars: all(g, '.interval').map(e => ({e, at: ['x1', 'y1', 'x2', 'y2'].map(k =>
      +e.getAttribute(k))}))}));
  const grid = svg.querySelector('.ticks'), first = grid.innerHTML;
  const goal = all(svg, '.goal line').map(e => ({e, at: +e.getAttribute('y1')}));
  const cursor = make('+line', {class: 'cursor', y1: y.to, y2: y.from, visibility: 'hidden'});
  const band = make('+rect', {class: 'band', y: y.to, height: y.from - y.to, visibility: 'hidden'});
  svg.append(cursor, band);
  /* A zoom is one affine map of pixels per axis, also along logarithmic ones. */
  const moved = (a, p) => {
    const v = a.home[0] + (p - a.from) / (a.to - a.from) * (a.home[1] - a.home[0]);
    return a.from + (v - a.low) / (a.high - a.low) * (a.to - a.from);
  };
  const fmt = v => v.toFixed(1);
  const redraw = () => {
    const home = x.low === x.home[0] && x.high === x.home[1] &&
      y.low === y.home[0] && y.high === y.home[1];
    const mx = p => fmt(moved(x, p)), my = p => fmt(moved(y, p));
    for (const s of series) {
      for (const l of s.lines) l.e.setAttribute('d', home ? l.d :
        l.d.replace(/([ML])([-\d.]+) ([-\d.]+)|H([-\d.]+)|V([-\d.]+)/g, (t, c, px, py, h, v) =>
          c ? c + mx(+px) + ' ' + my(+py) : h ? 'H' + mx(+h) : 'V' + my(+v)));
      for (const m of s.marks)
        m.e.setAttribute('transform', 'translate(' + mx(m.at[0]) + ' ' + my(m.at[1]) + ')');
      for (const b of s.bars) ['x1', 'y1', 'x2', 'y2'].forEach((k, i) =>
        b.e.setAttribute(k, (i % 2 ? my : mx)(b.at[i])));
      if (home) s.g.removeAttribute('clip-path');
      else s.g.setAttribute('clip-path', 'url(#' + clip() + ')');
    }
    for (const g of goal) {
      const at = moved(y, g.at);
      for (const k of ['y1', 'y2']) g.e.setAttribute(k, fmt(at));
      g.e.setAttribute('visibility', at < y.to - 1 || at > y.from + 1 ? 'hidden' : 'visible');
    }
    if (home) { grid.innerHTML = first; return; }
    grid.replaceChildren();
    const text = (px, py, anchor, t) => make('+text', {x: fmt(px), y: fmt(py),
      'text-anchor': anchor}, t);
    for (const t of ticks(y)) {
      const at = fmt(pixel(y, t));
      grid.append(make('+line', {class: 'grid', x1: x.from, x2: x.to, y1: at, y2: at}),
        text(x.from - 6, +at + 4, 'end', human(t, y.unit.endsWith('/s') ? '-' : y.unit)));
    }
    let last = -99;
    for (const t of ticks(x)) {
      const at = pixel(x, t), label = human(t, x.unit.endsWith('/s') ? '-' : x.unit);
      grid.append(make('+line', {class: 'axis', x1: fmt(at), x2: fmt(at), y1: y.from,
        y2: y.from + 4}));
      const half = 4.1 * label.length;
      if (at - half < last + 6) continue;
      last = at + half;
      grid.append(text(Math.min(at, x.to + 14 - half), y.from + 18, 'middle', label));
    }
  };
  let clipId = '';
  const clip = () => {
    if (!clipId) {
      clipId = 'clip' + ++clips;
      svg.prepend(make('+clipPath', {id: clipId}, make('+rect', {x: x.from - 2, y: y.to - 2,
        width: x.to - x.from + 4, height: y.from - y.to + 4})));
    }
    return clipId;
  };
  const seen = () => series.filter(s => !s.off);
  /* Fits the second axis to what is left to see. */
  const fit = () => {
    const whole = x.low === x.home[0] && x.high === x.home[1];
    if (whole && seen().length === series.length) { [y.low, y.high] = y.home; return; }
    const values = seen().flatMap(s => s.points.filter(p => {
      const v = x.log ? Math.log10(p.x) : p.x;
      return v >= x.low && v <= x.high;
    }).flatMap(p => [p.y, ...(p.high === undefined ? [] : [p.low, p.high])])).filter(v =>
      !y.log || v > 0).map(v => y.log ? Math.log10(v) : v);
    if (!values.length) return;
    let low = Math.min(...values), high = Math.max(...values);
    if (whole) low = y.log ? Math.floor(low) : Math.min(low, y.home[0]);
    const pad = (high - low || Math.abs(high) || 1) * .08;
    y.low = whole ? low : Math.max(low - pad, y.log ? -Infinity : y.home[0]);
    y.high = high + pad;
  };
  const zoom = (low, high) => {
    const least = (x.home[1] - x.home[0]) / 500;
    if (high - low < least) return;
    x.low = Math.max(x.home[0], low);
    x.high = Math.min(x.home[1], high);
    fit();
    redraw();
  };
  let at = null;  /* The keyboard's place: a value of x. */
  const scale = factor => {
    const v = at === null ? (x.low + x.high) / 2 : x.log ? Math.log10(at) : at;
    const middle = Math.min(Math.max(v, x.low), x.high);
    zoom(middle - (middle - x.low) * factor, middle + (x.high - middle) * factor);
  };
  const reset = () => zoom(...x.home);
  const read = (px, py) => {
    if (px === null) { cursor.setAttribute('visibility', 'hidden'); return; }
    let best = null;
    for (const s of seen()) for (const p of s.points) {
      const d = Math.abs(pixel(x, p.x) - px);
      if (pixel(x, p.x) >= x.from - 1 && pixel(x, p.x) <= x.to + 1 && (!best || d < best.d))
        best = {d, x: p.x};
    }
    if (!best || best.d > 60) { hide(); return; }
    const where = pixel(x, best.x);
    const rows = seen().flatMap(s => {
      let near = null;
      for (const p of s.points) {
        const d = Math.abs(pixel(x, p.x) - where);
        if (d < 7 && (!near || d < near.d)) near = {d, p, s};
      }
      return near ? [near] : [];
    }).sort((a, b) => b.p.y - a.p.y);
    const closest = rows.reduce((a, b) => Math.abs(pixel(y, b.p.y) - py) <
      Math.abs(pixel(y, a.p.y) - py) ? b : a, rows[0]);
    cursor.setAttribute('x1', fmt(where));
    cursor.setAttribute('x2', fmt(where));
    cursor.setAttribute('visibility', 'visible');
    const from = Math.max(0, Math.min(rows.indexOf(closest) - 6, rows.length - 12));
    const table = make('table', {role: 'presentation'}, ...rows.slice(from, from + 12).map(r =>
      make('tr', r === closest ? {class: 'near'} : {}, make('td', {}, r.s.name), make('td', {},
        human(r.p.y, y.unit) + (r.p.high === undefined ? '' : ' (' + human(r.p.low, y.unit) +
        ' to ' + human(r.p.high, y.unit) + ')') + (r.p.over ? ', overloaded' : '')))));
    const client = outside(svg, where, Math.min(Math.max(pixel(y, closest.p.y), y.to), y.from));
    show(client.x, client.y, make('div', {}, x.title + ': ' + human(best.x, x.unit)), table,
      ...(rows.length > 12 ? [rows.length - 12 + ' more'] : []));
  };
  const step = right => {
    const places = [...new Set(seen().flatMap(s => s.points.map(p => p.x)))].filter(v => {
      const p = pixel(x, v);
      return p >= x.from - 1 && p <= x.to + 1;
    }).sort((a, b) => a - b);
    if (!places.length) return;
    const now = at === null ? (right > 0 ? -1 : places.length) :
      places.findIndex(v => v >= at);
    at = places[Math.min(Math.max(now + (right || 0), 0), places.length - 1)];
    read(pixel(x, at), y.from);
  };
  let grab = null;
  svg.addEventListener('pointerdown', e => { if (e.button === 0) grab = inside(svg, e).x; });
  svg.addEventListener('pointermove', e => {
    if (grab === null || !(e.buttons & 1)) return;
    const now = inside(svg, e).x, from = Math.max(x.from, Math.min(grab, now));
    svg.setPointerCapture(e.pointerId);
    band.setAttribute('x', fmt(from));
    band.setAttribute('width', fmt(Math.max(0, Math.min(x.to, Math.max(grab, now)) - from)));
    band.setAttribute('visibility', 'visible');
  });
  const release = e => {
    band.setAttribute('visibility', 'hidden');
    const from = grab;
    grab = null;
    if (from === null || e.type === 'pointercancel') return;
    const to = inside(svg, e).x;
    if (Math.abs(to - from) > 8)
      zoom(unpixel(x, Math.max(x.from, Math.min(from, to))),
        unpixel(x, Math.min(x.to, Math.max(from, to))));
  };
  svg.addEventListener('pointerup', release);
  svg.addEventListener('pointercancel', release);
  svg.addEventListener('dblclick', reset);
  svg.addEventListener('keydown', e => {
    const acts = {'+': () => scale(.5), '=': () => scale(.5), '-': () => scale(2), '0': reset};
    if (acts[e.key] && !e.ctrlKey && !e.metaKey) acts[e.key]();
  });
  enliven(svg, {read, step,
    rows: () => [['series', x.title || 'x', y.title || 'y', 'low', 'high', 'overloaded'],
      ...series.flatMap(s => s.points.map(p => [s.name, p.x, p.y, p.low ?? '', p.high ?? '',
        p.over ? 'yes' : 'no']))],
    buttons: series.some(s => s.points.length > 1) ? [
      button('+', 'Zoom in', () => scale(.5)), button('−', 'Zoom out', () => scale(2)),
      button('reset', 'Show the whole range again', reset)] : []});
  plots.push({svg, series, update: () => { fit(); redraw(); }});
};
/* A name in a legend hides its series in every figure that has it. */
const legends = () => all(document, 'figure .legend li[data-name]').forEach(li => {
  const name = li.dataset.name, figure = li.closest('figure');
  const mine = () => plots.filter(p => p.series.some(s => s.name === name));
  const toggle = make('button', {type: 'button', 'aria-pressed': 'true',
    title: 'Show or hide it in every figure'}, ...li.childNodes);
  li.append(toggle);
  toggle.addEventListener('click', () => {
    const on = toggle.getAttribute('aria-pressed') === 'false';
    all(document, 'figure .legend li[data-name]').filter(o => o.dataset.name === name)
      .forEach(o => o.firstElementChild.setAttribute('aria-pressed', on));
    for (const p of mine()) {
      for (const s of p.series) if (s.name === name) {
        s.off = !on;
        s.g.classList.toggle('off', s.off);
      }
      p.update();
    }
  });
  const dim = on => plots.filter(p => figure.contains(p.svg)).forEach(p => p.series.forEach(s =>
    s.g.classList.toggle('dim', on && s.name !== name)));
  toggle.addEventListener('pointerenter', () => dim(true));
  toggle.addEventListener('pointerleave', () => dim(false));
});

/* Heat maps. */
const heat = svg => {
  const [place, titles, rowNames, columnNames, cells] = svg.dataset.grid.split('\n');
  const [left, top, width, height, unit] = place.split(' ').map((t, i) => i < 4 ? +t : t);
  const [rowTitle, columnTitle] = titles.split('\t');
  const rows = rowNames.split('\t'), columns = columnNames.split('\t');
  const values = cells.split(';').map(r => r.split(' ').map(t => t === '' ? null : +t));
  const pick = make('+rect', {class: 'pick', width, height, visibility: 'hidden'});
  svg.append(pick);
  let r = -1, c = -1;
  const mark = () => {
    pick.setAttribute('x', left + c * width);
    pick.setAttribute('y', top + r * height);
    pick.setAttribute('visibility', 'visible');
    const client = outside(svg, left + (c + .5) * width, top + r * height);
    const value = values[r][c];
    show(client.x, client.y, make('div', {}, (rowTitle ? rowTitle + ' ' : '') + rows[r]),
      make('div', {}, (columnTitle ? columnTitle + ' ' : '') + columns[c]),
      make('strong', {}, value === null ? 'no result' : human(value, unit)));
  };
  const read = (px, py) => {
    pick.setAttribute('visibility', 'hidden');
    if (px === null) return;
    c = Math.floor((px - left) / width);
    r = Math.floor((py - top) / height);
    if (r < 0 || c < 0 || r >= rows.length || c >= columns.length) { hide(); return; }
    mark();
  };
  enliven(svg, {read, step: (right, down) => {
    const within = (v, n) => Math.min(Math.max(v, 0), n - 1);
    c = within(c + right, columns.length);
    r = within(r + down, rows.length);
    mark();
  }, rows: () => [[rowTitle || 'row', columnTitle || 'column', 'value'], ...values.flatMap((line,
    i) => line.map((v, j) => [rows[i], columns[j], v ?? '']))]});
};

/* Bars, strips and any other drawing with tooltips: the nearest mark speaks. */
const marks = svg => {
  const list = all(svg, 'title').map(t => ({e: t.parentNode, text: t.textContent}));
  let now = -1;
  const say = i => {
    now = i;
    const b = list[i].e.getBoundingClientRect();
    show(b.left + b.width / 2, b.top, list[i].text);
  };
  const rows = all(svg, '[data-row]').map(e => e.dataset.row.split('\t').map((t, i, row) =>
    i === row.length - 1 && t !== '' && !isNaN(t) ? +t : t));
  enliven(svg, {read: (px, py) => {
    if (px === null) return;
    const client = outside(svg, px, py);
    let best = -1, least = 40 * 40;
    list.forEach(({e}, i) => {
      const b = e.getBoundingClientRect();
      const dx = Math.max(b.left - client.x, 0, client.x - b.right);
      const dy = Math.max(b.top - client.y, 0, client.y - b.bottom);
      if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = i; }
    });
    best < 0 ? hide() : say(best);
  }, step: (right, down) => {
    if (list.length) say(Math.min(Math.max(now + right + down, 0), list.length - 1));
  }, rows: () => [(svg.dataset.columns || 'value').split('\t'),
    ...(rows.length ? rows : list.map(({text}) => [text]))]});
};
/* A front of which the reader chooses the axes; they are linear and begin at 0. */
const choose = svg => {
  const names = svg.dataset.choices.split(';').map(t => t.split('\t'));
  const [atX, atY, left, right, bottom, top] = svg.dataset.box.split(' ').map(Number);
  const points = all(svg, '[data-lead],[data-aside]').map(e => ({e, lead: 'lead' in e.dataset,
    v: (e.dataset.lead || e.dataset.aside).split(' ').map(Number)}));
  const grid = svg.querySelector('.ticks'), front = svg.querySelector('.front');
  const first = [grid.innerHTML, front.getAttribute('d')];
  for (const p of points) p.home = p.e.getAttribute('transform');
  const [titleY, titleX] = all(svg, 'text.unit');
  const draw = (i, j) => {
    const home = i === atX && j === atY;
    const known = points.filter(p => isFinite(p.v[i]) && isFinite(p.v[j]));
    const scale = (k, from, to) => ({low: 0, from, to,
      high: Math.max(...known.map(p => p.v[k])) * 1.05 || 1});
    const x = scale(i, left, right), y = scale(j, bottom, top);
    for (const p of points) {
      p.e.setAttribute('transform', home || !known.includes(p) ? p.home :
        'translate(' + pixel(x, p.v[i]) + ' ' + pixel(y, p.v[j]) + ')');
      p.e.setAttribute('visibility', home || known.includes(p) ? 'visible' : 'hidden');
    }
    all(svg, '.goal').forEach(e => e.setAttribute('visibility', home ? 'visible' : 'hidden'));
    titleX.textContent = names[i][0];
    titleY.textContent = names[j][0];
    if (home) { [grid.innerHTML] = first; front.setAttribute('d', first[1]); return; }
    const cost = (p, k) => names[k][2] === 'less' ? p.v[k] : -p.v[k];
    let best = Infinity, path = '';
    for (const p of known.filter(q => q.lead).sort((a, b) => cost(a, i) - cost(b, i) ||
        cost(a, j) - cost(b, j))) {
      if (cost(p, j) >= best) continue;
      best = cost(p, j);
      const at = [pixel(x, p.v[i]), pixel(y, p.v[j])];
      path += path ? 'H' + at[0] + 'V' + at[1] : 'M' + at;
    }
    front.setAttribute('d', path);
    grid.replaceChildren();
    const label = (t, k) => human(t, names[k][1].endsWith('/s') ? '-' : names[k][1]);
    for (const t of ticks(y)) grid.append(make('+line', {class: 'grid', x1: left, x2: right,
      y1: pixel(y, t), y2: pixel(y, t)}), make('+text', {x: left - 6, y: pixel(y, t) + 4,
      'text-anchor': 'end'}, label(t, j)));
    for (const t of ticks(x)) grid.append(make('+line', {class: 'axis', x1: pixel(x, t),
      x2: pixel(x, t), y1: bottom, y2: bottom + 4}), make('+text', {x: pixel(x, t),
      y: bottom + 18, 'text-anchor': 'middle'}, label(t, i)));
  };
  const lists = [['across', atX], ['up', atY]].map(([text, at]) => {
    const list = make('select', {}, ...names.map((n, k) => make('option',
      k === at ? {selected: ''} : {}, n[0])));
    list.addEventListener('change', () => draw(...lists.map(l => l.selectedIndex)));
    return list;
  });
  svg.closest('figure').querySelector('.tools').append(...lists.map((list, k) =>
    make('label', {}, ['across ', 'up '][k], list)));
};
all(document, 'figure > svg').forEach(svg =>
  (svg.dataset.x ? plot : svg.dataset.grid ? heat : marks)(svg));
all(document, 'svg[data-choices]').forEach(choose);
legends();

/* Tables: sorted by any column, filtered, downloaded. */
const text = cell => {
  const copy = cell.cloneNode(true);
  all(copy, 'small, svg').forEach(e => e.remove());
  return copy.textContent.trim().replace(/\u00a0/g, ' ');
};
const value = cell => cell.dataset.value !== undefined ? +cell.dataset.value : text(cell);
const sortable = (table, heads, body) => {
  const order = [...body.rows];
  const key = cell => {
    if (!cell) return null;
    if (cell.dataset.value !== undefined) return +cell.dataset.value;
    const t = text(cell).replace(/−/g, '-');
    return /^[-+$]*[\d.]/.test(t) ? parseFloat(t.replace(/[$+]/g, '')) : t;
  };
  heads.forEach((th, i) => {
    const b = make('button', {type: 'button', title: 'Sort'}, ...th.childNodes);
    b.addEventListener('click', () => {
      const was = th.getAttribute('aria-sort');
      heads.forEach(h => h.removeAttribute('aria-sort'));
      if (was === 'descending') { body.append(...order); return; }
      const sign = was === 'ascending' ? -1 : 1;
      th.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
      const empty = k => k === null || k === '' || k === '–';
      body.append(...order.map(row => ({row, k: key(row.cells[i])})).sort((a, b) =>
        empty(a.k) || empty(b.k) ? empty(a.k) - empty(b.k) :
        sign * (typeof a.k === 'number' && typeof b.k === 'number' ? a.k - b.k :
          String(a.k).localeCompare(String(b.k), 'en', {numeric: true}))).map(e => e.row));
    });
    th.append(b);
  });
};
all(document, 'table').forEach(table => {
  const body = table.tBodies[0], frame = table.closest('.scroll') || table;
  if (!table.tHead || !body || !body.rows.length) return;
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const rows = [...body.rows];
  let name = '';
  for (let e = frame; e && !name; e = e.parentElement)
    for (let p = e.previousElementSibling; p && !name; p = p.previousElementSibling)
      if (p.matches('h1, h2, h3, summary')) name = p.textContent.trim();
  const names = heads.map(text);
  const plainHeads = heads.every(h => h.colSpan === 1) && rows.every(r => r.cells.length ===
    heads.length);
  const tools = make('div', {class: 'tools screen'});
  if (rows.length > 7) {
    const count = make('span', {role: 'status'});
    const input = make('input', {type: 'search', placeholder: 'filter rows',
      'aria-label': 'Filter rows of ' + (name || 'this table')});
    input.addEventListener('input', () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let n = 0;
      for (const r of rows) {
        const t = r.textContent.toLowerCase();
        r.hidden = !words.every(w => t.includes(w));
        if (!r.hidden) ++n;
      }
      count.textContent = words.length ? n + ' of ' + rows.length : '';
    });
    tools.append(input, count);
  }
  if (plainHeads) {
    tools.append(...downloads(() => name || 'table', () => [names, ...[...body.rows].map(r =>
      [...r.cells].map(value))]));
    if (rows.length > 1) sortable(table, heads, body);
  }
  frame.before(tools);
});
/* Tables that are wider than the window can be scrolled with keys. */
const reach = () => all(document, '.scroll, pre').forEach(e => {
  if (e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight) {
    e.tabIndex = 0;
    e.setAttribute('role', 'group');
    e.setAttribute('aria-label', 'scrolls');
  } else ['tabindex', 'role', 'aria-label'].forEach(k => e.removeAttribute(k));
});
new ResizeObserver(reach).observe(document.body);
reach();

/* Paper shows what is folded away; a link opens what it points into. */
let folded = [];
addEventListener('beforeprint', () => {
  hide();
  folded = all(document, 'details:not([open])');
  folded.forEach(d => { d.open = true; });
});
addEventListener('afterprint', () => folded.forEach(d => { d.open = false; }));
const unfold = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(
    location.hash.slice(1)));
  for (let e = target; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true;
  if (target) target.scrollIntoView();
};
addEventListener('hashchange', unfold);
unfold();
})();
