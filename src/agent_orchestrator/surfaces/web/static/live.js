// One stream of events for all tabs: the tab that holds a lock reads it and tells the others. A browser opens six
// connections to a server over HTTP/1.1, and with a stream per tab the seventh tab would hang.
import { newId } from "./lib.js";

const EVENTS = ["runs", "run", "owners", "needs", "job", "problem", "reset"];
const me = newId();
const channel = "BroadcastChannel" in window ? new BroadcastChannel("orc-live") : null;
const listeners = new Set();
const wanted = new Map(); // By tab: its topics and when it said so.
let mine = ["runs"];
let leading = false, source = null, opened = "", place = "", state = "connecting", again = 0, timer = 0;

const tell = (message) => { for (const one of [...listeners]) one(message); };
const send = (message) => { if (channel) channel.postMessage({ tab: me, ...message }); };
function both(message) { send(message); tell(message); }

function setState(next) {
  if (state === next) return;
  state = next;
  both({ type: "state", state });
}

export const live = {
  get state() { return state; },
  get leading() { return leading; },
  /** Hear of events: {type: "event", event, data}, {type: "state"}, {type: "open", topics}. Returns how to stop. */
  hear(listener) { listeners.add(listener); return () => listeners.delete(listener); },
  /** Start after the first answer, from the place that it stands for. */
  start(at) { if (!place) place = at; want(); lead(); },
  /** Say what this tab shows. */
  show(topics) { mine = ["runs", ...topics]; want(); },
};

function want() {
  wanted.set(me, mine);
  send({ type: "want", topics: mine });
  if (leading) listen();
}

function topics() { return [...new Set([...wanted.values()].flat())].sort(); }

function listen(anew = false) {
  const text = topics().join(",");
  if (!anew && text === opened && source) return;
  if (source) source.close();
  clearTimeout(timer);
  opened = text;
  source = new EventSource(`/api/events?topics=${encodeURIComponent(text)}${place ? `&at=${encodeURIComponent(place)}` : ""}`);
  source.onopen = () => { again = 0; setState("live"); both({ type: "open", topics: text.split(",") }); };
  source.onerror = () => {
    setState("away");
    // A server that is not there closes the stream for good; one that is slow is tried again by the browser itself.
    if (source.readyState === EventSource.CLOSED) {
      again = Math.min(again + 1, 6);
      timer = setTimeout(() => listen(true), 250 * 2 ** again);
    }
  };
  for (const name of EVENTS) {
    source.addEventListener(name, (event) => {
      if (event.lastEventId) place = event.lastEventId;
      both({ type: "event", event: name, data: JSON.parse(event.data), at: event.lastEventId });
    });
  }
}

function lead() {
  if (leading) return;
  const begin = () => { leading = true; send({ type: "who" }); listen(); };
  // Without locks (plain HTTP from another machine) each tab reads for itself.
  if (!navigator.locks || !channel) { begin(); return; }
  navigator.locks.request("orc-live", () => { begin(); return new Promise(() => {}); });
}

if (channel) {
  channel.onmessage = ({ data }) => {
    if (data.type === "want") {
      wanted.set(data.tab, data.topics);
      if (leading) { send({ type: "state", state }); listen(); }
    } else if (data.type === "bye") {
      wanted.delete(data.tab);
    } else if (data.type === "who") {
      want();
    } else {
      if (data.type === "state") state = data.state;
      if (data.type === "event" && data.at) place = data.at;
      if (!leading) tell(data);
    }
  };
  window.addEventListener("pagehide", () => send({ type: "bye" }));
  // A page that comes back from the browser's cache has missed things.
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}
