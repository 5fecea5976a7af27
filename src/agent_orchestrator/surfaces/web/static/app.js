// The frame of all pages: the bar on top, the theme, the page that the address names.
import { html, render, useState, useEffect, takeToken, post } from "./lib.js";
import { live } from "./live.js";
import { Glyph, Toasts, Dialogs, Failed, ask, lazily, toast } from "./ui.js";
import { go, useRoute, useWorld, loadWorld, keymap, KEYS } from "./world.js";
import { Overview } from "./overview.js";

takeToken();

// The theme: the system's, light or dark.
const THEMES = ["", "light", "dark"];
function useTheme() {
  const [theme, set] = useState(document.documentElement.dataset.theme || "");
  const next = () => {
    const chosen = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    if (chosen) document.documentElement.dataset.theme = chosen; else delete document.documentElement.dataset.theme;
    try { if (chosen) localStorage.setItem("orc.theme", chosen); else localStorage.removeItem("orc.theme"); } catch { /* For this page only. */ }
    set(chosen);
    window.dispatchEvent(new Event("orc-theme"));
  };
  return [theme, next];
}

function Help({ close }) {
  return html`<dialog ref=${(box) => box && !box.open && box.showModal()} onClose=${close} aria-labelledby="keys-title"><form method="dialog">
    <h1 id="keys-title">Keys</h1><dl class="keys">${KEYS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
    <div class="does"><button class="main">Close</button></div></form></dialog>`;
}

// Pages that are not needed at first are loaded when they are.
const RunPage = lazily(() => import("./run.js").then((module) => module.RunPage));
const ReviewPage = lazily(() => import("./review.js").then((module) => module.ReviewPage));
const Analytics = lazily(() => import("./analytics.js").then((module) => module.Analytics));

const Locked = () => html`<div class="empty"><h1>This page is locked</h1>
  <p>Open the link that <code>orc web</code> printed in the terminal. A link works once; this browser then stays signed in.</p>
  <p>Is the link used up? Stop <code>orc web</code> with Ctrl-C and start it again: it prints a new one.</p></div>`;

/** Ask the server for another link, which works once, and show it. */
async function makeLink() {
  try {
    const { url } = await post("/api/links", {});
    await ask({ title: "Link for another device", text: "It works once. Whoever opens it may look and decide here, as you do.", yes: "Done", fields: [{ name: "url", label: "Link", value: url }] });
  } catch (error) { toast(error.message, true); }
}

const STATES = { live: ["ok", "Live"], connecting: ["idle", "Connecting"], away: ["fail", "No connection"] };
function Frame() {
  const { parts, query } = useRoute();
  const now = useWorld();
  const [theme, nextTheme] = useTheme();
  const [help, setHelp] = useState(false);
  useEffect(() => {
    const press = (event) => {
      const typing = event.target.closest && event.target.closest("input:not([type=range]), textarea, select, dialog");
      if (typing || event.metaKey || event.ctrlKey || event.altKey) return;
      const key = event.key;
      if (key === "?") setHelp(true);
      else if (key === "g") go("/");
      else if (keymap.page[key]) { if (keymap.page[key](event) === false) return; } else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  const [kind, words] = STATES[live.state] || STATES.connecting;
  const waiting = now.needs.length;
  useEffect(() => { document.title = `${waiting ? `(${waiting}) ` : ""}${parts[0] === "run" ? `${parts[1]} · ` : ""}orc`; });
  const page = parts[0] === "run" && parts[1]
    ? parts[2] === "review" && parts[3] ? html`<${ReviewPage} key=${`review ${parts[1]} ${parts[3]}`} runKey=${parts[1]} unit=${parts[3]} />`
      : html`<${RunPage} key=${`run ${parts[1]}`} runKey=${parts[1]} unit=${parts[2] === "unit" ? parts[3] : null} query=${query} />`
    : parts[0] === "analytics" ? html`<${Analytics} query=${query} />`
    : parts.length === 0 ? html`<${Overview} query=${query} />`
    : html`<main class="page"><h1>There is no such page</h1><p><a href="/">All runs</a></p></main>`;
  return html`
    <header class="top"><a class="brand" href="/" aria-label="orc: all runs"><img src="/static/icon.svg" alt="" />orc</a>
      <nav class="nav" aria-label="Pages"><a href="/" aria-current=${parts.length === 0 ? "page" : null}>Runs</a><a href="/analytics" aria-current=${parts[0] === "analytics" ? "page" : null}>Analytics</a></nav>
      <span class="grow"></span>
      ${now.session && now.session.read_only && html`<span class="tag">read only</span>`}
      <span class="link-state" role="status"><span class=${`dot ${kind}`}></span><span class="l-text">${words}</span></span>
      <button class="plain icon" onClick=${nextTheme} aria-label=${`Theme: ${theme || "as the system"}`} title=${`Theme: ${theme || "as the system"}`}><${Glyph} name=${theme === "dark" ? "moon" : theme === "light" ? "sun" : "auto"} /></button>
      ${now.session && !now.session.read_only && html`<button class="plain icon wide-only" onClick=${makeLink} aria-label="Link for another device" title="Link for another device"><${Glyph} name="link" /></button>`}
      <button class="plain icon wide-only" onClick=${() => setHelp(true)} aria-label="Keys" title="Keys (?)"><${Glyph} name="help" /></button></header>
    ${!now.error || now.loaded ? page : html`<main class="page">${now.error.status === 401 ? html`<${Locked} />` : html`<${Failed} error=${now.error} />`}</main>`}
    ${help && html`<${Help} close=${() => setHelp(false)} />`}<${Toasts} /><${Dialogs} />`;
}

loadWorld();
render(html`<${Frame} />`, document.getElementById("app"));
