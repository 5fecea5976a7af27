// All runs: those that need a person first, then the accounts that are parked, then every run.
import { html, useState, useEffect, useRef, useMemo, money, count, runPath, reviewPath, runTone, groupOf, fromIso, plural, direct, clock, nowUs } from "./lib.js";
import { Glyph, RunBadge, Bar, Age, Loading, Empty, ask, doing, useWindow } from "./ui.js";
import { Workers } from "./workers.js";
import { go, setQuery, useWorld, useKeys, loadNeeds } from "./world.js";

const GROUPS = [["", "All"], ["needs", "Needs you"], ["active", "Active"], ["parked", "Parked"], ["failed", "Failed"], ["done", "Done"]];
const SORTS = {
  status: (run) => GROUPS.findIndex(([name]) => name === groupOf(run)), name: (run) => run.name, repo: (run) => run.repo, mode: (run) => run.system,
  done: (run) => (run.total ? run.done / run.total : 0), cost: (run) => run.cost_usd ?? -1, updated: (run) => -run.updated_us,
};
const whatOf = (run) => (run.queued && !run.driven_by ? "waits for a worker" : !run.ended && run.status !== "paused" && !run.driven_by ? `nothing runs it: orc resume ${run.run_id}` : run.detail || run.doing.join(", "));

/** Ask for the words of a rejection and send it. */
export async function reject(key, need, lines = []) {
  const found = await ask({ title: `Reject ${need.unit}?`, text: "What you write goes into the agent's next prompt.", yes: "Reject", danger: true,
    fields: [{ name: "comments", kind: "area", label: "What has to change", hint: "Say what is wrong and what you expect instead" }] });
  return found && doing(direct(key, "reject", { unit: need.unit, comments: found.comments, lines, expect: { effect: need.effect } }));
}
export const approve = (key, need) => doing(direct(key, "approve", { unit: need.unit, expect: { effect: need.effect } }));
export async function answerInWords(key, need) {
  const found = await ask({ title: `Answer ${need.unit}`, text: need.question || need.text, yes: "Send", fields: [{ name: "text", kind: "area", label: "Your answer", required: true }] });
  return found && doing(direct(key, "answer", { unit: need.unit, text: found.text, expect: { effect: need.effect } }));
}

export const Evidence = ({ evidence, change }) => html`<span class="evidence">
  ${(evidence || []).slice(0, 3).map((one) => html`<span class=${one.passed ? "ok" : "fail"}><${Glyph} name=${one.passed ? "ok" : "fail"} /> ${one.text}</span>`)}
  ${change && !change.files && html`<span>nothing changed</span>`}${change && change.files > 0 && html`<span class="stats">${plural(change.files, "file")} <span class="plus">+${change.added ?? "?"}</span> <span class="minus">−${change.removed ?? "?"}</span></span>`}
  ${!(evidence || []).length && html`<span>no check stands behind it</span>`}</span>`;

function Need({ need, focus, several, readOnly }) {
  const box = useRef(null);
  useEffect(() => { if (focus && box.current) box.current.scrollIntoView({ block: "nearest" }); }, [focus]);
  const after = async (promise) => { await promise; loadNeeds(); };
  return html`<li class=${`need${focus ? " focus" : ""}`} ref=${box} aria-current=${focus ? "true" : null}>
    <span class="wait"><${Glyph} name="wait" /></span>
    <div class="stack grow"><div class="where"><a class="strong" href=${reviewPath(need.key, need.unit)}>${need.name} › ${need.unit}</a><span class="tag">${need.system}</span>${several && html`<span class="tag">${need.repo}</span>`}<span class="muted"><${Age} us=${fromIso(need.since_at)} /></span></div>
      <div class="asks">${need.question}</div><${Evidence} evidence=${need.evidence} change=${need.change} /></div>
    <div class="does"><a class="button" href=${reviewPath(need.key, need.unit)}>Review</a>
      ${readOnly ? null : need.in_words ? html`<button class="main" onClick=${() => after(answerInWords(need.key, need))}>Answer …</button>`
        : html`<button class="yes" onClick=${() => after(approve(need.key, need))} aria-label=${`Approve ${need.name} ${need.unit}`}>Approve</button><button class="no" onClick=${() => after(reject(need.key, need))} aria-label=${`Reject ${need.name} ${need.unit}`}>Reject …</button>`}</div></li>`;
}

function Day({ day }) {
  if (!day) return null;
  const limit = day.limit.cost_usd, spent = day.spent.cost_usd || 0, reserved = day.reserved.cost_usd || 0;
  const tokens = day.limit.tokens, of = limit !== null ? limit : null;
  return html`<div class="tile card"><span class="what">Spent today</span>
    <span class="row spread"><span class="n">${money(spent)}</span><span class="muted">${of !== null ? `of ${money(of)}` : tokens ? `${count(day.spent.tokens)} of ${count(tokens)} tokens` : `${count(day.spent.tokens)} tokens, no limit`}</span></span>
    ${of !== null ? html`<${Bar} parts=${[[spent / of > 0.9 ? "fail" : "accent", spent], ["idle", reserved]]} total=${of} label=${`${money(spent)} of ${money(of)} spent`} />`
      : tokens ? html`<${Bar} parts=${[["accent", day.spent.tokens]]} total=${tokens} label="tokens spent" />` : null}</div>`;
}

function Parked({ windows }) {
  const closed = windows.filter((one) => !one.open);
  if (!closed.length) return null;
  return html`<section aria-label="Parked accounts"><ul class="parked">${closed.map((one) => html`<li key=${`${one.repo} ${one.account} ${one.name}`}><${Glyph} name="park" />
    <span>${one.account}${one.name ? ` · ${one.name}` : ""} is closed until ${clock(one.resets_us).slice(0, 5)}</span><span class="muted">${plural(one.runs.length, "run")} parked${one.resets_us > nowUs() ? `, ${Math.ceil((one.resets_us - nowUs()) / 6e7)} min left` : ""}</span></li>`)}</ul></section>`;
}

const Row = ({ run, top, height, focus, several }) => html`<a class=${`vrow${focus ? " focus" : ""}`} href=${runPath(run.key)} style=${{ top: `${top}px`, height: `${height}px` }} role="row" aria-current=${focus ? "true" : null}>
  <span class="c-status" role="cell"><${RunBadge} run=${run} /></span>
  <span class="c-name clip" role="cell"><span class="name">${run.name}</span> <span class="id">${run.run_id}</span></span>
  ${several && html`<span class="c-repo clip muted" role="cell">${run.repo}</span>`}
  <span class="c-mode muted" role="cell">${run.system}</span>
  <span class="c-prog prog" role="cell"><${Bar} parts=${[["ok", run.done], ["fail", run.failed], [runTone(run) === "wait" ? "wait" : "run", run.ended ? 0 : Math.min(run.doing.length, run.total - run.done - run.failed)]]} total=${run.total || 1} label=${`${run.done} of ${run.total} done, ${run.failed} failed`} /><span>${run.done}/${run.total}</span></span>
  <span class="c-what clip muted" role="cell" title=${whatOf(run)}>${whatOf(run)}</span>
  <span class="c-cost num muted" role="cell">${money(run.cost_usd)}</span>
  <span class="c-when num muted" role="cell"><${Age} us=${run.updated_us} /></span></a>`;

function useNarrow() {
  const [narrow, set] = useState(matchMedia("(max-width: 760px)").matches);
  useEffect(() => { const media = matchMedia("(max-width: 760px)"), hear = () => set(media.matches); media.addEventListener("change", hear); return () => media.removeEventListener("change", hear); }, []);
  return narrow;
}

function Table({ runs, query, several, focus }) {
  const height = useNarrow() ? 64 : 38;
  const [box, from, to] = useWindow(runs.length, height);
  const [by, down] = [(query.get("sort") || "updated").replace("-", ""), (query.get("sort") || "").startsWith("-")];
  const head = (name, text, kind = "") => html`<span class=${`c-${kind || name}`} role="columnheader" aria-sort=${by === name ? (down ? "descending" : "ascending") : "none"}><button onClick=${() => setQuery({ sort: by === name && !down ? `-${name}` : name === "updated" ? null : name })}>${text}${by === name ? (down ? " ↑" : " ↓") : ""}</button></span>`;
  useEffect(() => {
    if (focus < 0 || !box.current) return;
    const top = box.current.getBoundingClientRect().top + focus * height;
    if (top < 100 || top + height > window.innerHeight) window.scrollBy(0, top - window.innerHeight / 2);
  }, [focus]);
  return html`<div role="table" aria-label="Runs" aria-rowcount=${runs.length} class=${several ? "several" : ""}>
    <div class="vhead" role="row">${head("status", "Status")}${head("name", "Run")}${several && head("repo", "Repository")}${head("mode", "Mode")}${head("done", "Progress", "prog")}<span class="c-what muted" role="columnheader">What</span>
      <span class="c-cost num" role="columnheader"><button onClick=${() => setQuery({ sort: by === "cost" && !down ? "-cost" : "cost" })}>Cost${by === "cost" ? (down ? " ↑" : " ↓") : ""}</button></span><span class="c-when num" role="columnheader"><button onClick=${() => setQuery({ sort: by === "updated" && !down ? "-updated" : null })}>Updated${by === "updated" ? (down ? " ↑" : " ↓") : ""}</button></span></div>
    <div class="vbody" role="rowgroup" ref=${box} style=${{ height: `${runs.length * height}px` }}>
      ${runs.slice(from, to).map((run, i) => html`<${Row} key=${run.key} run=${run} top=${(from + i) * height} height=${height} several=${several} focus=${focus === from + i} />`)}</div></div>`;
}

export function Overview({ query }) {
  const world = useWorld();
  const search = useRef(null);
  const [focus, setFocus] = useState(-1);
  const all = [...world.runs.values()];
  const chosen = { q: (query.get("q") || "").toLowerCase(), status: query.get("status") || "", mode: query.get("mode") || "", repo: query.get("repo") || "" };
  const repos = world.session ? world.session.repos : [];
  const several = repos.length > 1, readOnly = world.session && world.session.read_only;
  const inScope = all.filter((run) => (!chosen.mode || run.system === chosen.mode) && (!chosen.repo || run.repo === chosen.repo)
    && (!chosen.q || `${run.run_id} ${run.name} ${run.detail} ${run.doing.join(" ")}`.toLowerCase().includes(chosen.q)));
  const counts = useMemo(() => { const n = {}; for (const run of inScope) n[groupOf(run)] = (n[groupOf(run)] || 0) + 1; return n; }, [inScope.length, world.runs, all]);
  const sort = query.get("sort") || "updated", by = SORTS[sort.replace("-", "")] || SORTS.updated, sign = sort.startsWith("-") ? -1 : 1;
  const runs = inScope.filter((run) => !chosen.status || groupOf(run) === chosen.status)
    .sort((a, b) => { const x = by(a), y = by(b); return sign * (x < y ? -1 : x > y ? 1 : 0) || b.updated_us - a.updated_us; });
  const needs = world.needs.filter((need) => !chosen.repo || need.repo === chosen.repo);
  const rows = needs.length + runs.length;
  const at = Math.min(focus, rows - 1);
  useKeys({
    j: () => setFocus(Math.min(at + 1, rows - 1)), k: () => setFocus(Math.max(at - 1, 0)),
    Enter: (event) => { if (at < 0 || event.target.closest("a, button")) return false; go(at < needs.length ? reviewPath(needs[at].key, needs[at].unit) : runPath(runs[at - needs.length].key)); return true; },
    a: () => { const need = needs[at]; if (need && !need.in_words && !readOnly) approve(need.key, need).then(loadNeeds); },
    r: () => { const need = needs[at]; if (need && !readOnly) (need.in_words ? answerInWords : reject)(need.key, need).then(loadNeeds); },
    "/": () => search.current && search.current.focus(),
  });
  if (!world.loaded) return html`<main class="page"><${Loading} what="Loading runs" /></main>`;
  const tile = (name, text, kind) => html`<button class="tile" onClick=${() => setQuery({ status: chosen.status === name ? null : name })} aria-pressed=${chosen.status === name}><span class=${`what ${kind}`}><${Glyph} name=${kind} />${text}</span><span class="n">${counts[name] || 0}</span></button>`;
  return html`<main class="page">
    <h1 class="hidden-text">Runs</h1>
    ${repos.filter((one) => one.problem).map((one) => html`<div class="error-line" role="alert">${one.repo}: ${one.problem}</div>`)}
    <section class="tiles" aria-label="Summary">${tile("needs", "Needs you", "wait")}${tile("active", "Active", "run")}${tile("parked", "Parked", "park")}${tile("failed", "Failed", "fail")}<${Day} day=${world.day} /></section>
    <div aria-live="polite" class="hidden-text">${needs.length ? `${plural(needs.length, "question")} for you` : "Nothing needs you"}</div>
    ${needs.length > 0 && html`<section class="card needs" aria-label="Needs you"><header><h2>Needs you</h2><span class="tag">${needs.length}</span></header>
      <ul>${needs.map((need, i) => html`<${Need} key=${`${need.key} ${need.effect}`} need=${need} focus=${i === at} several=${several} readOnly=${readOnly} />`)}</ul></section>`}
    <${Parked} windows=${world.windows} />
    ${repos.some((one) => one.store) && html`<${Workers} />`}
    <section class="card" aria-label="Runs">
      <div class="filters"><input type="search" ref=${search} placeholder="Search runs   /" aria-label="Search runs" value=${query.get("q") || ""} onInput=${(event) => setQuery({ q: event.target.value })} />
        <div class="chips" role="group" aria-label="Status">${GROUPS.map(([name, text]) => html`<button key=${name} aria-pressed=${chosen.status === name} onClick=${() => setQuery({ status: name })}>${text} <span class="count">${name ? counts[name] || 0 : inScope.length}</span></button>`)}</div>
        <span class="grow"></span>
        ${several && html`<select aria-label="Repository" value=${chosen.repo} onChange=${(event) => setQuery({ repo: event.target.value })}><option value="">All repositories</option>${repos.map((one) => html`<option value=${one.repo}>${one.repo}</option>`)}</select>`}
        <select aria-label="Mode" value=${chosen.mode} onChange=${(event) => setQuery({ mode: event.target.value })}><option value="">All modes</option>${[...new Set(all.map((run) => run.system))].sort().map((one) => html`<option value=${one}>${one}</option>`)}</select></div>
      ${runs.length ? html`<${Table} runs=${runs} query=${query} several=${several} focus=${at - needs.length} />`
        : all.length ? html`<${Empty} title="No run matches">Change the filter, or <a href="/">show all ${all.length}</a>.<//>`
        : html`<${Empty} title="No runs yet">Start one in this repository: <code>orc run "what to do"</code>, <code>orc run --workflow workflow.yaml</code>, <code>orc loop run</code> … It appears here by itself.<//>`}
    </section></main>`;
}
