// Figures across all runs: who succeeds at what, with confidence; what it costs; how long it takes.
import { html, money, count, lasts, plural } from "./lib.js";
import { Loaded, Empty, useLoad } from "./ui.js";
import { setQuery, useWorld } from "./world.js";
import { Rates, Amounts, Quartiles, Days } from "./plots.js";

const SINCE = [["1d", "1 day"], ["7d", "7 days"], ["30d", "30 days"], ["365d", "1 year"]];
const nameOf = (row) => `${row.where || ""}${row.agent}${row.step ? ` · ${row.step}` : ""}`;

export function Analytics({ query }) {
  const since = query.get("since") || "30d", system = query.get("system") || "", repo = query.get("repo") || "", { session } = useWorld();
  const found = useLoad(`/api/analytics?since=${since}${system ? `&system=${system}` : ""}`);
  return html`<main class="page"><div class="row wrap spread"><h1>Analytics</h1><div class="row wrap"><div class="chips" role="group" aria-label="Since">${SINCE.map(([value, text]) => html`<button key=${value} aria-pressed=${since === value} onClick=${() => setQuery({ since: value })}>${text}</button>`)}</div>
      ${session && session.repos.length > 1 && html`<select aria-label="Repository" value=${repo} onChange=${(event) => setQuery({ repo: event.target.value })}><option value="">All repositories</option>${session.repos.map((one) => html`<option value=${one.repo}>${one.repo}</option>`)}</select>`}
      <select aria-label="Mode" value=${system} onChange=${(event) => setQuery({ system: event.target.value })}><option value="">All modes</option>${["workflow", "loop", "phases", "team", "swarm"].map((one) => html`<option value=${one}>${one}</option>`)}</select></div></div>
    <${Loaded} of=${found} what="Counting">${({ repos }) => (repos.some((one) => one.rows.length) ? html`<${Figures} repos=${repos.filter((one) => !repo || one.repo === repo)} />` : html`<section class="card"><${Empty} title="No launch yet">Agents that have worked in this time appear here.<//></section>`)}<//></main>`;
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
