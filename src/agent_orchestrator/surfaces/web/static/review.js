// The gate of a unit: what is asked, the evidence, the diff. Comments on lines become the feedback of a rejection.
import { html, useState, useEffect, enc, runPath, unitPath, direct, plural } from "./lib.js";
import { Glyph, Loading, Failed, Empty, useLoad, doing, toast } from "./ui.js";
import { go, useKeys, useWorld, loadNeeds } from "./world.js";
import { useRun } from "./journey.js";
import { Diff, Sum } from "./diff.js";
import { Checks, Feedback } from "./unit.js";

/** Comments that are not sent yet survive a reload of the page. */
function useKept(name) {
  const [kept, set] = useState(() => { try { return JSON.parse(sessionStorage.getItem(name)) || {}; } catch { return {}; } });
  return [kept, (next) => { set(next); try { sessionStorage.setItem(name, JSON.stringify(next)); } catch { /* Kept in memory. */ } }];
}

export function ReviewPage({ runKey, unit }) {
  const now = useRun(runKey), base = `/api/runs/${enc(runKey)}`, world = useWorld();
  const detail = useLoad(`${base}/units/${enc(unit)}`), diff = useLoad(`${base}/diff?unit=${enc(unit)}`), whole = useLoad(diff.error ? `${base}/diff` : null);
  const question = now.detail && now.detail.questions.find((one) => one.unit === unit);
  const need = world.needs.find((one) => one.key === runKey && one.unit === unit);
  const [comments, setComments] = useKept(`orc.review ${runKey} ${question ? question.effect : unit}`);
  const [words, setWords] = useState(""), [busy, setBusy] = useState(false);
  const readOnly = Boolean(world.session && world.session.read_only);
  useEffect(() => { if (now.pulse > 1) { detail.again(); diff.again(); } }, [question && question.effect]);
  const lines = Object.values(comments).filter((one) => one.text).map(({ file, line, side, text, code }) => ({ file, line, side, text, code }));
  const send = async (directive, fields) => {
    setBusy(true);
    const done = await doing(direct(runKey, directive, { unit, expect: { effect: question.effect }, ...fields }));
    setBusy(false);
    if (!done) return;
    if (directive === "reject") setComments({});
    loadNeeds();
    go(runPath(runKey));
  };
  const approve = () => (lines.length ? toast("You have comments: remove them to approve, or reject.", true) : send("approve", words.trim() ? { comments: words.trim() } : {}));
  const reject = () => (lines.length || words.trim() ? send("reject", { comments: words.trim(), lines }) : (document.querySelector("#words").focus(), toast("Say what has to change, in words or on lines.", true)));
  useKeys({ Escape: () => go(runPath(runKey)), a: () => question && !question.in_words && !readOnly && approve(), r: () => document.querySelector("#words") && document.querySelector("#words").focus() });
  if (now.error && !now.detail) return html`<main class="page"><${Failed} error=${now.error} /></main>`;
  if (!now.detail) return html`<main class="page"><${Loading} what="Loading the question" /></main>`;
  const { run } = now.detail, changes = (diff.data || whole.data || { changes: [] }).changes, failed = diff.error && whole.error;
  const evidence = (detail.data && detail.data.evidence) || [];
  return html`<main class="page wide"><div class="run-head"><nav class="crumbs" aria-label="Where"><a href="/">Runs</a><span>/</span><a class="clip" href=${runPath(runKey)}>${run.name}</a><span>/</span><a href=${unitPath(runKey, unit)}>${unit}</a></nav><h1>Review ${unit}</h1></div>
    <div class="review"><div class="stack">${changes.map((change) => html`<div key=${change.unit || change.branch} class="stack"><div class="row wrap"><h2>${change.branch ? html`<code>${change.branch}</code>` : "Changes"}</h2><${Sum} change=${change} /></div><${Diff} change=${change} comments=${question && !question.in_words && !readOnly ? comments : null} setComments=${setComments} /></div>`)}
        ${failed && html`<section class="card"><${Empty} title="No diff">${failed.message}<//></section>`}${!diff.data && !diff.error && html`<${Loading} what="Reading the diff" />`}${diff.data && !changes.length && html`<section class="card"><${Empty} title="Nothing changed" /></section>`}</div>
      <div class="aside">
        ${question ? html`<section class="card needs"><div class="body stack"><h2 class="wait"><${Glyph} name="wait" /> It waits for you</h2><p class="words strong">${question.text}</p>
          ${need && need.evidence.length > 0 && html`<ul class="stack">${need.evidence.map((one) => html`<li class=${one.passed ? "ok" : "fail"}><${Glyph} name=${one.passed ? "ok" : "fail"} /> ${one.text}</li>`)}</ul>`}
          ${!readOnly && html`<label class="stack"><span class="muted">${question.in_words ? "Your answer" : "What has to change"}</span><textarea id="words" rows="3" value=${words} onInput=${(event) => setWords(event.target.value)} placeholder=${question.in_words ? "" : "Goes into the agent's next prompt, with your comments on lines"}></textarea></label>
            ${lines.length > 0 && html`<ul class="stack">${lines.map((one) => html`<li class="t-meta"><code>${one.file}:${one.line}</code> ${one.text}</li>`)}</ul>`}
            <div class="does">${question.in_words ? html`<button class="main" disabled=${busy || !words.trim()} onClick=${() => send("answer", { text: words.trim() })}>Send the answer</button>`
              : html`<button class="yes" disabled=${busy} onClick=${approve}><${Glyph} name="ok" />Approve</button><button class="no" disabled=${busy} onClick=${reject}>Reject${lines.length ? ` with ${plural(lines.length, "comment")}` : ""}</button>`}</div>`}</div></section>`
          : html`<section class="card"><${Empty} title="Nothing is asked here">It was answered, or the run went on. <a href=${runPath(runKey)}>Back to the run</a><//></section>`}
        ${evidence.length > 0 && html`<section class="card"><header><h2>Evidence</h2></header><div class="body"><${Checks} evidence=${[...evidence].reverse()} /></div></section>`}
        ${detail.data && detail.data.feedback.length > 0 && html`<section class="card"><header><h2>Said before</h2></header><div class="body"><${Feedback} feedback=${detail.data.feedback} /></div></section>`}
        ${detail.data && detail.data.more && detail.data.more.summary && html`<section class="card"><header><h2>The agent says</h2></header><div class="body words">${detail.data.more.summary}</div></section>`}</div></div></main>`;
}
