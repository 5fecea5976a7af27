// The hosts of a database that machines share: who drives what, for how long its lease holds, and what waits in which pool.
import { html, useState, useEffect, get, plural, lasts } from "./lib.js";
import { Glyph, Bar } from "./ui.js";

const EVERY_MS = 5000;
const says = (one) => (!one.alive ? `silent for ${lasts(-one.lease_s)}` : one.drain ? "draining" : `lease ${lasts(one.lease_s)}`);

const Worker = ({ one }) => html`<tr>
  <td><span class=${one.alive ? "ok" : "fail"}><${Glyph} name=${one.alive ? "ok" : "fail"} /></span> <span class="strong">${one.name}</span> <span class="muted">on ${one.host}</span></td>
  <td class="muted">${one.pool || "its own runs"}</td>
  <td class="muted">${says(one)}</td>
  <td class="prog"><${Bar} parts=${[["run", one.runs.length]]} total=${Math.max(one.capacity, one.runs.length, 1)} label=${`${one.runs.length} of ${one.capacity}`} /><span>${one.runs.length}/${one.capacity}</span></td>
  <td class="muted clip">${one.runs.map((run) => run.run).join(", ")}</td></tr>`;

export function Workers() {
  const [stores, set] = useState([]);
  useEffect(() => {
    const leave = new AbortController();
    const look = () => get("/api/workers", leave.signal).then((found) => set(found.stores), () => {});
    look();
    const timer = setInterval(() => { if (!document.hidden) look(); }, EVERY_MS);
    return () => { clearInterval(timer); leave.abort(); };
  }, []);
  return stores.filter((one) => one.workers.length || one.queues.length).map((one) => html`<section class="card workers" aria-label="Workers" key=${one.store}>
    <header><h2>Workers</h2><span class="tag">${plural(one.workers.filter((worker) => worker.alive).length, "worker")}</span><span class="muted clip grow" title=${one.store}>${one.store}</span></header>
    ${one.workers.length > 0 && html`<table><thead><tr><th scope="col">Worker</th><th scope="col">Pool</th><th scope="col">Lease</th><th scope="col">Driving</th><th scope="col">Runs</th></tr></thead>
      <tbody>${one.workers.map((worker) => html`<${Worker} key=${`${worker.name} ${worker.pid}`} one=${worker} />`)}</tbody></table>`}
    <ul class="queues">${one.queues.map((queue) => html`<li key=${queue.pool}><span class="strong">${queue.pool}</span> <span class="muted">${queue.queued} queued, ${queue.driven} driven, ${queue.resting} at rest</span></li>`)}</ul></section>`);
}
