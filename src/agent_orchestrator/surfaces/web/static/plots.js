// Small plots in SVG: rates with their confidence, amounts over days.
import { html, useState, useEffect, useRef, money } from "./lib.js";

/** The width of an element, so that a plot is drawn in pixels and its words keep their size. */
export function useWidth() {
  const box = useRef(null), [width, set] = useState(640);
  useEffect(() => {
    if (!box.current) return undefined;
    const sized = new ResizeObserver(([entry]) => set(Math.max(260, Math.round(entry.contentRect.width))));
    sized.observe(box.current);
    return () => sized.disconnect();
  }, []);
  return [box, width];
}

/** Success per group with the 95 % interval: [{agent, model, step, succeeded, launches, rate, low, high}]. */
export function Rates({ rows, max = 14 }) {
  const [box, width] = useWidth();
  const list = [...rows].sort((a, b) => b.launches - a.launches).slice(0, max), rowHeight = 34, left = Math.min(230, width * 0.42), plot = width - left - 80, height = list.length * rowHeight + 26;
  const x = (share) => left + share * plot;
  return html`<div ref=${box}><svg class="plot" viewBox=${`0 0 ${width} ${height}`} role="img" aria-label="Success rates with 95 % confidence">
    ${[0, 0.25, 0.5, 0.75, 1].map((share) => html`<line class="axis" x1=${x(share)} x2=${x(share)} y1="0" y2=${height - 22} /><text x=${x(share)} y=${height - 6} text-anchor="middle">${share * 100}%</text>`)}
    ${list.map((one, i) => { const y = i * rowHeight + 6, kind = one.low > 0.7 ? "ok" : one.high < 0.4 ? "fail" : "run"; return html`<g key=${`${one.repo || ""} ${one.agent} ${one.model} ${one.step} ${one.system}`}>
      <text class="value" x="0" y=${y + 10}>${`${one.agent}${one.step ? ` · ${one.step}` : ""}`.slice(0, left / 6.3)}</text><text x="0" y=${y + 23}>${`${one.where || ""}${one.system ? `${one.system} · ` : ""}${one.model || "default model"}`.slice(0, left / 5.8)}</text>
      <rect class="f-back" x=${left} y=${y} width=${plot} height="16" rx="3" /><rect class=${`f-${kind}`} x=${left} y=${y} width=${Math.max(1, one.rate * plot)} height="16" rx="3" opacity=".75"><title>${one.succeeded} of ${one.launches}</title></rect>
      <line class="whisker" x1=${x(one.low)} x2=${x(one.high)} y1=${y + 8} y2=${y + 8} /><line class="whisker" x1=${x(one.low)} x2=${x(one.low)} y1=${y + 4} y2=${y + 12} /><line class="whisker" x1=${x(one.high)} x2=${x(one.high)} y1=${y + 4} y2=${y + 12} />
      <text class="value" x=${left + plot + 8} y=${y + 12}>${Math.round(one.rate * 100)}% of ${one.launches}</text></g>`; })}</svg></div>`;
}

/** Amounts per group as bars: [[name, amount, note]]. */
export function Amounts({ rows, say = money, label }) {
  const [box, width] = useWidth();
  const most = Math.max(1e-9, ...rows.map(([, amount]) => amount || 0)), rowHeight = 26, left = Math.min(200, width * 0.4), plot = width - left - 80;
  return html`<div ref=${box}><svg class="plot" viewBox=${`0 0 ${width} ${rows.length * rowHeight + 4}`} role="img" aria-label=${label}>${rows.map(([name, amount, note], i) => html`<g key=${name}>
    <text class="value" x="0" y=${i * rowHeight + 15}>${name.slice(0, left / 6.3)}</text><rect class="f-accent" x=${left} y=${i * rowHeight + 4} width=${Math.max(1, ((amount || 0) / most) * plot)} height="14" rx="3" /><text class="value" x=${left + Math.max(1, ((amount || 0) / most) * plot) + 6} y=${i * rowHeight + 15}>${say(amount)}${note ? ` ${note}` : ""}</text></g>`)}</svg></div>`;
}

/** Quartiles of times: [[name, [q1, median, q3]]]. */
export function Quartiles({ rows, say, label }) {
  const [box, width] = useWidth();
  const most = Math.max(1e-9, ...rows.map(([, q]) => q[2])), rowHeight = 28, left = Math.min(200, width * 0.4), plot = width - left - 80, x = (v) => left + (v / most) * plot;
  return html`<div ref=${box}><svg class="plot" viewBox=${`0 0 ${width} ${rows.length * rowHeight + 4}`} role="img" aria-label=${label}>${rows.map(([name, [low, mid, high]], i) => { const y = i * rowHeight + 4; return html`<g key=${name}>
    <text class="value" x="0" y=${y + 12}>${name.slice(0, left / 6.3)}</text><line class="axis" x1=${left} x2=${left + plot} y1=${y + 8} y2=${y + 8} /><rect class="f-run" opacity=".45" x=${x(low)} y=${y} width=${Math.max(2, x(high) - x(low))} height="16" rx="3" /><line class="whisker" x1=${x(mid)} x2=${x(mid)} y1=${y - 1} y2=${y + 17} /><text class="value" x=${x(high) + 6} y=${y + 12}>${say(mid)}</text></g>`; })}</svg></div>`;
}

/** Amounts per day, in columns. */
export function Days({ days, say = money, label }) {
  const [box, width] = useWidth();
  const totals = new Map();
  for (const one of days) totals.set(one.day, (totals.get(one.day) || 0) + (one.cost_usd || 0));
  const list = [...totals].sort((a, b) => (a[0] < b[0] ? -1 : 1)).slice(-30), most = Math.max(1e-9, ...list.map(([, v]) => v)), height = 150, each = Math.min(48, (width - 50) / Math.max(1, list.length));
  return html`<div ref=${box}><svg class="plot" viewBox=${`0 0 ${width} ${height + 20}`} role="img" aria-label=${label}><line class="axis" x1="44" x2=${width} y1=${height} y2=${height} /><text x="40" y="12" text-anchor="end">${say(most)}</text><text x="40" y=${height} text-anchor="end">0</text>
    ${list.map(([day, amount], i) => html`<g key=${day}><rect class="f-accent" x=${46 + i * each} y=${height - (amount / most) * (height - 10)} width=${Math.max(2, each - 4)} height=${Math.max(1, (amount / most) * (height - 10))} rx="2"><title>${day}: ${say(amount)}</title></rect>${(i % Math.ceil(list.length / 8) === 0) && html`<text x=${46 + i * each} y=${height + 15}>${day.slice(5)}</text>`}</g>`)}</svg></div>`;
}
