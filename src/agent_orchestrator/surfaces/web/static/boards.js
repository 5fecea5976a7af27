// Boards: phases by phase, a team by stage, a swarm by standing. Cards are units.
import { html, useEffect, useMemo, enc, money, said, took } from "./lib.js";
import { Glyph, useLoad, useTick } from "./ui.js";
import { Rates } from "./plots.js";

function Board({ columns, cards, unit, choose, notes = {} }) {
  useTick(true);
  return html`<div class="board">${columns.map(([id, title]) => {
    const list = cards.filter((card) => card.column === id);
    return html`<section class="column" key=${id} aria-label=${title}><header><h2>${title}</h2><span class="tag">${list.length}</span></header>
      ${notes[id] && html`<p class="muted t-meta">${notes[id]}</p>`}
      <ul tabindex=${list.length > 6 ? "0" : null}>${list.slice(0, 200).map((card) => html`<li key=${card.unit}><${Card} card=${card} chosen=${card.unit === unit} choose=${choose} /></li>`)}
        ${list.length > 200 && html`<li class="muted t-meta">and ${list.length - 200} more: see the table</li>`}</ul></section>`;
  })}</div>`;
}

function Card({ card, chosen, choose }) {
  const time = took(card);
  return html`<button class="task" aria-current=${chosen ? "true" : null} onClick=${() => choose(chosen ? null : card.unit)}>
    <span class="t-head"><span class=${card.tone}><${Glyph} name=${card.tone} spin=${card.tone === "run"} /></span><span class="t-title">${card.title || card.unit}</span></span>
    <span class="t-meta"><span>${card.title ? card.unit : said(card.status)}</span>${card.title && html`<span>${said(card.status)}</span>`}${time !== "–" && html`<span>${time}</span>`}${card.attempts > 1 && html`<span class="wait">attempt ${card.attempts}${card.limit ? ` of ${card.limit}` : ""}</span>`}${card.cost ? html`<span>${card.cost}</span>` : ""}${card.branch && html`<code>${card.branch}</code>`}</span>
    ${card.files && card.files.length > 0 && html`<span class="t-meta">${card.files.slice(0, 3).map((file) => html`<code>${file}</code>`)}${card.files.length > 3 ? ` +${card.files.length - 3}` : ""}</span>`}
    ${card.criteria && html`<span class="criteria">${card.criteria.map((one) => html`<span class=${one.met === true ? "ok" : one.met === false ? "fail" : ""}>${one.met === true ? "✓" : one.met === false ? "✗" : "○"} ${one.text}</span>`)}</span>`}
    ${card.says && html`<span class="t-meta">${card.says}</span>`}
    ${card.error && html`<span class="t-error">${card.error}</span>`}</button>`;
}

/** The documents of the run, at the fact that is shown. */
function useDocuments(runKey, view, now) {
  const found = useLoad(`/api/runs/${enc(runKey)}/documents${view.row === null ? "" : `?row=${view.row}`}`);
  useEffect(() => { if (view.row !== null || now.pulse < 2) return undefined; const timer = setTimeout(found.again, 500); return () => clearTimeout(timer); }, [now.pulse]);
  const data = found.data || found.stale;
  return data ? data.documents : {};
}
const named = (documents, end) => { const path = Object.keys(documents).find((one) => one.endsWith(end)); return path ? documents[path] : null; };

const numberOf = (stage) => Number((/\d+/.exec(stage) || [0])[0]);

export function Phases({ runKey, view, now, unit, choose }) {
  const documents = useDocuments(runKey, view, now), state = named(documents, "agent-state.json") || {}, details = view.detail.details || {};
  const plan = new Map((details.plan || []).map((task) => [task.id, task])), done = new Map((state.completed_tasks || []).map((task) => [task.task, task]));
  const stages = [...new Set(view.units.map((one) => one.stage || ""))].sort((a, b) => numberOf(a) - numberOf(b) || (a < b ? -1 : 1));
  const cards = view.units.map((one) => {
    const task = plan.get(one.unit), ended = done.get(one.unit), met = ended ? ended.success_criteria_met || {} : {};
    return { ...one, column: one.stage || "", title: one.title || (task && task.name) || "", error: (details.failures || {})[one.unit] || one.error, cost: ended && ended.cost, files: ended && ended.files_modified,
      criteria: task && task.criteria ? task.criteria.map((c) => ({ text: c.text, met: met[c.key] })) : null, says: (details.skipped || {})[one.unit] ? `skipped: ${details.skipped[one.unit]}` : "" };
  });
  const supervisor = state.supervisor || {};
  return html`<${Board} columns=${stages.map((stage) => [stage, /^\d+$/.test(stage) ? `Phase ${Number(stage) + 1}` : stage || "Around it"])} cards=${cards} unit=${unit} choose=${choose} />
    ${supervisor.enabled && html`<section class="card"><header><h2>Supervisor</h2></header><div class="body row wrap"><span>${supervisor.checks_performed} checks</span><span>${supervisor.conflicts_detected} conflicts</span><span>${supervisor.auto_fixes_applied} fixes</span><span>${supervisor.re_plans_triggered} new plans</span></div>
      ${(supervisor.interventions || []).length > 0 && html`<ul class="thread">${supervisor.interventions.map((one) => html`<li><span class="avatar">S</span><div class="words">${typeof one === "string" ? one : one.description || one.reason || JSON.stringify(one)}</div></li>`)}</ul>`}</section>`}
    ${(state.checkpoints || []).length > 0 && html`<section class="card"><header><h2>Checkpoints</h2><span class="muted">the dots on the time bar; go there to rewind</span></header><table><tbody>${state.checkpoints.map((one) => html`<tr><td><code>${(one.state_snapshot || "").replace(".json", "")}</code></td><td>${one.task}</td><td><code>${(one.git_sha || "").slice(0, 10)}</code></td><td class="muted">${one.timestamp}</td></tr>`)}</tbody></table></section>`}
    ${(state.learnings || []).length > 0 && html`<section class="card"><header><h2>Learned</h2></header><ul class="body stack">${state.learnings.map((one) => html`<li class="words">${typeof one === "string" ? one : one.learning || one.text || JSON.stringify(one)}</li>`)}</ul></section>`}`;
}

const TEAM = [["planned", "Planned"], ["developing", "Developing"], ["qa", "QA"], ["review", "Review"], ["merging", "Merging"], ["merged", "Merged"]];
export function Team({ runKey, view, now, unit, choose }) {
  const documents = useDocuments(runKey, view, now), status = named(documents, "group_status.json") || {}, pm = named(documents, "pm_state.json") || {}, details = view.detail.details || {};
  const planned = new Map([...(pm.task_groups || []), ...(pm.groups || [])].map((one) => [one.id || one.group_id, one]));
  const cards = view.units.map((one) => {
    const group = { ...(planned.get(one.unit) || {}), ...((status.groups || status)[one.unit] || {}) };
    return { ...one, column: one.stage || (one.tone === "ok" ? "merged" : "planned"), branch: group.branch_name || group.branch || "", files: group.files_affected || group.files || [], says: group.iterations ? `rounds: ${Object.entries(group.iterations).map(([who, many]) => `${said(who)} ${many}`).join(" · ")}` : "" };
  });
  const columns = TEAM.concat(cards.some((one) => one.column === "failed") ? [["failed", "Failed"]] : []);
  const known = new Set(columns.map(([id]) => id));
  for (const card of cards) if (!known.has(card.column)) { columns.push([card.column, said(card.column)]); known.add(card.column); }
  return html`<${Board} columns=${columns} cards=${cards} unit=${unit} choose=${choose} />
    ${(details.requirements || []).length > 0 && html`<section class="card"><header><h2>Requirements</h2></header><table><tbody>${details.requirements.map((one) => html`<tr><td class=${`fit ${one.met_by ? "ok" : "idle"}`}><${Glyph} name=${one.met_by ? "ok" : "idle"} /></td><td class="words">${one.text}</td><td>${one.check ? html`<code>${one.check}</code>` : ""}</td><td class="muted">${one.met_by ? `met by ${one.met_by}` : "open"}</td></tr>`)}</tbody></table></section>`}
    ${(details.merge_queue || []).length > 0 && html`<section class="card"><div class="body">Merge queue into <code>${details.into}</code>: ${details.merge_queue.join(" → ")}</div></section>`}`;
}

const SWARM = [["ready", "Ready"], ["blocked", "Blocked"], ["running", "Running"], ["failed", "Failed"], ["done", "Done"]];
export function Swarm({ runKey, view, now, unit, choose }) {
  const usage = useLoad(`/api/runs/${enc(runKey)}/usage`);
  const analysis = useLoad("/api/analytics?system=swarm");
  useEffect(() => { if (now.pulse < 2) return undefined; const timer = setTimeout(() => { usage.again(); analysis.again(); }, 1500); return () => clearTimeout(timer); }, [now.pulse]);
  const costs = useMemo(() => new Map(((usage.data || {}).by_unit || []).map((one) => [one.unit, one])), [usage.data]);
  const cards = view.units.map((one) => ({ ...one, column: one.stage || "ready", says: "", cost: costs.has(one.unit) && costs.get(one.unit).cost_usd ? money(costs.get(one.unit).cost_usd) : "" }));
  // Who waits for nothing but a free agent is ready.
  for (const card of cards) if (card.column === "blocked" && card.needs.every((index) => view.units[index].tone === "ok")) card.column = "ready";
  const columns = SWARM.filter(([id]) => id !== "blocked" || cards.some((card) => card.column === id));
  const known = new Set(columns.map(([id]) => id));
  for (const card of cards) if (!known.has(card.column)) card.column = card.tone === "ok" ? "done" : card.tone === "fail" ? "failed" : card.tone === "run" ? "running" : "ready";
  const rows = analysis.data ? analysis.data.repos.filter((one) => one.repo === view.detail.run.repo).flatMap((one) => one.rows) : [];
  return html`<${Board} columns=${columns} cards=${cards} unit=${unit} choose=${choose} />
    ${rows.length > 0 && html`<section class="card"><header><h2>Success by agent × model × template</h2><span class="muted">all swarms of the last 30 days, 95 % confidence</span></header><div class="body"><${Rates} rows=${rows} /></div></section>`}`;
}
