// The time bar: every fact of the journal in order. Moving it moves everything on the page.
import { html, useEffect, useRef, moment, said, plural } from "./lib.js";
import { Glyph } from "./ui.js";

const BAD = /fail|abort|lost|refused|stuck|exhaust/;

function paint(canvas, history, row) {
  const box = canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1, c = canvas.getContext("2d");
  if (!box.width) return;
  canvas.width = box.width * ratio; canvas.height = box.height * ratio;
  c.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement), ink = (name) => style.getPropertyValue(`--${name}`).trim();
  const { rows, points, dead } = history, many = Math.max(1, rows.length - 1), at = (i) => 8 + (i / many) * (box.width - 16), middle = box.height / 2;
  const bad = new Set(history.kinds.map((kind, i) => (BAD.test(kind) ? i : -1)));
  c.fillStyle = ink("line");
  c.fillRect(0, middle - 1, box.width, 2);
  const place = new Map(rows.map(([number], i) => [number, i]));
  const width = Math.max(1, Math.min(4, (box.width / rows.length) * 0.6));
  rows.forEach(([number, , kinds], i) => {
    const left = (dead || []).some(([from, to]) => number >= from && number <= to);
    const isBad = kinds.some((kind) => bad.has(kind)), tall = Math.min(12, 3 + kinds.length * 2);
    c.globalAlpha = row !== null && number > row ? 0.3 : 1;
    c.fillStyle = left ? ink("line-strong") : isBad ? ink("fail") : ink("muted");
    c.fillRect(at(i) - width / 2, middle - tall / 2, width, tall);
  });
  c.globalAlpha = 1;
  c.fillStyle = ink("accent");
  for (const [, number] of points) {
    if (!place.has(number)) continue;
    c.beginPath();
    c.arc(at(place.get(number)), 4, 3, 0, 7);
    c.fill();
  }
  if (row === null) { c.fillStyle = ink("run"); c.beginPath(); c.arc(box.width - 8, middle, 4, 0, 7); c.fill(); }
}

/** `row` is null for now; `move` takes a row or null. */
export function TimeBar({ history, row, move, can, fork, rewind }) {
  const canvas = useRef(null);
  const { rows } = history, last = rows.length - 1;
  const found = row === null ? last : Math.max(0, rows.findLastIndex(([number]) => number <= row));
  const [number, atUs, kinds] = rows[found] || [0, 0, []];
  useEffect(() => {
    const draw = () => canvas.current && paint(canvas.current, history, row);
    draw();
    const sized = new ResizeObserver(draw);
    sized.observe(canvas.current);
    window.addEventListener("orc-theme", draw);
    return () => { sized.disconnect(); window.removeEventListener("orc-theme", draw); };
  }, [history, row]);
  const to = (index) => move(index >= last ? null : rows[Math.max(0, index)][0]);
  const point = history.points.findLast ? history.points.findLast(([, one]) => one === number) : null;
  const words = kinds.slice(0, 4).map((kind) => said(history.kinds[kind])).join(", ");
  const text = row === null ? `now: ${plural(rows.length, "fact")}` : `fact ${number}, ${words}, ${moment(atUs)}`;
  return html`<section class=${`timebar${row === null ? "" : " past"}`} aria-label="Time bar">
    <button class="icon" aria-label="One fact back" title="One fact back (←)" disabled=${found <= 0} onClick=${() => to(found - 1)}><${Glyph} name="prev" /></button>
    <div class="track"><canvas ref=${canvas} aria-hidden="true"></canvas>
      <input type="range" min="0" max=${Math.max(0, last)} step="1" value=${found} aria-label="Fact of the journal" aria-valuetext=${text} onInput=${(event) => to(Number(event.target.value))} /></div>
    <button class="icon" aria-label="One fact on" title="One fact on (→)" disabled=${row === null} onClick=${() => to(found + 1)}><${Glyph} name="next" /></button>
    <div class="said"><span class="strong nowrap">${row === null ? html`<span class="dot run"></span> Now` : `Fact ${number}`}</span><span class="muted nowrap">${moment(atUs)}</span><span class="clip grow muted">${words}${point ? html` · <span class="strong">${point[0]}</span>` : ""}</span>
      ${row !== null && html`${can.includes("fork") && html`<button onClick=${() => fork(number)}>Fork here …</button>`}${can.includes("rewind") && html`<button class="no" onClick=${() => rewind(number)}>Rewind to here …</button>`}<button class="main" onClick=${() => move(null)}>Back to now</button>`}</div></section>`;
}
