// What all pages share: the address, the list of runs as the stream keeps it, and the keys.
import { useState, useEffect, useLayoutEffect, get, setClock } from "./lib.js";
import { live } from "./live.js";
import { toast } from "./ui.js";

// Routes
const routes = { hears: new Set() };
export function go(path, { replace = false } = {}) {
  if (path === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", path);
  for (const hear of routes.hears) hear();
  if (!replace) window.scrollTo(0, 0);
}
window.addEventListener("popstate", () => { for (const hear of routes.hears) hear(); });
document.addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target || link.origin !== location.origin) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
export function useRoute() {
  const [, again] = useState(0);
  useEffect(() => { const hear = () => again((n) => n + 1); routes.hears.add(hear); return () => routes.hears.delete(hear); }, []);
  const parts = location.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  return { parts, query: new URLSearchParams(location.search) };
}
/** Change what stands in the query and nothing else. */
export function setQuery(changes, replace = true) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) if (value === null || value === undefined || value === "") query.delete(name); else query.set(name, value);
  const text = query.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
  go(location.pathname + (text ? `?${text}` : ""), { replace });
}

// The list of runs, kept up to date by the stream.
const world = { at: "", runs: new Map(), needs: [], day: null, windows: [], session: null, error: null, loaded: false };
const hears = new Set();
let drawing = 0;
function changed() { if (!drawing) drawing = requestAnimationFrame(() => { drawing = 0; for (const hear of hears) hear(); }); }
export function useWorld() {
  const [, again] = useState(0);
  useEffect(() => { const hear = () => again((n) => n + 1); hears.add(hear); return () => hears.delete(hear); }, []);
  return world;
}
function take(found) {
  for (const run of found.runs) {
    const old = world.runs.get(run.key);
    if (!old || old.updated_us <= run.updated_us) world.runs.set(run.key, run);
  }
  for (const key of found.gone || []) world.runs.delete(key);
  if (found.day) world.day = found.day;
  if (found.windows) world.windows = found.windows;
}
let asking = 0;
export async function loadNeeds() {
  const mine = ++asking;
  try {
    const found = await get("/api/needs");
    if (mine === asking) { world.needs = found.needs; changed(); }
  } catch { /* The next change of a run asks again. */ }
}
export async function loadWorld() {
  try {
    const [session, found] = await Promise.all([world.session ? null : get("/api/session"), get("/api/runs")]);
    if (session) { world.session = session; setClock(session.now_us); }
    world.runs = new Map();
    take(found);
    Object.assign(world, { at: found.at, error: null, loaded: true });
    loadNeeds();
    live.start(found.at);
  } catch (error) {
    world.error = error;
    // Without a session no second try would end otherwise.
    if (error.status !== 401) setTimeout(loadWorld, 2000);
  }
  changed();
}
const asksOf = (run) => (run ? `${run.ended}|${run.asks.join(",")}|${run.status}` : "");
live.hear((message) => {
  if (message.type === "state") { changed(); return; }
  // What was measured before the stream was open was told to nobody.
  if (message.type === "open") loadNeeds();
  if (message.type !== "event") return;
  if (message.event === "runs") {
    const before = message.data.runs.map((run) => asksOf(world.runs.get(run.key)));
    take(message.data);
    // Several questions of one unit follow each other with the same words: a run that asks is looked at again whenever it moves.
    const moved = message.data.runs.some((run, i) => asksOf(run) !== before[i] || run.asks.length) || (message.data.gone || []).length;
    if (moved) loadNeeds();
    changed();
  } else if (message.event === "owners") {
    for (const [key, run] of world.runs) {
      const driven_by = message.data.driven[key] || null;
      if (run.repo === message.data.repo && !run.ended && run.driven_by !== driven_by) world.runs.set(key, { ...run, driven_by });
    }
    changed();
  } else if (message.event === "needs") {
    loadNeeds();
  } else if (message.event === "reset") {
    loadWorld();
  } else if (message.event === "problem") {
    if (world.session) world.session.repos = world.session.repos.map((one) => (one.repo === message.data.repo ? { ...one, problem: message.data.message } : one));
    changed();
  } else if (message.event === "job" && message.data.status !== "running") {
    toast(message.data.message, message.data.status === "failed");
  }
});

// Keys: pages say which they know; none counts while somebody types.
export const keymap = { page: {} };
export function useKeys(map) {
  // Before the page is painted: the next key may be pressed in the same moment.
  useLayoutEffect(() => { keymap.page = map; return () => { if (keymap.page === map) keymap.page = {}; }; });
}
export const KEYS = [["j / k", "next, previous row"], ["Enter", "open"], ["a", "approve what is in focus"], ["r", "reject what is in focus, with words"], ["← →", "one fact back or on, on a run's time bar"], ["Esc", "close the panel; back to now"], ["/", "search runs"], ["g", "go to the list of runs"], ["?", "these keys"]];
