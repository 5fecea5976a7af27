// Figures across all runs: who succeeds at what, with confidence; what it costs; how long it takes.
import { html, money, count, lasts, plural } from "./lib.js";
import { Loaded, Failed, Empty, useLoad } from "./ui.js";
import { setQuery, useWorld } from "./world.js";
import { Rates, Amounts, Quartiles, Days } from "./plots.js";

const SINCE = [["1d", "1 day"], ["7d", "7 days"], ["30d", "30 days"], ["365d", "1 year"]];
const nameOf = (row) => `${row.where || ""}${row.agent}${row.step ? ` · ${row.step}` : ""}`;

export function Analytics({ query }) {
  const since = query.get("since") || "30d", system = query.get("system") || "", repo = query.get("repo") || "", { session } = useWorld();
  const found = useLoad(`/api/analytics?since=${since}${system ? `&system=${system}` : ""}`), records = useLoad(`/api/outcomes?since=${since}`);
  const kept = (records.data ? records.data.repos : []).filter((one) => !repo || one.repo === repo).flatMap((one) => one.systems.filter((all) => !system || all.system === system).map((all) => ({ repo: one.repo, all })));
  return html`<main class="page"><div class="row wrap spread"><h1>Analytics</h1><div class="row wrap"><div class="chips" role="group" aria-label="Since">${SINCE.map(([value, text]) => html`<button key=${value} aria-pressed=${since === value} onClick=${() => setQuery({ since: value })}>${text}</button>`)}</div>
      ${session && session.repos.length > 1 && html`<select aria-label="Repository" value=${repo} onChange=${(event) => setQuery({ repo: event.target.value })}><option value="">All repositories</option>${session.repos.map((one) => html`<option value=${one.repo}>${one.repo}</option>`)}</select>`}
      <select aria-label="Mode" value=${system} onChange=${(event) => setQuery({ system: event.target.value })}><option value="">All modes</option>${["workflow", "loop", "phases", "team", "swarm"].map((one) => html`<option value=${one}>${one}</option>`)}</select></div></div>
    <${Loaded} of=${found} what="Counting">${({ repos }) => (repos.some((one) => one.rows.length) ? html`<${Figures} repos=${repos.filter((one) => !repo || one.repo === repo)} />` : html`<section class="card"><${Empty} title="No launch yet">Agents that have worked in this time appear here.<//></section>`)}<//>
    ${records.error && html`<${Failed} error=${records.error} />`}${kept.map(({ repo: name, all }) => html`<${Outcomes} key=${`${name} ${all.system}`} where=${session && session.repos.length > 1 ? ` in ${name}` : ""} all=${all} />`)}</main>`;
}

const share = (rate) => (rate === null ? "–" : `${Math.round(rate * 100)} %`);
/** Units by their records, each by its newest attempt, as `orc swarm analyze` counts them. */
function Outcomes({ where, all }) {
  const rows = [...all.by_agent_model_template].sort((a, b) => b.total - a.total), reasons = Object.entries(all.failure_reasons);
  return html`<section class="card"><header><h2>Beads of the ${all.system}${where} by agent × model × template</h2></header><p class="body muted">${plural(all.total_runs, "bead")}${all.running ? `, ${all.running} running` : ""}; ${share(all.success_rate)} of those that ended are done; ${share(all.retry_rate)} took more than one attempt</p>
    <div class="scroll" tabindex="0"><table><thead><tr><th>Agent</th><th>Model</th><th>Template</th><th class="num">Beads</th><th class="num">Done</th><th class="num">Failed</th><th class="num">Timed out</th><th class="num">Running</th><th class="num">Success</th><th class="num">95 %</th><th class="num">Retried</th><th class="num">Average time</th><th class="num">Cost</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${`${row.agent} ${row.model} ${row.template}`}><td>${row.agent}</td><td>${row.model}</td><td>${row.template}</td><td class="num">${row.total}</td><td class="num">${row.success}</td><td class="num">${row.failed}</td><td class="num">${row.timeout}</td><td class="num">${row.running}</td><td class="num">${share(row.success_rate)}</td><td class="num">${row.success_rate_low === null ? "–" : `${Math.round(row.success_rate_low * 100)}–${share(row.success_rate_high)}`}</td><td class="num">${share(row.retry_rate)}</td><td class="num">${lasts(row.average_duration_seconds)}</td><td class="num">${money(row.cost_usd)}${row.cost_known_for && row.cost_known_for < row.total ? " at least" : ""}</td></tr>`)}</tbody></table></div>
    ${(reasons.length > 0 || all.recommendations.length > 0) && html`<div class="body stack">${reasons.length > 0 && html`<h3>Why they failed</h3><ul class="stack">${reasons.map(([reason, many]) => html`<li key=${reason} class="words"><span class="strong">${many}×</span> ${reason}</li>`)}</ul>`}
      ${all.recommendations.length > 0 && html`<h3>What to do about it</h3><ul class="stack">${all.recommendations.map((text) => html`<li key=${text} class="words">${text}</li>`)}</ul>`}</div>`}</section>`;
}

function Figures({ repos }) {
  const several = repos.length > 1, days = repos.flatMap((one) => one.days), rows = repos.flatMap((one) => one.rows.map((row) => ({ ...row, repo: one.repo, where: several ? `${one.repo} · ` : "" })));
  const total = rows.reduce((sum, row) => sum + row.launches, 0);
  const costs = rows.filter((row) => row.cost_each_usd !== null && row.cost_each_usd !== undefined).sort((a, b) => b.cost_each_usd - a.cost_each_usd).slice(0, 12);
  const times = rows.filter((row) => row.seconds).sort((a, b) => b.seconds[1] - a.seconds[1]).slice(0, 12);
  return html`<p class="muted">${plural(total, "launch").replace("launchs", "launches")} of agents. A bar is the share that succeeded, the whisker its 95 % confidence: few launches say little.</p>
    <div class="plots"><section class="card"><header><h2>Success by agent × model × step</h2></header><div class="body"><${Rates} rows=${rows} /></div></section>
      <section class="card"><header><h2>Spent per day</h2></header><div class="body">${days.length ? html`<${Days} days=${days} label="Dollars per day" />` : html`<p class="muted">Nobody said what it cost.</p>`}</div></section>
      <section class="card"><header><h2>Cost per launch</h2></header><div class="body">${costs.length ? html`<${Amounts} rows=${costs.map((row) => [nameOf(row), row.cost_each_usd])} label="Dollars per launch" />` : html`<p class="muted">Nobody said what it cost.</p>`}</div></section>
      <section class="card"><header><h2>Time per launch</h2><span class="muted">median and quartiles</span></header><div class="body">${times.length ? html`<${Quartiles} rows=${times.map((row) => [nameOf(row), row.seconds])} say=${lasts} label="Seconds per launch" />` : html`<p class="muted">Nothing has ended.</p>`}</div></section></div>
    <section class="card"><header><h2>The same as a table</h2></header><div class="scroll" tabindex="0"><table><thead><tr><th>Mode</th><th>Agent</th><th>Model</th><th>Step or template</th><th class="num">Launches</th><th class="num">Succeeded</th><th class="num">95 %</th><th class="num">Cost</th><th class="num">Each</th><th class="num">Tokens</th><th class="num">Median</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr><td>${row.system}</td><td>${row.agent}</td><td>${row.model || "–"}</td><td>${row.step || "–"}</td><td class="num">${row.launches}</td><td class="num">${row.succeeded}</td><td class="num">${Math.round(row.low * 100)}–${Math.round(row.high * 100)} %</td><td class="num">${money(row.cost_usd)}</td><td class="num">${money(row.cost_each_usd)}</td><td class="num">${count(row.tokens)}</td><td class="num">${row.seconds ? lasts(row.seconds[1]) : "–"}</td></tr>`)}</tbody></table></div></section>`;
}
