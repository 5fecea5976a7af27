// The panel of one unit: its launches with the live transcript, the prompt as it was sent, feedback, evidence, usage.
import { html, useState, useEffect, useRef, enc, money, count, lasts, clock, said, US, nowUs, direct } from "./lib.js";
import { Glyph, Badge, Loaded, Copy, useLoad, useTick, ask, doing } from "./ui.js";

const LINES_MAX = 5000;

/** Lines of a launch while it works; closed with the panel. */
function useOutput(runKey, effect) {
  const [state, set] = useState({ lines: [], pending: null, cut: false, ended: null });
  useEffect(() => {
    let lines = [], cut = false, pending = null, ended = null, drawing = 0, n = 0;
    const draw = () => { if (!drawing) drawing = requestAnimationFrame(() => { drawing = 0; set({ lines, pending, cut, ended }); }); };
    const source = new EventSource(`/api/runs/${enc(runKey)}/launches/${enc(effect)}/output`);
    source.addEventListener("lines", (event) => {
      const data = JSON.parse(event.data);
      lines = lines.concat(data.lines.map((line) => ({ n: n++, line })));
      if (lines.length > LINES_MAX) { lines = lines.slice(-LINES_MAX); cut = true; }
      cut = cut || Boolean(data.cut);
      draw();
    });
    source.addEventListener("pending", (event) => { pending = JSON.parse(event.data); draw(); });
    source.addEventListener("reset", () => { lines = []; pending = null; draw(); });
    source.addEventListener("end", (event) => { ended = JSON.parse(event.data); pending = null; source.close(); draw(); });
    return () => { source.close(); cancelAnimationFrame(drawing); };
  }, [runKey, effect]);
  return state;
}

const Line = ({ line }) => html`<div class="line">${line.map(([text, tone]) => (tone ? html`<span class=${`t-${tone}`}>${text}</span>` : text))}</div>`;

function Transcript({ runKey, effect }) {
  const { lines, pending, cut, ended } = useOutput(runKey, effect);
  const box = useRef(null), sticks = useRef(true);
  useEffect(() => { if (box.current && sticks.current) box.current.scrollTop = box.current.scrollHeight; }, [lines, pending]);
  return html`<div class="transcript" ref=${box} tabindex="0" role="log" aria-label="Transcript" onScroll=${() => { const b = box.current; sticks.current = b.scrollHeight - b.scrollTop - b.clientHeight < 24; }}>
    ${cut && html`<div class="line t-dim">… only the newest part is shown; orc logs has all of it</div>`}
    ${lines.map(({ n, line }) => html`<${Line} key=${n} line=${line} />`)}
    ${pending && pending.line && pending.line.length > 0 && html`<${Line} line=${pending.line} />`}
    ${!lines.length && !pending && html`<div class="line t-dim">${ended ? "It wrote nothing." : "Nothing yet …"}</div>`}</div>`;
}

export function Checks({ evidence }) {
  return html`<ul class="stack">${evidence.map((one) => {
    const passed = one.passed ?? (one.exit_code === 0 && !one.failure), kind = one.void ? "idle" : passed ? "ok" : "fail";
    return html`<li key=${one.effect || one.started_us}><details open=${!passed}><summary><span class="row wrap"><span class=${kind}><${Glyph} name=${kind} /></span><code>${one.command || one.criterion || "check"}</code><span>${one.void ? "void: the tree changed while it ran" : passed ? "passed" : one.failure ? "could not run" : "failed"}</span>
      <span class="faint">${one.exit_code !== null && one.exit_code !== undefined ? `exit ${one.exit_code} · ` : ""}${lasts(one.duration_s)}</span></span></summary>
      ${one.failure && html`<p class="fail">${one.failure}</p>`}
      ${one.tail ? html`<pre class="output" tabindex="0">${one.tail}</pre>` : html`<p class="muted">It wrote nothing.</p>`}
      ${one.tree && html`<p class="faint">tree before = after: <code>${one.tree.slice(0, 12)}</code></p>`}</details></li>`;
  })}</ul>`;
}

const WORDS = ["text", "comments", "message", "feedback", "error", "reason", "summary"], ABOUT = ["from", "source", "kind", "iteration", "attempt"];
const plainly = (value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : String(value));
function Said({ entry }) {
  if (typeof entry === "string") return html`<li class="words output">${entry}</li>`;
  const rest = Object.entries(entry).filter(([name, value]) => value !== null && value !== "" && !ABOUT.includes(name) && !WORDS.includes(name));
  return html`<li class="words output"><span class="row wrap">${ABOUT.filter((name) => entry[name]).map((name) => html`<span class="tag">${name === "iteration" || name === "attempt" ? `${name} ` : ""}${entry[name]}</span>`)}</span>${WORDS.filter((name) => entry[name]).map((name) => html`<div>${plainly(entry[name])}</div>`)}
    ${rest.map(([name, value]) => html`<div><span class="muted">${said(name)}:</span> ${plainly(value)}</div>`)}</li>`;
}
export const Feedback = ({ feedback }) => html`<ul class="stack">${feedback.map((entry, i) => html`<${Said} key=${i} entry=${entry} />`)}</ul>`;

function Prompt({ runKey, effect }) {
  const [open, set] = useState(false);
  const found = useLoad(open ? `/api/runs/${enc(runKey)}/launches/${enc(effect)}` : null);
  return html`<details onToggle=${(event) => set(event.target.open)}><summary>Prompt as sent</summary>${open && html`<${Loaded} of=${found} what="Reading the prompt">${(data) => html`<pre class="output" tabindex="0">${data.prompt || "No prompt was kept."}</pre>
    ${data.feedback && html`<h2>Feedback</h2><pre class="output" tabindex="0">${data.feedback}</pre>`}${data.report && html`<h2>Report</h2><pre class="output" tabindex="0">${JSON.stringify(data.report, null, 2)}</pre>`}
    ${data.command && html`<h2>Command</h2><pre class="output" tabindex="0">${data.command.join(" ")}</pre>`}`}<//>`}</details>`;
}

function Launch({ runKey, launch, open, toggle }) {
  useTick(launch.running);
  const kind = launch.ended_us === null ? (launch.running === false ? "idle" : "run") : launch.failure || launch.exit_code ? "fail" : "ok";
  const took = ((launch.ended_us || nowUs()) - launch.started_us) / US;
  return html`<li class="stack"><button class="task" aria-expanded=${open} onClick=${toggle}><span class="row wrap"><span class=${kind}><${Glyph} name=${kind} spin=${kind === "run"} /></span><span class="strong">${launch.kind}</span>
    <span class="muted">${launch.iteration ? `iteration ${launch.iteration}` : ""}${launch.attempt > 1 ? ` attempt ${launch.attempt}` : ""}</span><span class="grow"></span><span class="muted nowrap">${clock(launch.started_us)} · ${lasts(took)}</span></span>
    ${(launch.agent || launch.tokens || launch.failure) && html`<span class="t-meta">${launch.agent && html`<span>${launch.agent}${launch.model ? ` · ${launch.model}` : ""}</span>`}${launch.tokens ? html`<span>${count(launch.tokens)} tokens</span>` : ""}${launch.cost_usd ? html`<span>${money(launch.cost_usd)}</span>` : ""}${launch.failure && html`<span class="fail">failed: ${said(launch.failure)}</span>`}</span>`}</button>
    ${open && html`<${Transcript} runKey=${runKey} effect=${launch.effect} /><${Prompt} runKey=${runKey} effect=${launch.effect} />`}</li>`;
}

function More({ more }) {
  const simple = Object.entries(more || {}).filter(([name, value]) => value !== null && value !== "" && value !== false && value !== 0 && !(typeof value === "object" && !Object.keys(value).length) && !["launches", "evidence", "feedback", "warnings"].includes(name));
  if (!simple.length) return null;
  return html`<section><h2>Facts</h2><dl class="facts-list">${simple.map(([name, value]) => html`<dt>${said(name)}</dt><dd>${Array.isArray(value) ? value.map((one) => (typeof one === "object" ? JSON.stringify(one) : one)).join(", ") : typeof value === "object" ? Object.entries(value).map(([k, v]) => `${said(k)}: ${typeof v === "object" ? JSON.stringify(v) : v}`).join(", ") : String(value)}</dd>`)}</dl></section>`;
}

export function UnitPanel({ runKey, view, now, unit, choose, can, does, readOnly }) {
  const row = view.row;
  const path = `/api/runs/${enc(runKey)}/units/${enc(unit)}${row === null ? "" : `?row=${row}`}`;
  const found = useLoad(path);
  const [open, setOpen] = useState(undefined);
  useEffect(() => { if (row !== null || now.pulse < 2) return undefined; const timer = setTimeout(found.again, 250); return () => clearTimeout(timer); }, [now.pulse]);
  const data = found.data || (found.stale && found.stale.unit.unit === unit ? found.stale : null);
  const head = view.units.find((one) => one.unit === unit);
  const close = html`<button class="plain icon" aria-label="Close the panel" title="Close (Esc)" onClick=${() => choose(null)}><${Glyph} name="close" /></button>`;
  if (!data) return html`<aside class="card panel" aria-label=${`Unit ${unit}`}><header><h3 class="grow">${unit}</h3>${close}</header><${Loaded} of=${found} what="Loading">${() => null}<//></aside>`;
  const launches = [...data.launches].reverse(), newest = launches.find((one) => one.kind !== "check") || launches[0];
  const shown = open === undefined ? newest && newest.effect : open;
  const status = head ? head.status : data.unit.status;
  // A task that failed waits for a person to say what becomes of it.
  const again = head && (head.tone === "fail" || (can.includes("skip") && head.error && !["ok", "run"].includes(head.tone)));
  return html`<aside class="card panel" aria-label=${`Unit ${unit}`}><header><div class="grow"><h3>${data.unit.title || unit}</h3>${data.unit.title && html`<span class="faint">${unit}</span>`}</div><${Badge} status=${status} kind=${head && head.tone} />${close}</header>
    ${(data.unit.error || data.warnings.length > 0) && html`<section>${data.unit.error && html`<div class="error-line">${data.unit.error}</div>`}${data.warnings.map((text) => html`<div class="note-line">${text}</div>`)}</section>`}
    ${!readOnly && row === null && html`<section class="acts"><div class="does">${can.includes("steer") && html`<button onClick=${() => does.steer(unit)}>Steer …</button>`}
      ${can.includes("retry") && again && html`<button class="main" onClick=${() => doing(direct(runKey, "retry", { unit }))}>Retry</button>`}
      ${can.includes("skip") && head && head.tone !== "ok" && html`<button onClick=${async () => (await ask({ title: `Skip ${unit}?`, text: "The run goes on as if it were done. This cannot be undone.", yes: "Skip", danger: true })) && doing(direct(runKey, "skip", { unit }))}>Skip …</button>`}
      ${can.includes("merge") && head && head.tone === "ok" && html`<button onClick=${() => does.merge(unit)}>Merge …</button>`}</div></section>`}
    <section><h2>Launches</h2>${launches.length ? html`<ul class="stack">${launches.slice(0, 30).map((launch) => html`<${Launch} key=${launch.effect} runKey=${runKey} launch=${launch} open=${launch.effect === shown} toggle=${() => setOpen(launch.effect === shown ? null : launch.effect)} />`)}</ul>` : html`<p class="muted">Nothing was started for it${row === null ? " yet" : " at this fact"}.</p>`}</section>
    ${data.evidence.length > 0 && html`<section><h2>Evidence</h2><${Checks} evidence=${[...data.evidence].reverse()} /></section>`}
    ${data.feedback.length > 0 && html`<section><h2>Feedback for the next launch</h2><${Feedback} feedback=${data.feedback} /></section>`}
    ${(data.steering || []).length > 0 && html`<section><h2>Steering</h2><${Feedback} feedback=${data.steering} /></section>`}
    ${data.attach && row === null && html`<section><h2>Attach</h2><${Copy} text=${data.attach} /></section>`}
    <${More} more=${data.more} /></aside>`;
}
