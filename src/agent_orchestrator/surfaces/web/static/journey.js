// A run as it is and as it was: loaded once, kept up to date by the stream, and folded back for the time bar.
import { useState, useEffect, useRef, useMemo, useCallback, get, enc, tone } from "./lib.js";
import { live } from "./live.js";

const NAMES = ["unit", "status", "needs", "attempts", "iteration", "started_us", "ended_us", "error", "title", "stage"];

/** The rows of the graph as objects; `asked` are the units that wait for a person. */
function unitsOf(graph, asked, statuses = null) {
  const index = (graph.columns || NAMES).reduce((all, name, i) => ({ ...all, [name]: i }), {});
  return graph.rows.map((row) => {
    const unit = {};
    for (const name of NAMES) unit[name] = row[index[name]];
    if (statuses) unit.status = statuses.get(unit.unit) || "pending";
    unit.tone = asked.has(unit.unit) ? "wait" : tone(unit.status);
    return unit;
  });
}

/** The status of each unit after a row of the journal. */
function statusesAt(history, row) {
  const found = new Map();
  for (const [at, unit, status] of history.moves) {
    if (at > row) break;
    found.set(history.units[unit], history.statuses[status]);
  }
  return found;
}

/** The history with the rows that follow it, or null where they do not: names are numbered in the order of all rows. */
function addHistory(history, news) {
  if (!news || !news.rows.length) return history;
  const last = history.rows.length ? history.rows[history.rows.length - 1][0] : 0;
  if (news.rows[0][0] !== last + 1) return null;
  return { ...history, units: [...history.units, ...news.units], statuses: [...history.statuses, ...news.statuses], kinds: [...history.kinds, ...news.kinds],
    rows: [...history.rows, ...news.rows], moves: [...history.moves, ...news.moves] };
}

/** Return {detail, graph, history, error, pulse}: the newest, whatever the time bar shows. */
export function useRun(key) {
  const [state, set] = useState({ detail: null, graph: null, history: null, error: null, pulse: 0 });
  const held = useRef(state), told = useRef(0);
  held.current = state;
  const base = `/api/runs/${enc(key)}`;
  const update = (change) => { held.current = { ...held.current, ...change }; set(held.current); };
  const load = useCallback(async () => {
    try {
      const [detail, graph, history] = await Promise.all([get(base), get(`${base}/graph`), get(`${base}/history`)]);
      update({ detail, graph, history, error: null, pulse: held.current.pulse + 1 });
      // A fact that was told while the answers were on their way is in none of them.
      if (told.current > detail.seq) load();
    } catch (error) { update({ error }); }
  }, [base]);
  const reload = useCallback(async (what) => {
    try { update({ [what]: await get(`${base}/${what}`) }); } catch { /* The next news loads it again. */ }
  }, [base]);
  useEffect(() => {
    live.show([`run:${key}`]);
    load();
    const stop = live.hear(async (message) => {
      if (message.type === "open" && message.topics.includes(`run:${key}`) && held.current.detail) {
        // What happened between the first answer and the opening of the stream was told to nobody.
        try { if ((await get(base)).seq > held.current.detail.seq) load(); } catch { /* The stream opens again. */ }
      } else if (message.type === "event" && message.event === "reset") load();
      else if (message.type === "event" && message.event === "runs" && held.current.detail) {
        // Who drives a run changes without a fact of its journal.
        const run = message.data.runs.find((one) => one.key === key), { detail } = held.current;
        if (run && run.driven_by !== detail.run.driven_by) update({ detail: { ...detail, run }, pulse: held.current.pulse + 1 });
      }
      else if (message.type === "event" && message.event === "run" && message.data.key === key) {
        const { data } = message, { detail, graph, history } = held.current;
        told.current = Math.max(told.current, data.seq || 0);
        if (!detail) return;
        if (data.gone) { update({ error: new Error(data.message), detail: null }); return; }
        if (data.seq < detail.seq) return;
        const rows = graph.rows.slice();
        for (const [index, row] of data.units || []) rows[index] = row;
        const again = new Set(data.reload || []), longer = addHistory(history, data.history);
        if (!longer) again.add("history");
        update({ detail: { ...detail, seq: data.seq, last_row: data.seq, run: data.run || detail.run, actions: data.actions || detail.actions, questions: data.questions || detail.questions },
          graph: { ...graph, rows }, history: longer || history, pulse: held.current.pulse + 1 });
        for (const part of ["graph", "history"]) if (again.has(part)) reload(part);
      }
    });
    return () => { stop(); live.show([]); };
  }, [key]);
  // Budget, points and details are not in the stream: they are read again when things have calmed down.
  useEffect(() => {
    if (!state.detail || state.pulse < 2) return undefined;
    const timer = setTimeout(async () => {
      try { const fresh = await get(base); if (fresh.seq >= held.current.detail.seq) update({ detail: fresh }); } catch { /* The next news tries again. */ }
    }, 700);
    return () => clearTimeout(timer);
  }, [state.pulse]);
  return { ...state, load };
}

/** The run as the page shows it: now, or after `row`: at once from the history, and whole as soon as the bar rests. */
export function useView(key, now, row) {
  const [past, setPast] = useState(null);
  const base = `/api/runs/${enc(key)}`;
  useEffect(() => {
    if (row === null) { setPast(null); return undefined; }
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const [detail, graph] = await Promise.all([get(`${base}?row=${row}`, stop.signal), get(`${base}/graph?row=${row}`, stop.signal)]);
        setPast({ row, detail, graph });
      } catch (error) { if (error.name !== "AbortError") setPast({ row, error }); }
    }, 120);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [base, row]);
  return useMemo(() => {
    if (!now.detail || !now.graph || !now.history) return null;
    const whole = row !== null && past && past.row === row && past.graph ? past : null;
    const detail = whole ? whole.detail : now.detail;
    const asked = new Set(row === null || whole ? detail.questions.map((one) => one.unit) : []);
    const units = whole ? unitsOf(whole.graph, asked) : unitsOf(now.graph, asked, row === null ? null : statusesAt(now.history, row));
    // In the past a unit has worked until that fact, not until now.
    const until = row === null ? null : (now.history.rows.findLast(([number]) => number <= row) || [0, null])[1];
    for (const unit of units) unit.until_us = unit.ended_us || (unit.tone === "idle" ? unit.started_us : until);
    return { row, until, detail, units, back: (whole || now).graph.back || [], whole: row === null || whole !== null, error: row !== null && past && past.row === row ? past.error : null };
  }, [now.detail, now.graph, now.history, past, row]);
}
