// The graph of a run on a canvas: thousands of boxes, of which only those in sight are drawn, in as much detail as fits.
import { html, useEffect, useLayoutEffect, useRef, useMemo, tone, said } from "./lib.js";
import { Glyph } from "./ui.js";
import { layOut, WIDTH, HEIGHT } from "./layout.js";

const TONES = ["ok", "run", "wait", "fail", "park", "idle"];
const BATCH = 64;
const MARKS = { ok: "✓", run: "▶", wait: "!", fail: "✗", park: "◷", idle: "" };

function paints() {
  const style = getComputedStyle(document.documentElement), found = {};
  for (const name of ["surface", "sunken", "line", "line-strong", "text", "muted", "accent", ...TONES, ...TONES.map((t) => `${t}-soft`)]) found[name] = style.getPropertyValue(`--${name}`).trim();
  return found;
}

class Painter {
  constructor(canvas, choose) {
    this.canvas = canvas; this.context = canvas.getContext("2d"); this.choose = choose;
    this.view = { x: 0, y: 0, scale: 1 }; this.fitted = false; this.waiting = 0; this.paints = paints(); this.hover = -1;
    this.pointers = new Map();
  }
  resize() {
    const box = this.canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    if (!box.width) return;
    this.width = box.width; this.height = box.height; this.ratio = ratio;
    this.canvas.width = Math.round(box.width * ratio); this.canvas.height = Math.round(box.height * ratio);
    if (!this.fitted) this.fit(); else this.later();
  }
  set(layout, nodes, edges, back, chosen) {
    const first = !this.layout || this.layout !== layout;
    Object.assign(this, { layout, nodes, edges, back, chosen });
    if (first && !this.moved) this.fit(); else this.later();
  }
  fit() {
    if (!this.layout || !this.width) return;
    const pad = 28, scale = Math.min(1.15, (this.width - 2 * pad) / Math.max(1, this.layout.width), (this.height - 2 * pad - 24) / Math.max(1, this.layout.height));
    this.view = { scale, x: (this.width - this.layout.width * scale) / 2, y: (this.height - 16 - this.layout.height * scale) / 2 };
    this.fitted = true;
    this.later();
  }
  zoom(by, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(3, Math.max(0.02, this.view.scale * by)), real = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * real, y: y - (y - this.view.y) * real };
    this.moved = true;
    this.later();
  }
  pan(dx, dy) { this.view.x += dx; this.view.y += dy; this.moved = true; this.later(); }
  show(index) {
    const { scale } = this.view, x = this.layout.x[index] * scale + this.view.x, y = this.layout.y[index] * scale + this.view.y;
    if (x < 0 || y < 0 || x + WIDTH * scale > this.width || y + HEIGHT * scale > this.height) this.pan(this.width / 2 - x, this.height / 2 - y);
  }
  later() { if (!this.waiting) this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); }); }
  at(x, y) {
    const gx = (x - this.view.x) / this.view.scale, gy = (y - this.view.y) / this.view.scale, slack = 6 / this.view.scale;
    for (let i = 0; i < this.nodes.length; i++) {
      const left = this.layout.x[i], top = this.layout.y[i];
      if (gx >= left - slack && gx <= left + WIDTH + slack && gy >= top - slack && gy <= top + HEIGHT + slack) return i;
    }
    return -1;
  }
  draw() {
    if (!this.layout || !this.width) return;
    const { context: c, paints: p, view, layout, nodes } = this, { scale } = view;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = p.surface;
    c.fillRect(0, 0, this.width, this.height);
    c.setTransform(this.ratio * scale, 0, 0, this.ratio * scale, this.ratio * view.x, this.ratio * view.y);
    const left = -view.x / scale, top = -view.y / scale, right = left + this.width / scale, bottom = top + this.height / scale;
    this.lines(left, right, top, bottom);
    const fine = scale > 0.42;
    c.lineWidth = Math.max(1, 0.8 / scale);
    for (const kind of TONES) {
      c.fillStyle = fine ? p[`${kind}-soft`] : p[kind];
      c.strokeStyle = kind === "idle" ? p["line-strong"] : p[kind];
      for (let i = 0; i < nodes.length; i++) {
        const x = layout.x[i], y = layout.y[i];
        if (nodes[i].tone !== kind || x > right || y > bottom || x + WIDTH < left || y + HEIGHT < top) continue;
        if (!fine) { c.fillRect(x, y, WIDTH, HEIGHT); continue; }
        c.beginPath();
        c.roundRect(x, y, WIDTH, HEIGHT, 7);
        c.fill();
        c.stroke();
      }
    }
    if (fine) this.words(left, right, top, bottom);
    for (const [index, width] of [[this.hover, 2], [this.chosen, 3]]) {
      if (index < 0 || index >= nodes.length) continue;
      c.strokeStyle = p.accent;
      c.lineWidth = width / Math.min(1, scale);
      c.beginPath();
      c.roundRect(layout.x[index] - 2, layout.y[index] - 2, WIDTH + 4, HEIGHT + 4, 8);
      c.stroke();
    }
  }
  lines(left, right, top, bottom) {
    const { context: c, paints: p, layout, edges, back } = this, curve = this.view.scale > 0.12;
    c.lineWidth = Math.max(1, 0.7 / this.view.scale);
    c.strokeStyle = p["line-strong"];
    c.beginPath();
    let many = 0;
    for (const [from, to] of edges) {
      // A path of thousands of lines is drawn much slower than many of some.
      if (++many % BATCH === 0) { c.stroke(); c.beginPath(); }
      const x1 = layout.x[from] + WIDTH, y1 = layout.y[from] + HEIGHT / 2, x2 = layout.x[to], y2 = layout.y[to] + HEIGHT / 2;
      if (x1 > right || x2 < left || Math.max(y1, y2) < top || Math.min(y1, y2) > bottom) continue;
      c.moveTo(x1, y1);
      if (curve) { const bend = Math.min(90, (x2 - x1) / 2); c.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2); } else c.lineTo(x2, y2);
    }
    c.stroke();
    if (!back.length) return;
    c.strokeStyle = p.wait;
    c.setLineDash([5, 4]);
    c.beginPath();
    for (const [from, to] of back) {
      const x1 = layout.x[from] + WIDTH / 2, y1 = layout.y[from] + HEIGHT, x2 = layout.x[to] + WIDTH / 2, y2 = layout.y[to] + HEIGHT, low = Math.max(y1, y2) + 40;
      c.moveTo(x1, y1);
      c.bezierCurveTo(x1, low, x2, low, x2, y2);
    }
    c.stroke();
    c.setLineDash([]);
  }
  words(left, right, top, bottom) {
    const { context: c, paints: p, layout, nodes } = this, font = getComputedStyle(this.canvas).fontFamily;
    c.textBaseline = "middle";
    for (let i = 0; i < nodes.length; i++) {
      const x = layout.x[i], y = layout.y[i], node = nodes[i];
      if (x > right || y > bottom || x + WIDTH < left || y + HEIGHT < top) continue;
      c.font = `600 12px ${font}`;
      c.fillStyle = p[node.tone];
      if (MARKS[node.tone]) c.fillText(MARKS[node.tone], x + 10, y + HEIGHT / 2 + 1);
      c.fillStyle = p.text;
      c.fillText(this.clip(node.label, node.note ? WIDTH - 62 : WIDTH - 38), x + 26, y + HEIGHT / 2 + 1);
      if (!node.note) continue;
      c.font = `11px ${font}`;
      c.fillStyle = p.muted;
      c.textAlign = "right";
      c.fillText(node.note, x + WIDTH - 9, y + HEIGHT / 2 + 1);
      c.textAlign = "left";
    }
  }
  clip(text, room) {
    if (this.context.measureText(text).width <= room) return text;
    let low = 0, high = text.length;
    while (low < high) { const half = (low + high + 1) >> 1; if (this.context.measureText(`${text.slice(0, half)}…`).width <= room) low = half; else high = half - 1; }
    return `${text.slice(0, low)}…`;
  }
  hear() {
    const spot = (event) => { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const on = {
      wheel: (event) => { event.preventDefault(); const [x, y] = spot(event); if (event.ctrlKey || Math.abs(event.deltaY) >= Math.abs(event.deltaX)) this.zoom(Math.exp(-event.deltaY * 0.0016), x, y); else this.pan(-event.deltaX, 0); },
      pointerdown: (event) => { this.canvas.setPointerCapture(event.pointerId); this.pointers.set(event.pointerId, spot(event)); this.dragged = 0; },
      pointermove: (event) => {
        const [x, y] = spot(event), old = this.pointers.get(event.pointerId);
        if (!old) { const hover = this.at(x, y); if (hover !== this.hover) { this.hover = hover; this.canvas.style.cursor = hover >= 0 ? "pointer" : "grab"; this.canvas.title = hover >= 0 ? `${this.nodes[hover].label}: ${this.nodes[hover].says}` : ""; this.later(); } return; }
        if (this.pointers.size === 2) {
          const [a, b] = [...this.pointers.values()], before = Math.hypot(a[0] - b[0], a[1] - b[1]);
          this.pointers.set(event.pointerId, [x, y]);
          const [c, d] = [...this.pointers.values()];
          this.zoom(Math.hypot(c[0] - d[0], c[1] - d[1]) / Math.max(1, before), (c[0] + d[0]) / 2, (c[1] + d[1]) / 2);
          this.dragged = 99;
        } else { this.dragged += Math.abs(x - old[0]) + Math.abs(y - old[1]); if (this.dragged > 4) this.pan(x - old[0], y - old[1]); }
        this.pointers.set(event.pointerId, [x, y]);
      },
      pointerup: (event) => { this.pointers.delete(event.pointerId); if (this.dragged <= 4) { const found = this.at(...spot(event)); if (found >= 0) this.choose(found); } },
      pointercancel: (event) => this.pointers.delete(event.pointerId),
      pointerleave: () => { this.hover = -1; this.later(); },
    };
    for (const [name, hear] of Object.entries(on)) this.canvas.addEventListener(name, hear, { passive: false });
    const theme = () => { this.paints = paints(); this.later(); };
    const media = matchMedia("(prefers-color-scheme: dark)"), sized = new ResizeObserver(() => this.resize());
    media.addEventListener("change", theme);
    window.addEventListener("orc-theme", theme);
    sized.observe(this.canvas);
    return () => { sized.disconnect(); media.removeEventListener("change", theme); window.removeEventListener("orc-theme", theme); cancelAnimationFrame(this.waiting); };
  }
}

/** The canvas. `graph` has rows by name (see run.js); the table of steps beside it says the same to a screen reader. */
export function Graph({ units, back, chosen, choose }) {
  const canvas = useRef(null), painter = useRef(null), act = useRef(choose);
  act.current = choose;
  const shape = units.map((unit) => unit.needs.join(",")).join(";");
  const layout = useMemo(() => layOut(units.map((unit) => unit.needs)), [shape]);
  const edges = useMemo(() => units.flatMap((unit, to) => unit.needs.map((from) => [from, to])), [shape]);
  useLayoutEffect(() => { painter.current = new Painter(canvas.current, (index) => act.current(index)); return painter.current.hear(); }, []);
  useEffect(() => {
    const nodes = units.map((unit) => ({ tone: unit.tone, label: unit.title || unit.unit, says: said(unit.status), note: unit.iteration > 1 ? `×${unit.iteration}` : unit.attempts > 1 ? `try ${unit.attempts}` : "" }));
    painter.current.set(layout, nodes, edges, back, chosen);
  }, [layout, units, back, chosen]);
  useEffect(() => { if (chosen >= 0 && painter.current.layout) painter.current.show(chosen); }, [chosen]);
  const counts = {};
  for (const unit of units) counts[unit.tone] = (counts[unit.tone] || 0) + 1;
  const words = { ok: "done", run: "running", wait: "waiting", fail: "failed", park: "parked", idle: "to come" };
  const tall = Math.max(300, Math.min(layout.height * 1.15 + 130, window.innerHeight * 0.62));
  return html`<div class="graph card" style=${{ height: `${Math.round(tall)}px` }}><canvas ref=${canvas} role="img" aria-label=${`Graph of ${units.length} units: ${TONES.filter((t) => counts[t]).map((t) => `${counts[t]} ${words[t]}`).join(", ")}. The table below has the same.`}></canvas>
    <div class="tools"><button class="icon" aria-label="Zoom in" title="Zoom in" onClick=${() => painter.current.zoom(1.3)}><${Glyph} name="plus" /></button><button class="icon" aria-label="Zoom out" title="Zoom out" onClick=${() => painter.current.zoom(1 / 1.3)}><${Glyph} name="minus" /></button><button class="icon" aria-label="Show all" title="Show all" onClick=${() => { painter.current.moved = false; painter.current.fit(); }}><${Glyph} name="fit" /></button></div>
    <div class="legend" aria-hidden="true">${TONES.filter((t) => counts[t]).map((t) => html`<span class=${t}>${MARKS[t] || "○"} ${counts[t]} ${words[t]}</span>`)}</div></div>`;
}
