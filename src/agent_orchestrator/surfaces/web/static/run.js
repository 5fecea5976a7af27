// The page of one run: what it is, what can be done, its picture by mode, the panel of a unit, the time bar.
import { html, useMemo, useCallback, enc, money, count, moment, fromIso, runPath, unitPath, reviewPath, direct, plural } from "./lib.js";
import { Glyph, RunBadge, Bar, Age, Loading, Failed, Menu, ask, doing, lazily, useTick } from "./ui.js";
import { go, setQuery, useKeys, useWorld } from "./world.js";
import { useRun, useView } from "./journey.js";
import { TimeBar } from "./timebar.js";
import { Graph } from "./graph.js";
import { UnitPanel } from "./unit.js";
import { StepsTable, Timeline, Messages, Journal, Cost, Decisions } from "./tabs.js";
import { approve, reject, answerInWords } from "./overview.js";

const board = (name) => lazily(() => import("./boards.js").then((module) => module[name]));
const Loop = lazily(() => import("./loop.js").then((module) => module.Loop)), Phases = board("Phases"), Team = board("Team"), Swarm = board("Swarm");
const DiffTab = lazily(() => import("./diff.js").then((module) => module.DiffTab));
const MODES = { loop: ["iterations", Loop], phases: ["board", Phases], team: ["board", Team], swarm: ["board", Swarm] };
const tabsOf = (system) => [
  ...(MODES[system] ? [MODES[system][0]] : ["graph"]), ...(system === "loop" ? [] : MODES[system] ? ["graph", "table"] : ["table"]),
  "timeline", "messages", ...(system === "team" ? ["decisions"] : []), "diff", "journal", "cost",
];

/** What a person can do to the whole run, asked again where it cannot be undone. */
function acts(key, run, points) {
  const send = (directive, fields) => doing(direct(key, directive, fields));
  const choose = points.filter((point) => point.name).map((point) => [String(point.row), `${point.name} (fact ${point.row}, ${moment(point.at_us)})`]).reverse();
  return {
    pause: () => send("pause", {}),
    "pause now": () => send("pause", { now: true }),
    resume: () => send("resume", {}),
    steer: async (unit) => {
      const found = await ask({ title: unit ? `Steer ${unit}` : "Steer the run", text: "The agents read this with their next prompt.", yes: "Send", fields: [
        { name: "text", kind: "area", label: "What they should know", required: true }, { name: "now", kind: "check", label: "Now: stop the agent at work; it goes on and has read this" }] });
      return found && send("steer", { text: found.text, now: found.now, ...(unit ? { unit } : {}) });
    },
    abort: async () => {
      const found = await ask({ title: `Abort ${run.name}?`, text: "Everything at work is stopped and the run ends. This cannot be undone; the work so far is kept.", yes: "Abort the run", danger: true, fields: [{ name: "reason", label: "Reason", hint: "optional" }] });
      return found && send("abort", found.reason ? { reason: found.reason } : {});
    },
    merge: async (unit) => {
      const found = await ask({ title: unit ? `Merge ${unit}?` : `Merge the work of ${run.name}?`, text: "The merged tree is checked before the branch moves.", yes: "Merge", fields: [
        { name: "into", label: "Into", hint: "the branch it began on" }, { name: "check", label: "Check", hint: "the run's own" }, { name: "no_check", kind: "check", label: "Without a check" }] });
      return found && send("merge", { ...(unit ? { unit } : {}), ...(found.into ? { into: found.into } : {}), ...(found.check ? { check: found.check } : {}), ...(found.no_check ? { no_check: true } : {}) });
    },
    discard: async () => (await ask({ title: `Discard the work of ${run.name}?`, text: "Its worktrees and branches are removed. Refs keep the commits for a while.", yes: "Discard", danger: true })) && send("discard", {}),
    fork: async (row) => {
      const found = await ask({ title: "Fork the run", text: "A new run begins as a copy of this one at that fact, with a worktree and branches of its own. This run goes on as it is.", yes: "Fork", fields: [
        ...(row === undefined ? [{ name: "at", kind: "select", label: "At", options: choose, value: choose.length ? choose[0][0] : "" }] : []), { name: "run_id", label: "Id of the new run", hint: "made up if empty" }] });
      return found && send("fork", { at: Number(row ?? found.at), ...(found.run_id ? { run_id: found.run_id } : {}) });
    },
    rewind: async (row) => {
      const found = await ask({ title: row === undefined ? "Rewind the run?" : `Rewind to fact ${row}?`, text: "What was done since is left behind, in the journal and in the tree; the run goes on from there. Agents at work are stopped if you say so.", yes: "Rewind", danger: true, fields: [
        ...(row === undefined ? [{ name: "to", kind: "select", label: "To", options: choose, value: choose.length ? choose[0][0] : "" }] : []), { name: "now", kind: "check", label: "Stop what is at work" }] });
      return found && send("rewind", { to: Number(row ?? found.to), now: found.now });
    },
  };
}

function Money({ budget }) {
  if (!budget || !budget.spent) return null;
  const limit = budget.limits && budget.limits.run && budget.limits.run.cost_usd, spent = budget.spent.cost_usd, reserved = budget.reserved ? budget.reserved.cost_usd : 0;
  return html`<span class="row">${money(spent)}${limit ? html` of ${money(limit)} <${Bar} parts=${[[spent / limit > 0.9 ? "fail" : "accent", spent || 0], ["idle", reserved || 0]]} total=${limit} label=${`${money(spent)} of ${money(limit)} spent`} />` : ""}
    <span>${count(budget.spent.tokens)} tokens</span>${budget.spent.unknown ? html`<span class="wait">${plural(budget.spent.unknown, "launch")} of unknown cost</span>` : ""}</span>`;
}

function Head({ detail, view, can, does, readOnly, several }) {
  useTick();
  const { run, words } = detail;
  const button = (name, text, kind = "") => can.includes(name) && !readOnly && html`<button class=${kind} onClick=${() => does[name]()}>${text}</button>`;
  const more = [["pause now", "Pause now: stop what is at work", "pause"], ["merge", "Merge …"], ["discard", "Discard the work …"], ["fork", "Fork …"], ["rewind", "Rewind …"]]
    .filter(([name, , needs]) => can.includes(needs || name)).map(([name, text]) => [text, () => does[name]()]);
  return html`<div class="run-head"><nav class="crumbs" aria-label="Where"><a href="/">Runs</a><span>/</span>${several && html`<a href=${`/?repo=${enc(run.repo)}`}>${run.repo}</a><span>/</span>`}<span class="clip">${run.run_id}</span></nav>
    <div class="row wrap spread"><div class="titles"><h1>${run.name}</h1><${RunBadge} run=${view.row === null ? run : { ...run, driven_by: "somebody then" }} /><span class="tag">${run.system}</span></div>
      <div class="does">${view.row === null && html`${button("steer", "Steer …")}${button("pause", "Pause")}${button("resume", html`<${Glyph} name="next" />Resume`, "main")}${button("abort", "Abort …", "no")}${!readOnly && html`<${Menu} label="More" items=${more} />`}`}</div></div>
    <div class="facts"><span>${run.done}/${run.total} ${words.unit}s${run.failed ? html`, <span class="fail">${run.failed} failed</span>` : ""}</span><${Money} budget=${detail.budget} /><span>began <${Age} us=${fromIso(run.created_at)} /></span><span>${run.ended ? "ended" : "updated"} <${Age} us=${run.updated_us} /></span>
      ${view.row === null && html`<span>${run.driven_by ? `runs in ${run.driven_by}` : run.ended ? "" : "nothing runs it"}</span>`}${detail.forked_from && html`<span>forked from ${typeof detail.forked_from === "string" ? detail.forked_from : detail.forked_from.run || ""}</span>`}</div>
    ${run.detail && html`<p class=${run.failed || /fail|limit|stuck|exhaust/.test(run.status) ? "error-line" : "muted"}>${run.detail}</p>`}</div>`;
}

/** Bring the tab that is shown into sight: on a phone the row of tabs is wider than the screen. */
const inSight = (link) => link && link.scrollIntoView({ block: "nearest", inline: "nearest" });

function Question({ runKey, question, readOnly }) {
  const need = { ...question, question: question.text };
  return html`<section class="card needs" aria-label=${`Question of ${question.unit}`}><div class="need"><span class="wait"><${Glyph} name="wait" /></span>
    <div class="stack grow"><div class="where"><span class="strong">${question.unit}</span><span class="muted">waits for you</span></div><div class="words">${question.text}</div></div>
    <div class="does"><a class="button" href=${reviewPath(runKey, question.unit)}>Review</a>
      ${readOnly ? null : question.in_words ? html`<button class="main" onClick=${() => answerInWords(runKey, need)}>Answer …</button>` : html`<button class="yes" onClick=${() => approve(runKey, need)}>Approve</button><button class="no" onClick=${() => reject(runKey, need)}>Reject …</button>`}</div></div></section>`;
}

export function RunPage({ runKey, unit, query }) {
  const world = useWorld();
  const now = useRun(runKey);
  const row = query.get("row") ? Number(query.get("row")) : null;
  const view = useView(runKey, now, row);
  const readOnly = Boolean(world.session && world.session.read_only), several = world.session && world.session.repos.length > 1;
  const move = useCallback((to) => setQuery({ row: to }), []);
  const step = (by) => {
    if (!now.history) return;
    const { rows } = now.history, at = row === null ? rows.length - 1 : rows.findLastIndex(([number]) => number <= row), next = Math.max(0, at + by);
    move(next >= rows.length - 1 ? null : rows[next][0]);
  };
  const keep = location.search;
  const chooseUnit = (name) => go((name === null ? runPath(runKey) : unitPath(runKey, name)) + keep, { replace: true });
  const asked = view && row === null ? view.detail.questions : [];
  const of = view ? view.units.findIndex((one) => one.unit === unit) : -1;
  const walk = (by) => { if (view && view.units.length) chooseUnit(view.units[Math.min(view.units.length - 1, Math.max(0, of < 0 ? 0 : of + by))].unit); };
  const first = asked.find((one) => one.unit === unit) || asked[0];
  useKeys({
    ArrowLeft: () => step(-1), ArrowRight: () => step(1), Escape: () => (unit ? chooseUnit(null) : move(null)), j: () => walk(1), k: () => walk(-1),
    a: () => first && !first.in_words && !readOnly && approve(runKey, first), r: () => first && !readOnly && (first.in_words ? answerInWords : reject)(runKey, first),
    Enter: (event) => (event.target.closest("a, button, summary") ? false : first ? go(reviewPath(runKey, first.unit)) : false),
  });
  const does = useMemo(() => (now.detail ? acts(runKey, now.detail.run, now.detail.points) : {}), [runKey, now.detail]);
  if (now.error && !now.detail) return html`<main class="page"><nav class="crumbs" aria-label="Where"><a href="/">Runs</a></nav><${Failed} error=${now.error} /></main>`;
  if (!view) return html`<main class="page"><${Loading} what="Loading the run" /></main>`;
  const { detail } = view, { run } = detail, tabs = tabsOf(run.system), tab = tabs.includes(query.get("tab")) ? query.get("tab") : tabs[0];
  const can = readOnly ? [] : now.detail.actions;
  const common = { runKey, view, now, unit, choose: chooseUnit, move, can, does, readOnly };
  const [modeTab, Mode] = MODES[run.system] || ["graph", null];
  return html`<main class="page wide"><${Head} detail=${detail} view=${view} can=${can} does=${does} readOnly=${readOnly} several=${several} />
    ${row !== null && html`<div class="past-strip" role="status"><${Glyph} name="park" /><span>As it was at <span class="strong">fact ${row}</span>${view.whole ? "" : " …"}</span>${view.error && html`<span class="fail">${view.error.message}</span>`}</div>`}
    ${asked.map((question) => html`<${Question} key=${question.effect} runKey=${runKey} question=${question} readOnly=${readOnly} />`)}
    <nav class="tabs" aria-label="Views of the run">${tabs.map((name) => html`<a key=${name} ref=${name === tab ? inSight : null} href=${`${location.pathname}?${new URLSearchParams([["tab", name], ...(row === null ? [] : [["row", row]])])}`} aria-current=${name === tab ? "page" : null}>${name[0].toUpperCase() + name.slice(1)}</a>`)}</nav>
    <div class=${`split${unit ? " open" : ""}`}><div class="stack grow">
      ${tab === modeTab && Mode ? html`<${Mode} key="mode" ...${common} />`
        : tab === "graph" ? html`<${Graph} key="graph" units=${view.units} back=${view.back} chosen=${of} choose=${(index) => chooseUnit(view.units[index].unit)} /><${StepsTable} key="steps" ...${common} short=${true} />`
        : tab === "table" ? html`<${StepsTable} key="steps" ...${common} />`
        : tab === "timeline" ? html`<${Timeline} key="timeline" ...${common} />`
        : tab === "messages" ? html`<${Messages} key="messages" ...${common} />`
        : tab === "decisions" ? html`<${Decisions} key="decisions" ...${common} />`
        : tab === "diff" ? html`<${DiffTab} key="diff" ...${common} />`
        : tab === "journal" ? html`<${Journal} key="journal" ...${common} />`
        : html`<${Cost} key="cost" ...${common} />`}</div>
      ${unit && html`<${UnitPanel} key=${unit} ...${common} />`}</div>
    ${now.history.rows.length > 0 && html`<${TimeBar} history=${now.history} row=${row} move=${move} can=${can} fork=${(at) => does.fork(at)} rewind=${(at) => does.rewind(at)} />`}</main>`;
}
