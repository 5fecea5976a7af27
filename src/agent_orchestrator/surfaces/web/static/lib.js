// What every part of the page uses: the parts of the framework, requests, words for numbers and times, tones of a status.
export { h, html, render, Component, useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback } from "./vendor/preact-htm.js";

const TOKEN = "orc-token";

/** Keep the token that the link brought, and take it out of the address. */
export function takeToken() {
  const found = /(?:^#|&)token=([^&]+)/.exec(location.hash);
  if (!found) return;
  try { localStorage.setItem(TOKEN, decodeURIComponent(found[1])); } catch { /* Without storage this tab can only read. */ }
  history.replaceState(history.state, "", location.pathname + location.search);
}

class Problem extends Error {
  constructor(status, code, message) { super(message); this.status = status; this.code = code; }
}

async function answer(response) {
  let body = null;
  try { body = await response.json(); } catch { /* Not ours: the status has to do. */ }
  if (response.ok && body) return body;
  const error = body && body.error;
  throw new Problem(response.status, error ? error.code : "unknown", error ? error.message : `The server answered with status ${response.status}.`);
}

const NOT_THERE = "The server does not answer: is `orc web` still running?";

export async function get(path, signal) {
  let response;
  try { response = await fetch(path, { signal, credentials: "same-origin" }); } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "away", NOT_THERE);
  }
  return answer(response);
}

export async function post(path, body) {
  let token = "";
  try { token = localStorage.getItem(TOKEN) || ""; } catch { /* The server says what is missing. */ }
  let response;
  try {
    response = await fetch(path, { method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json", "X-Orc-Token": token }, body: JSON.stringify(body) });
  } catch { throw new Problem(0, "away", NOT_THERE); }
  return answer(response);
}

/** An id that was never used; crypto.randomUUID is missing on pages that come over plain HTTP from another machine. */
export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const direct = (key, directive, fields = {}) => post(`/api/runs/${enc(key)}/directives`, { id: newId(), directive, ...fields });

export const enc = encodeURIComponent;
export const runPath = (key, rest = "") => `/run/${enc(key)}${rest}`;
export const unitPath = (key, unit) => runPath(key, `/unit/${enc(unit)}`);
export const reviewPath = (key, unit) => runPath(key, `/review/${enc(unit)}`);

// Numbers and times
export const US = 1e6;
export function money(usd) {
  if (usd === null || usd === undefined) return "–";
  return usd >= 100 ? `$${usd.toFixed(0)}` : usd > 0 && usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}
export function count(n) {
  if (n === null || n === undefined) return "–";
  for (const [size, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (n >= size) return `${(n / size).toFixed(n >= size * 100 ? 0 : 1)}${name}`;
  return String(n);
}
export function lasts(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${String(Math.floor(seconds % 60)).padStart(2, "0")}s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")}m`;
  return `${Math.floor(seconds / 86400)}d ${Math.floor((seconds % 86400) / 3600)}h`;
}
/** The time that a unit took, or takes so far; a dash for one that has not begun. */
export const took = (unit) => (unit.started_us && (unit.until_us || nowUs()) > unit.started_us ? lasts(((unit.until_us || nowUs()) - unit.started_us) / US) : "–");
let ahead = 0; // The server's clock less ours.
export const setClock = (nowUs) => { ahead = nowUs / 1000 - Date.now(); };
export const nowUs = () => (Date.now() + ahead) * 1000;
export function age(us) {
  const seconds = Math.max(0, (nowUs() - us) / US);
  for (const [size, name] of [[86400, "d"], [3600, "h"], [60, "m"]]) if (seconds >= size) return `${Math.floor(seconds / size)}${name} ago`;
  return seconds < 5 ? "now" : `${Math.floor(seconds)}s ago`;
}
export const clock = (us) => (us ? new Date(us / 1000).toLocaleTimeString([], { hour12: false }) : "–");
export const moment = (us) => (us ? new Date(us / 1000).toLocaleString([], { hour12: false }) : "–");
export const fromIso = (text) => (text ? Date.parse(text) * 1000 : null);
export const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
export const said = (status) => String(status || "").replaceAll("_", " ").toLowerCase();

// Tones: one for each meaning that a status can have.
const TONES = [
  ["fail", /fail|abort|error|stuck|oscillat|exceed|reached|lost|conflict|red$|refused|timed|denied|limit$|budget/],
  ["park", /park|rate|held/],
  ["wait", /human|asks|paus|approval|question|drain|stopping/],
  ["run", /progress|running|work|develop|qa|review|merging|retry|verif|check|plan(?:ning|$)|active|started/],
  ["ok", /complet|done|merged|pass|success|approved|landed|closed|ok|finished/],
];
export function tone(status) {
  const text = said(status);
  for (const [name, words] of TONES) if (words.test(text)) return name;
  return "idle";
}
export function runTone(run) {
  if (run.stop === "rate_limited") return "park";
  if (run.asks && run.asks.length && !run.ended) return "wait";
  if (run.status === "running") return run.driven_by ? "run" : "idle";
  if (run.status === "waiting") return "wait";
  return run.status === "paused" ? "idle" : tone(run.status);
}
export function runSays(run) {
  if (run.stop === "rate_limited") return "parked";
  if (run.asks && run.asks.length && !run.ended) return "needs you";
  if (run.status === "running" && !run.driven_by) return run.queued ? "queued" : "not running";
  return said(run.status);
}
export const groupOf = (run) => {
  const t = runTone(run);
  return t === "wait" && run.asks.length ? "needs" : t === "park" ? "parked" : !run.ended ? "active" : t === "ok" ? "done" : "failed";
};
