// The small parts that all pages are made of.
import { html, useState, useEffect, useRef, useCallback, age, said, tone, get, runTone, runSays } from "./lib.js";

const GLYPHS = {
  ok: "M3 8.5l3.2 3.2L13 4.8", fail: "M4 4l8 8M12 4l-8 8", wait: "M8 3.5v5.2M8 12.2v.1", park: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M8 5v3.2l2 1.3",
  run: "M8 2.5a5.5 5.5 0 1 1-5.2 3.7", idle: "M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10", pause: "M5.5 3.5v9M10.5 3.5v9", skip: "M4 8h8", copy: "M6 6h7v7H6zM10 6V3H3v7h3",
  close: "M4 4l8 8M12 4l-8 8", more: "M3.5 8h.1M8 8h.1M12.4 8h.1", sun: "M8 5a3 3 0 1 0 0 6a3 3 0 1 0 0-6M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M12.6 3.4l-.7.7M4.1 11.9l-.7.7",
  moon: "M13 9.5A5.5 5.5 0 1 1 6.5 3a4.3 4.3 0 0 0 6.5 6.5", auto: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11", help: "M6 6.2a2 2 0 1 1 2.6 1.9c-.5.2-.6.6-.6 1.2M8 11.6v.1M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 1 0 0-12.4",
  prev: "M10 3.5L5.5 8l4.5 4.5", next: "M6 3.5L10.5 8L6 12.5", plus: "M8 3.5v9M3.5 8h9", minus: "M3.5 8h9", fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3", back: "M7 4L3 8l4 4M3 8h10", send: "M3 8h9M8.5 4.5L12 8l-3.5 3.5", link: "M6.5 9.5l3-3M5 7.5L3.5 9a2.5 2.5 0 0 0 3.5 3.5L8.5 11M7.5 5L9 3.5A2.5 2.5 0 0 1 12.5 7L11 8.5",
};

export const Glyph = ({ name, spin }) => html`<svg class=${`glyph${spin ? " spin" : ""}`} viewBox="0 0 16 16" aria-hidden="true"><path d=${GLYPHS[name] || GLYPHS.idle} /></svg>`;

export const Badge = ({ status, kind, words }) => {
  const t = kind || tone(status);
  return html`<span class=${`badge ${t}`}><${Glyph} name=${t} spin=${t === "run"} />${words || said(status)}</span>`;
};
export const RunBadge = ({ run }) => html`<${Badge} kind=${runTone(run)} words=${runSays(run)} />`;

/** A part of a whole in segments: [[tone, amount], …]. */
export const Bar = ({ parts, total, label }) => html`<span class="bar" role="img" aria-label=${label}>
  ${parts.map(([kind, amount]) => amount > 0 && html`<i class=${`b-${kind}`} style=${{ width: `${Math.min(100, (100 * amount) / Math.max(1e-9, total))}%` }}></i>`)}</span>`;

let ticking = null;
const tickers = new Set();
/** Draw again every few seconds: ages and durations move without news. */
export function useTick(fast = false) {
  const [, again] = useState(0);
  useEffect(() => {
    const one = { fast, again: () => again((n) => n + 1) };
    tickers.add(one);
    if (!ticking) {
      let n = 0;
      ticking = setInterval(() => { n += 1; for (const t of tickers) if (t.fast || n % 5 === 0) t.again(); }, 1000);
    }
    return () => tickers.delete(one);
  }, [fast]);
}

export function Age({ us }) {
  useTick();
  return html`<time title=${new Date(us / 1000).toLocaleString()}>${age(us)}</time>`;
}

/** Load something and keep it; `again` loads it anew and keeps what is there meanwhile. */
export function useLoad(path, deps = []) {
  const [found, set] = useState({ path: null, data: null, error: null });
  const current = useRef(null);
  const again = useCallback(async () => {
    if (!path) return;
    if (current.current) current.current.abort();
    const mine = (current.current = new AbortController());
    try {
      const data = await get(path, mine.signal);
      if (!mine.signal.aborted) set({ path, data, error: null });
    } catch (error) {
      if (error.name !== "AbortError") set((old) => ({ path, data: old.path === path ? old.data : null, error }));
    }
  }, [path]);
  useEffect(() => { again(); return () => current.current && current.current.abort(); }, [again, ...deps]);
  return { data: found.path === path ? found.data : null, stale: found.data, error: found.path === path ? found.error : null, again, set };
}

export const Loading = ({ what = "Loading" }) => html`<div class="loading" role="status">${what} …</div>`;
export const Failed = ({ error }) => html`<div class="error-line" role="alert">${error.message}</div>`;
export const Empty = ({ title, children }) => html`<div class="empty"><div class="big">${title}</div><div>${children}</div></div>`;

/** Load, or say why not, or show. */
export const Loaded = ({ of, what, children }) => (of.data ? children(of.data) : of.error ? html`<${Failed} error=${of.error} />` : html`<${Loading} what=${what} />`);

/** A component whose module is loaded when it is first shown. */
export function lazily(load) {
  let Part = null;
  return function Lazy(props) {
    const [, again] = useState(0), [error, fail] = useState(null);
    useEffect(() => { if (!Part) load().then((found) => { Part = found; again((n) => n + 1); }, fail); }, []);
    return Part ? html`<${Part} ...${props} />` : error ? html`<${Failed} error=${error} />` : html`<${Loading} />`;
  };
}

// Messages
const toasts = { list: [], hears: null, n: 0 };
export function toast(text, bad = false) {
  const id = ++toasts.n;
  toasts.list = [...toasts.list.slice(-3), { id, text, bad }];
  if (toasts.hears) toasts.hears(toasts.list);
  setTimeout(() => { toasts.list = toasts.list.filter((one) => one.id !== id); if (toasts.hears) toasts.hears(toasts.list); }, bad ? 12000 : 5000);
}
export function Toasts() {
  const [list, set] = useState([]);
  useEffect(() => { toasts.hears = set; return () => { toasts.hears = null; }; }, []);
  return html`<div class="toasts" role="status" aria-live="polite">${list.map((one) => html`<div key=${one.id} class=${`toast${one.bad ? " bad" : ""}`}>${one.text}</div>`)}</div>`;
}

// Dialogs: one at a time, answered with the fields or with null.
const dialogs = { hears: null };
/** Ask: {title, text, fields: [{name, label, kind: text|area|check|select, value, required, options}], yes, danger}. */
export const ask = (question) => new Promise((resolve) => dialogs.hears({ ...question, resolve }));
export function Dialogs() {
  const [question, set] = useState(null);
  const box = useRef(null);
  useEffect(() => { dialogs.hears = set; return () => { dialogs.hears = null; }; }, []);
  useEffect(() => {
    if (!question || !box.current || box.current.open) return;
    box.current.showModal();
    const first = box.current.querySelector("textarea, input, select") || box.current.querySelector("button.yes-button");
    if (first) first.focus();
  }, [question]);
  if (!question) return null;
  const end = (found) => { box.current.close(); set(null); question.resolve(found); };
  const submit = (event) => {
    event.preventDefault();
    const form = event.target, found = {};
    for (const field of question.fields || []) found[field.name] = field.kind === "check" ? form.elements[field.name].checked : form.elements[field.name].value;
    end(found);
  };
  return html`<dialog ref=${box} aria-labelledby="dialog-title" onCancel=${(event) => { event.preventDefault(); end(null); }} key=${question.title}>
    <form onSubmit=${submit}>
      <h1 id="dialog-title">${question.title}</h1>
      ${question.text && html`<p class="muted words">${question.text}</p>`}
      ${(question.fields || []).map((field) => html`<label class=${field.kind === "check" ? "check" : ""} key=${field.name}>
        ${field.kind === "check" ? html`<input type="checkbox" name=${field.name} defaultChecked=${field.value} /> ${field.label}` : html`${field.label}
          ${field.kind === "area" ? html`<textarea name=${field.name} required=${field.required} placeholder=${field.hint || ""} rows="4" defaultValue=${field.value || ""}></textarea>`
            : field.kind === "select" ? html`<select name=${field.name} defaultValue=${field.value}>${field.options.map(([value, text]) => html`<option value=${value} selected=${value === field.value}>${text}</option>`)}</select>`
            : html`<input name=${field.name} required=${field.required} defaultValue=${field.value || ""} placeholder=${field.hint || ""} autocomplete="off" />`}`}
      </label>`)}
      <div class="does"><button type="button" onClick=${() => end(null)}>Cancel</button>
        <button type="submit" class=${`yes-button ${question.danger ? "danger" : "main"}`}>${question.yes || "OK"}</button></div>
    </form></dialog>`;
}

/** Send a directive and say what came of it. */
export async function doing(promise) {
  try {
    const done = await promise;
    if (done.message) toast(done.message);
    return done;
  } catch (error) {
    toast(error.message, true);
    return null;
  }
}

export function Copy({ text }) {
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); toast("Copied."); } catch { toast("The browser does not let this page copy; select the text.", true); }
  };
  return html`<div class="copy"><code tabindex="0">${text}</code><button class="plain icon" aria-label="Copy" title="Copy" onClick=${copy}><${Glyph} name="copy" /></button></div>`;
}

export function Menu({ label, items }) {
  const [open, set] = useState(false);
  const box = useRef(null);
  useEffect(() => {
    if (!open) return undefined;
    const away = (event) => { if (!box.current.contains(event.target)) set(false); };
    const escape = (event) => { if (event.key === "Escape") { set(false); event.stopPropagation(); } };
    document.addEventListener("pointerdown", away);
    document.addEventListener("keydown", escape, true);
    return () => { document.removeEventListener("pointerdown", away); document.removeEventListener("keydown", escape, true); };
  }, [open]);
  if (!items.length) return null;
  return html`<div class="menu" ref=${box}><button class="icon" aria-label=${label} aria-expanded=${open} aria-haspopup="true" onClick=${() => set(!open)}><${Glyph} name="more" /></button>
    ${open && html`<ul>${items.map(([text, act, kind]) => html`<li key=${text}><button class=${kind || ""} onClick=${() => { set(false); act(); }}>${text}</button></li>`)}</ul>`}</div>`;
}

/** Rows of one height, of which only those in sight are made. */
export function useWindow(total, height, extra = 8) {
  const box = useRef(null);
  const [range, set] = useState([0, 40]);
  useEffect(() => {
    const look = () => {
      if (!box.current) return;
      const top = box.current.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(-top / height) - extra), to = Math.min(total, Math.ceil((window.innerHeight - top) / height) + extra);
      set((old) => (old[0] === from && old[1] === to ? old : [from, to]));
    };
    look();
    window.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    return () => { window.removeEventListener("scroll", look); window.removeEventListener("resize", look); };
  }, [total, height]);
  return [box, range[0], Math.min(total, Math.max(range[1], range[0]))];
}
