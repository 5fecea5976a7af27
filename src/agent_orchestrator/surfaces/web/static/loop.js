// A loop: a strip of iterations, the outputs of two checks beside each other, what was learned, a box to steer it.
import { html, useState, useEffect, enc, money, lasts, US, direct, plural, nowUs } from "./lib.js";
import { Glyph, Loaded, Empty, useLoad, useTick, doing } from "./ui.js";

const toneOf = (one) => (one.ended_us === null ? (one.waits ? "wait" : "run") : one.check ? (one.check.passed ? "ok" : "fail") : /^(passed|completed)/.test(one.status) ? "ok" : "fail");
const saysOf = (one) => (one.ended_us === null ? (one.waits ? "waits for you" : "at work") : one.check && one.check.passed ? "check passed" : one.error || (one.check ? "check failed" : one.status));

function Pass({ one, chosen, choose }) {
  useTick(one.ended_us === null && !one.waits);
  const kind = toneOf(one), failing = one.tests && one.tests.count > one.tests.passed ? one.tests.count - one.tests.passed : 0;
  return html`<button class="pass" aria-pressed=${chosen} onClick=${choose}><span class="row spread"><span class="n">${one.iteration}</span><span class=${kind}><${Glyph} name=${kind} spin=${kind === "run"} /></span></span>
    <span class="small clip">${failing ? `${plural(failing, "test")} failing` : saysOf(one)}</span>
    <span class="small">${one.changed ? html`<span class="stats">${plural(one.changed.files_changed, "file")} <span class="plus">+${one.changed.lines_added}</span> <span class="minus">−${one.changed.lines_removed}</span></span>` : "\u00a0"}</span>
    <span class="small">${one.started_us ? lasts(((one.ended_us || nowUs()) - one.started_us) / US) : ""}${one.cost_usd ? ` · ${money(one.cost_usd)}` : ""}</span></button>`;
}

function Output({ one }) {
  if (!one) return html`<div class="muted">Choose an iteration to compare with.</div>`;
  const { check } = one;
  return html`<div class="stack"><div class="row wrap"><h3>Iteration ${one.iteration}</h3>${check && html`<span class=${check.passed ? "ok" : "fail"}><${Glyph} name=${check.passed ? "ok" : "fail"} /> ${check.passed ? "check passed" : one.error || "check failed"}${check.duration_s ? `, ${lasts(check.duration_s)}` : ""}</span>`}</div>
    ${check && html`<code>${check.command}</code>`}
    ${one.tests && html`<span class="muted">${one.tests.passed} of ${plural(one.tests.count, "test")} passed</span>`}
    <pre class="output" tabindex="0">${check ? check.tail || "It wrote nothing." : "No check yet."}</pre>
    ${one.summary && html`<div class="words"><span class="muted">The agent says:</span> ${one.summary}</div>`}
    ${(one.told || []).length > 0 && html`<div class="words"><span class="muted">It was told:</span> ${one.told.join(" ")}</div>`}
    ${(one.blocked || []).length > 0 && html`<div class="words wait">Blocked: ${one.blocked.join(" ")}</div>`}</div>`;
}

export function Loop({ runKey, view, now, choose, unit, can, readOnly }) {
  const found = useLoad(`/api/runs/${enc(runKey)}/iterations${view.row === null ? "" : `?row=${view.row}`}`);
  useEffect(() => { if (view.row !== null || now.pulse < 2) return undefined; const timer = setTimeout(found.again, 250); return () => clearTimeout(timer); }, [now.pulse]);
  const [left, setLeft] = useState(null), [right, setRight] = useState(null), [text, setText] = useState("");
  const data = found.data || found.stale, name = view.units.length ? view.units[0].unit : "loop";
  if (!data) return html`<${Loaded} of=${found} what="Loading iterations">${() => null}<//>`;
  const details = view.detail.details || {}, last = data.iterations[data.iterations.length - 1], tone = view.units.length ? view.units[0].tone : "", busy = (tone === "run" || tone === "wait") && (!last || last.ended_us !== null);
  const list = busy ? [...data.iterations, { iteration: last ? last.iteration + 1 : 1, status: "running", waits: tone === "wait", started_us: last ? last.ended_us : view.units[0].started_us, ended_us: null }] : data.iterations;
  const checked = list.filter((one) => one.check), b = list.find((one) => one.iteration === right) || checked[checked.length - 1], a = list.find((one) => one.iteration === left) || checked.filter((one) => one !== b).pop();
  const steer = async (event) => {
    event.preventDefault();
    if (await doing(direct(runKey, "steer", { text }))) setText("");
  };
  return html`<div class="stack"><div class="strip" role="group" aria-label="Iterations" tabindex="0">${list.map((one) => html`<${Pass} key=${one.iteration} one=${one} chosen=${(a && one.iteration === a.iteration) || (b && one.iteration === b.iteration)} choose=${() => { setLeft(b ? b.iteration : null); setRight(one.iteration); }} />`)}</div>
    <div class="row wrap"><span class="muted">until <code>${details.command}</code></span>${details.stuck && details.stuck.strikes > 0 && html`<span class="wait">${plural(details.stuck.strikes, "strike")} for standing still</span>`}<span class="grow"></span><button onClick=${() => choose(unit ? null : name)}>${unit ? "Close the panel" : "Launches and transcript"}</button></div>
    ${list.length === 0 ? html`<${Empty} title="No iteration yet" />` : html`<section class="card"><header><h2>Two checks side by side</h2></header><div class="body side-by-side"><${Output} one=${a} /><${Output} one=${b} /></div></section>`}
    ${can.includes("steer") && !readOnly && view.row === null && html`<form class="card" onSubmit=${steer}><div class="body stack"><label class="stack"><h2>Steer the next iteration</h2><textarea rows="2" required value=${text} onInput=${(event) => setText(event.target.value)} placeholder="What the agent should know before it begins again"></textarea></label>
      <div class="row spread"><span class="muted">${(details.steering || []).length ? `${plural(details.steering.length, "note")} wait for the next iteration` : ""}</span><button class="main"><${Glyph} name="send" />Send</button></div></div></form>`}
    ${(details.learnings || []).length > 0 && html`<section class="card"><header><h2>Learned</h2></header><ul class="body stack">${details.learnings.map((one) => html`<li class="words">${typeof one === "string" ? one : one.text || JSON.stringify(one)}</li>`)}</ul></section>`}</div>`;
}
