// A unified diff, file by file, with a place for a comment on each line where comments are wanted.
import { html, useState, useMemo, enc } from "./lib.js";
import { Empty, Loaded, useLoad } from "./ui.js";

const SHOWN = 1500;

/** Parse a unified diff into [{path, status, added, removed, lines: [{kind, old, new, text}]}]. */
function parseDiff(text) {
  const files = [];
  let file = null, oldLine = 0, newLine = 0;
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ")) {
      const found = / b\/(.*)$/.exec(line);
      file = { path: found ? found[1] : line.slice(11), status: "M", added: 0, removed: 0, lines: [], header: true };
      files.push(file);
    } else if (!file) continue;
    else if (line.startsWith("@@")) {
      const found = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
      if (found) { oldLine = Number(found[1]); newLine = Number(found[2]); }
      file.header = false;
      file.lines.push({ kind: "hunk", text: line });
    } else if (file.header) {
      if (line.startsWith("new file")) file.status = "A";
      else if (line.startsWith("deleted file")) file.status = "D";
      else if (line.startsWith("rename to ")) { file.status = "R"; file.path = line.slice(10); }
      else if (line.startsWith("+++ b/")) file.path = line.slice(6);
      else if (line.startsWith("Binary files")) file.lines.push({ kind: "hunk", text: line });
    } else if (line.startsWith("+")) { file.added += 1; file.lines.push({ kind: "add", new: newLine++, text: line.slice(1) }); }
    else if (line.startsWith("-")) { file.removed += 1; file.lines.push({ kind: "del", old: oldLine++, text: line.slice(1) }); }
    else if (line.startsWith("\\")) file.lines.push({ kind: "hunk", text: line });
    else if (line !== "") file.lines.push({ kind: "same", old: oldLine++, new: newLine++, text: line.slice(1) });
  }
  return files;
}

const SIGNS = { add: "+", del: "−", same: " ", hunk: "" };

function Comment({ comment, save, drop }) {
  const [text, set] = useState(comment.text || "");
  return html`<form class="comment stack" onSubmit=${(event) => { event.preventDefault(); if (text.trim()) save(text.trim()); else drop(); }}>
    <label class="stack"><span class="muted">Comment on ${comment.file}:${comment.line}</span><textarea rows="2" ref=${(box) => box && !comment.text && !box.dataset.seen && (box.dataset.seen = "1", box.focus())} value=${text} onInput=${(event) => set(event.target.value)} placeholder="What has to change here"></textarea></label>
    <div class="does"><button class="main">Keep the comment</button><button type="button" class="plain" onClick=${drop}>Remove</button></div></form>`;
}

function File({ file, comments, setComments }) {
  const [open, set] = useState(file.lines.length < 600), [all, setAll] = useState(false);
  const key = (line) => `${file.path}:${line.kind === "del" ? "old" : "new"}:${line.kind === "del" ? line.old : line.new}`;
  const lines = all ? file.lines : file.lines.slice(0, SHOWN);
  return html`<section class="card diff-file" aria-label=${file.path}><header><button class="plain icon" aria-expanded=${open} aria-label=${`${open ? "Hide" : "Show"} ${file.path}`} onClick=${() => set(!open)}>${open ? "▾" : "▸"}</button><code class="grow clip strong">${file.path}</code>
      ${file.status !== "M" && html`<span class="tag">${{ A: "new", D: "deleted", R: "renamed" }[file.status]}</span>`}<span class="stats nowrap"><span class="plus">+${file.added}</span> <span class="minus">−${file.removed}</span></span></header>
    ${open && html`<div class="diff" tabindex="0" role="group" aria-label=${`Changes of ${file.path}`}>${lines.map((line, i) => {
      const at = key(line), comment = comments && comments[at];
      return html`<div key=${i}><div class=${`diff-line ${line.kind}`}><span class="mark">${comments && line.kind !== "hunk" && html`<button aria-label=${`Comment on line ${line.new ?? line.old} of ${file.path}`} onClick=${() => setComments({ ...comments, [at]: { file: file.path, line: line.kind === "del" ? line.old : line.new, side: line.kind === "del" ? "old" : "new", code: line.text, text: "", open: true } })}>+</button>`}</span>
        <span class="ln old">${line.old ?? ""}</span><span class="ln">${line.new ?? ""}</span><span><span class="sign">${SIGNS[line.kind]}</span>${line.text}</span></div>
        ${comment && (comment.open ? html`<${Comment} comment=${comment} save=${(text) => setComments({ ...comments, [at]: { ...comment, text, open: false } })} drop=${() => { const rest = { ...comments }; delete rest[at]; setComments(rest); }} />`
          : html`<div class="comment row"><span class="words grow">${comment.text}</span><button class="plain" onClick=${() => setComments({ ...comments, [at]: { ...comment, open: true } })}>Edit</button></div>`)}</div>`;
    })}${lines.length < file.lines.length && html`<button class="plain" onClick=${() => setAll(true)}>Show ${file.lines.length - lines.length} more lines</button>`}</div>`}</section>`;
}

export function Diff({ change, comments, setComments }) {
  const files = useMemo(() => parseDiff(change.text || ""), [change.text]);
  if (!files.length) return html`<div class="card"><div class="empty">Nothing changed.</div></div>`;
  return html`<div>${change.cut && html`<div class="note-line">The diff is long: only its beginning is shown; orc diff has all of it.</div>`}${files.map((file) => html`<${File} key=${file.path} file=${file} comments=${comments} setComments=${setComments} />`)}</div>`;
}

export const Sum = ({ change }) => html`<span class="stats">${(change.files || []).length} ${(change.files || []).length === 1 ? "file" : "files"} <span class="plus">+${change.added ?? "?"}</span> <span class="minus">−${change.removed ?? "?"}</span></span>`;

/** All changes of a run, or those of the unit whose panel is open. */
export function DiffTab({ runKey, unit }) {
  const found = useLoad(`/api/runs/${enc(runKey)}/diff${unit ? `?unit=${enc(unit)}` : ""}`);
  if (found.error) return html`<section class="card"><${Empty} title="No diff">${found.error.message}<//></section>`;
  return html`<div class="stack"><div class="row"><span class="muted grow">${unit ? `Changes of ${unit}` : "All changes of the run"}</span><button onClick=${found.again}>Read again</button></div>
    <${Loaded} of=${found} what="Reading the diff">${({ changes }) => (changes.length ? changes.map((change) => html`<div key=${change.unit || change.branch} class="stack"><div class="row wrap"><h2>${change.unit} ${change.branch && html`<code>${change.branch}</code>`}</h2><${Sum} change=${change} /></div><${Diff} change=${change} /></div>`) : html`<section class="card"><${Empty} title="Nothing changed" /></section>`)}<//></div>`;
}
