// The other views of a run: table, timeline, messages, decisions, diff, journal, cost.
import { html, useState, useEffect, useRef, enc, money, count, lasts, clock, said, US, nowUs, fromIso, get, took } from "./lib.js";
import { Badge, Loaded, Failed, Empty, Age, useLoad, useTick } from "./ui.js";
import { Amounts, useWidth } from "./plots.js";

const ROWS = 400;

/** Load again when the run moved, in calm steps; `past` also with the bar. */
function useRunPart(runKey, part, now, wait = 600) {
  const found = useLoad(`/api/runs/${enc(runKey)}/${part}`);
  useEffect(() => { if (now.pulse < 2) return undefined; const timer = setTimeout(found.again, wait); return () => clearTimeout(timer); }, [now.pulse]);
  return found;
}

export function StepsTable({ view, unit, choose, short }) {
  useTick(true);
  const [only, setOnly] = useState(false), [all, setAll] = useState(false);
  const units = only ? view.units.filter((one) => one.tone === "fail") : view.units, failed = view.units.filter((one) => one.tone === "fail").length;
  const shown = all ? units : units.slice(0, short ? 60 : ROWS), word = view.detail.words.unit;
  return html`<section class="card steps-table"><header><h2 class="grow">${only ? `${units.length} failed` : `${view.detail.run.total} ${word}s`}</h2>${failed > 0 && html`<button aria-pressed=${only} onClick=${() => setOnly(!only)}>Only failed ${failed}</button>`}</header>
    <div class="scroll" tabindex="0"><table><thead><tr><th>${word[0].toUpperCase() + word.slice(1)}</th><th>Status</th><th class="wide-only">Needs</th><th class="num">Attempt</th><th class="num">Time</th><th class="wide-only">Error</th></tr></thead>
    <tbody>${shown.map((one) => html`<tr key=${one.unit} data-unit=${one.unit} data-status=${one.status} aria-selected=${one.unit === unit} onClick=${() => choose(one.unit)}><td><a href="#" onClick=${(event) => { event.preventDefault(); event.stopPropagation(); choose(one.unit); }}>${one.title ? html`${one.title} <span class="faint">${one.unit}</span>` : one.unit}</a></td><td><${Badge} status=${one.status} kind=${one.tone} /></td>
      <td class="muted wide-only">${one.needs.slice(0, 4).map((index) => view.units[index] && view.units[index].unit).join(", ")}${one.needs.length > 4 ? ` +${one.needs.length - 4}` : ""}</td><td class="num">${one.attempts || "–"}${one.iteration > 1 ? ` ×${one.iteration}` : ""}</td><td class="num">${took(one)}</td><td class="fail wide-only">${one.error || ""}</td></tr>`)}</tbody></table></div>
    ${shown.length < units.length && html`<div class="body"><button class="plain" onClick=${() => setAll(true)}>Show all ${units.length}</button></div>`}</section>`;
}

/** The iterations of a run that is one unit, as bars of their own; null for other runs. */
function usePasses(runKey, view, now) {
  const { iterates } = view.detail.words, found = useLoad(iterates ? `/api/runs/${enc(runKey)}/iterations${view.row === null ? "" : `?row=${view.row}`}` : null);
  useEffect(() => { if (view.row !== null || now.pulse < 2) return undefined; const timer = setTimeout(found.again, 600); return () => clearTimeout(timer); }, [now.pulse]);
  const data = found.data || found.stale;
  if (!iterates || !data) return null;
  const { unit } = view.units[0] || {}, bar = (number, from, to, kind, status) => ({ key: `iteration ${number}`, unit, title: `iteration ${number}`, tone: kind, status, started_us: from, ended_us: to });
  const list = data.iterations.map((one) => bar(one.iteration, one.started_us, one.ended_us, one.ended_us === null ? "run" : one.status === "passed" ? "ok" : "fail", one.status));
  const last = data.iterations[data.iterations.length - 1], busy = view.units.length && view.units[0].tone === "run";
  return busy && (!last || last.ended_us !== null) ? [...list, bar(last ? last.iteration + 1 : 1, last ? last.ended_us : view.units[0].started_us, null, "run", "running")] : list;
}

/** Bars over time; gaps in which nothing worked are folded away on request. */
export function Timeline({ runKey, view, now, unit, choose }) {
  useTick(true);
  const passes = usePasses(runKey, view, now);
  const [box, width] = useWidth();
  const [folded, setFolded] = useState(true);
  const upTo = view.until || nowUs();
  const bars = (passes || view.units).filter((one) => one.started_us && one.started_us <= upTo).sort((a, b) => a.started_us - b.started_us).slice(0, ROWS).map((one) => ({ ...one, from: one.started_us, to: Math.min(one.ended_us || upTo, upTo) }));
  if (!bars.length) return html`<section class="card"><${Empty} title="Nothing has started" /></section>`;
  const edges = [];
  for (const bar of bars) { const last = edges[edges.length - 1]; if (last && bar.from <= last[1] + 2 * US) last[1] = Math.max(last[1], bar.to); else edges.push([bar.from, bar.to]); }
  const worked = edges.reduce((sum, [from, to]) => sum + to - from, 0) || 1, gap = folded ? worked * 0.02 : 0;
  const place = (us) => { let at = 0; for (const [i, [from, to]] of edges.entries()) { if (us <= to || i === edges.length - 1) return at + Math.max(0, us - from); at += to - from + (folded ? gap : edges[i + 1][0] - to); } return at; };
  const end = place(Math.max(...bars.map((bar) => bar.to))) || 1, left = Math.min(170, width / 3), height = 24, x = (us) => left + (place(us) / end) * (width - left - 70);
  const gaps = edges.length - 1;
  return html`<section class="card"><header><h2 class="grow">Timeline</h2>${gaps > 0 && html`<button aria-pressed=${folded} onClick=${() => setFolded(!folded)}>Fold ${gaps} idle ${gaps === 1 ? "gap" : "gaps"}</button>`}</header><div class="body scroll" tabindex="0"><div ref=${box}></div>
    <svg class="plot" viewBox=${`0 0 ${width} ${bars.length * height + 22}`} role="img" aria-label=${`${bars.length} units over time`}>
      ${bars.map((bar, i) => html`<g key=${bar.key || bar.unit} onClick=${() => choose(bar.unit)}><text class="value" x="0" y=${i * height + 15}>${(bar.title || bar.unit).slice(0, Math.floor(left / 6.6))}</text><rect class=${`f-${bar.tone}`} x=${x(bar.from)} y=${i * height + 4} width=${Math.max(2, x(bar.to) - x(bar.from))} height="15" rx="3" opacity=${bar.unit === unit ? 1 : 0.8}><title>${bar.key || bar.unit}: ${said(bar.status)}</title></rect><text x=${x(bar.to) + 6} y=${i * height + 15}>${lasts((bar.to - bar.from) / US)}</text></g>`)}
      ${edges.map(([from]) => html`<text x=${x(from)} y=${bars.length * height + 16}>${clock(from)}</text>`)}</svg></div></section>`;
}

const FACES = { human_judged: ["wait", "decision"], unit_steered: ["park", "steering"], directive_refused: ["fail", "refused"] };
/** The mailboxes of a team, which are documents, as messages. */
function mailOf(documents) {
  const boxes = Object.entries(documents).filter(([path, one]) => path.includes("messages/") && Array.isArray(one.messages));
  return boxes.flatMap(([, one]) => one.messages.map((mail) => ({ at: mail.timestamp, from: said(mail.from), to: `${said(mail.to)}${mail.group_id ? ` (${mail.group_id})` : ""}`, kind: said(mail.status || "message"), text: [mail.subject, mail.context && mail.context.notes].filter(Boolean).join("\n") })));
}

export function Messages({ runKey, view, now, can, does, readOnly }) {
  const found = useRunPart(runKey, "messages", now);
  const mail = useLoad(view.detail.run.system === "team" ? `/api/runs/${enc(runKey)}/documents${view.row === null ? "" : `?row=${view.row}`}` : null, [now.pulse]);
  const until = view.row;
  return html`<section class="card"><header><h2 class="grow">Messages</h2>${can.includes("steer") && !readOnly && html`<button onClick=${() => does.steer()}>Steer …</button>`}</header>
    <${Loaded} of=${found} what="Loading messages">${({ messages }) => { const list = [...messages.filter((one) => until === null || !one.row || one.row <= until), ...mailOf(mail.stale ? mail.stale.documents : {})].sort((a, b) => (a.at < b.at ? -1 : 1));
      return list.length ? html`<ol class="thread">${list.map((one, i) => html`<li key=${i}><span class="avatar" aria-hidden="true">${(one.from || "?").slice(0, 2)}</span><div class="stack"><div class="row wrap"><span class="strong">${one.from || "somebody"}</span>${one.to && html`<span class="muted">to ${one.to}</span>`}<span class=${`badge ${(FACES[one.kind] || ["idle"])[0]}`}>${(FACES[one.kind] || [])[1] || said(one.kind)}</span><span class="faint"><${Age} us=${fromIso(one.at)} /></span></div><div class="words">${one.text}</div></div></li>`)}</ol>`
        : html`<${Empty} title="Nobody has said anything">What people tell the run, and what agents tell each other, stands here.<//>`; }}<//></section>`;
}

export function Decisions({ runKey, view, now }) {
  const found = useLoad(`/api/runs/${enc(runKey)}/documents${view.row === null ? "" : `?row=${view.row}`}`);
  useEffect(() => { if (now.pulse > 1 && view.row === null) { const timer = setTimeout(found.again, 600); return () => clearTimeout(timer); } return undefined; }, [now.pulse]);
  return html`<section class="card"><header><h2>Decisions</h2></header><${Loaded} of=${found}>${({ documents }) => { const path = Object.keys(documents).find((one) => one.endsWith("orchestrator_state.json")), list = path ? documents[path].decisions_log || [] : [];
    return list.length ? html`<table><thead><tr><th>When</th><th>Decision</th><th>Why</th></tr></thead><tbody>${list.map((one) => html`<tr><td class="muted nowrap">${clock(fromIso(one.timestamp))}</td><td class="strong">${said(one.decision)}</td><td class="words">${one.reasoning}</td></tr>`)}</tbody></table>` : html`<${Empty} title="No decision yet" />`; }}<//></section>`;
}

const isSame = (list, i) => i > 0 && list[i - 1].row === list[i].row;

/** The journal: newest first, read in pieces, and from the stream. */
export function Journal({ runKey, view, now, move }) {
  const [entries, set] = useState(null), [more, setMore] = useState(false), [error, setError] = useState(null), [only, setOnly] = useState("");
  const held = useRef([]), base = `/api/runs/${enc(runKey)}/journal`;
  const put = (list) => { held.current = list; set(list); };
  useEffect(() => { get(`${base}?limit=200`).then((found) => { put(found.entries); setMore(found.more); }, setError); }, [base]);
  useEffect(() => {
    if (entries === null || !now.detail) return;
    const last = held.current.length ? held.current[0].row : 0;
    if (now.detail.seq > last) get(`${base}?after=${last}&limit=200`).then((found) => { const seen = held.current.length ? held.current[0].row : 0, fresh = found.entries.filter((one) => one.row > seen).sort((a, b) => b.row - a.row); if (fresh.length) put([...fresh, ...held.current]); }, () => {});
  }, [now.pulse]);
  const older = async () => { try { const found = await get(`${base}?before=${held.current[held.current.length - 1].row}&limit=200`); put([...held.current, ...found.entries]); setMore(found.more); } catch (problem) { setError(problem); } };
  if (error) return html`<${Failed} error=${error} />`;
  if (!entries) return html`<div class="loading">Reading the journal …</div>`;
  const list = entries.filter((one) => !only || `${one.event} ${one.text}`.toLowerCase().includes(only.toLowerCase()));
  return html`<section class="card log"><header><h2 class="grow">Journal</h2><input type="search" aria-label="Filter the journal" placeholder="Filter, for example failed" value=${only} onInput=${(event) => setOnly(event.target.value)} /></header>
    <ol>${list.map((one, i) => html`<li class=${`fact${isSame(list, i) ? " same" : ""}${view.row !== null && one.row > view.row ? " later" : ""}`} key=${`${one.row} ${i}`}>${isSame(list, i) ? html`<span></span><span></span>` : html`<button onClick=${() => move(one.row)} title="Show the page as it was then" aria-label=${`Go to fact ${one.row}`}>${one.row}</button><span class="muted">${clock(fromIso(one.at))}</span>`}<span class="unit clip strong">${one.unit || ""}</span><span class="what">${one.text || said(one.event)}</span><span class="event mono faint">${one.event}</span></li>`)}</ol>
    ${more && html`<div class="body"><button onClick=${older}>Older facts</button></div>`}</section>`;
}

export function Cost({ runKey, now, view }) {
  const found = useRunPart(runKey, "usage", now, 1200);
  return html`<${Loaded} of=${found} what="Counting">${(data) => {
    const { unit, iterates } = view.detail.words, named = (one) => (iterates && one.iteration ? `${unit} ${one.iteration}` : one.unit);
    const until = view.until || Infinity, rows = data.usage.filter((one) => !one.at_us || one.at_us <= until);
    const by = (name) => { const sums = new Map(); for (const one of rows) sums.set(name(one), (sums.get(name(one)) || 0) + (one.cost_usd || 0)); return [...sums].filter(([key]) => key).sort((a, b) => (iterates ? 0 : b[1] - a[1])).slice(0, 20); };
    return rows.length ? html`<div class="plots"><section class="card"><header><h2>By ${unit}</h2></header><div class="body"><${Amounts} rows=${by(named)} label=${`Dollars per ${unit}`} /></div></section><section class="card"><header><h2>By model</h2></header><div class="body"><${Amounts} rows=${by((one) => one.model)} label="Dollars per model" /></div></section></div>
      <section class="card"><header><h2>Launches</h2></header><div class="scroll" tabindex="0"><table><thead><tr><th>When</th><th>${unit[0].toUpperCase() + unit.slice(1)}</th><th>Agent</th><th>Model</th><th class="num">Tokens</th><th class="num">Cost</th></tr></thead><tbody>${rows.map((one) => html`<tr key=${one.effect}><td class="muted nowrap">${clock(one.at_us)}</td><td>${named(one)}</td><td>${one.agent}</td><td>${one.model || "–"}</td><td class="num">${count(one.tokens)}</td><td class="num">${money(one.cost_usd)}</td></tr>`)}</tbody></table></div></section>`
      : html`<section class="card"><${Empty} title="Nothing spent yet" /></section>`;
  }}<//>`;
}
