// Why callers wait for a lock: whom they wait for, and whom those wait for at other locks, whichever sidecar they came through.
import { at } from "./address.js";
import { again, call, Refusal } from "./api.js";
import { notes } from "./kinds.js";
import { List } from "./list.js";
import { age, element, named, seconds, time, visible, who } from "./words.js";

const lease = (one) => (one.lease ? ` (lease ${visible(one.lease)})` : "");

const columns = [
  { title: "lock", className: "name", text: (row) => visible(row.lock), to: (row) => at("locks", row.lock) },
  { title: "state", className: "state", text: (row) => `${row.state}${row.circle ? ", CIRCLE" : ""}` },
  { title: "who", className: "name", text: who, to: (row) => (row.lease ? at("leases", row.lease) : undefined) },
  { title: "for", className: "number wide", text: age },
  { title: "waits for", className: "name wide", text: (row) => row.waitsFor.map(visible).join(", "),
    to: (row) => (row.waitsFor.length === 1 ? at("locks", row.waitsFor[0]) : undefined) },
  { title: "notes", className: "wide", text: (row) => [contact(row), notes(row)].filter(Boolean).join(", ") },
];

// Of a lease at another sidecar nobody here knows whether it is suspended.
const contact = (row) => (row.suspended ? "suspended" : row.suspended === undefined && !row.foreign ? "at another sidecar" : "");

// explain shows in the details of a lock, until they are closed, who waits there and why.
export function explain(name, signal) {
  const circles = element("p", { role: "status", class: "bad-text" });
  const usual = element("ul", { class: "quiet" });
  const list = new List({ label: "Who waits for whom", columns, key: (row) => row.line, empty: "loading" });
  list.node.classList.add("inner");
  list.view.setAttribute("tabindex", "0"); // so that it can be scrolled with the keyboard
  again(() => !signal.aborted, async () => {
    try {
      const explained = await call("sidekeeper.lock.v1.LockService/Explain", { name });
      if (!signal.aborted) show(explained, { circles, usual, list });
      return true;
    } catch (error) {
      circles.textContent = error instanceof Refusal ? error.message : "the sidecar does not answer";
      list.empty = "This is not known.";
      list.draw();
      list.node.classList.add("stale");
      return false;
    }
  });
  const section = element("section", { "aria-label": "Why callers wait" }, element("h3", {}, "Who waits for whom"), circles, list.node, usual);
  section.addEventListener("older", () => list.draw());
  return section;
}

function show(explained, { circles, usual, list }) {
  const locks = explained.locks ?? [];
  const words = (explained.cycles ?? []).map(({ links }) => `CIRCLE: ${links.map(link).join(", ")}. None of them goes on until one gives something up.`);
  if (explained.incomplete) words.push("There is more than is shown.");
  if (circles.textContent !== words.join(" ")) circles.textContent = words.join(" ");
  usual.replaceChildren(...locks.flatMap(linesOf).map((line) => element("li", {}, line)));
  list.node.classList.remove("stale");
  const rows = rowsOf(locks, new Set((explained.cycles ?? []).flatMap(({ links }) => links.map((one) => one.lease))));
  list.node.style.setProperty("--rows", Math.min(10, Math.max(1, rows.length)));
  list.empty = "No caller waits.";
  list.show(rows);
}

const link = (one) => `${named(one.owner)}${lease(one)} waits for ${visible(one.waitsFor)}`;

function linesOf({ name, usualHold, waitersOmitted }) {
  const lines = [];
  if (usualHold) lines.push(`${visible(name)} is usually held for ${time(seconds(usualHold.median))}, at most ${time(seconds(usualHold.longest))}`);
  if (waitersOmitted) lines.push(`${waitersOmitted} more wait for ${visible(name)}`);
  return lines;
}

// rowsOf are all callers at these locks, if one of them waits.
function rowsOf(locks, inCircle) {
  if (!locks.some((lock) => lock.waiters?.length)) return [];
  const now = performance.now();
  const row = (lock, state) => ({ contender, lease = "", waitsFor = [], suspended }) =>
    ({ ...contender, lock: lock.name, state, waitsFor, suspended, circle: inCircle.has(lease), lease, at: now });
  const all = locks.flatMap((lock) => [...(lock.holders ?? []).map(row(lock, "holds")), ...(lock.waiters ?? []).map(row(lock, "waits"))]);
  return all.map((one, place) => ({ ...one, line: `${one.lock}\u0000${one.token || place}` })); // what may not be read has no token
}
