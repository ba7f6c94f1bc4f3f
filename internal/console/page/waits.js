// Who waits for whom, over all locks that are waited for.
import { call, listed, Refusal } from "./api.js";
import { age, seconds, stamped, visible, who } from "./words.js";

const most = 300; // locks that are looked into, those with the most contenders first

const lock = "sidekeeper.lock.v1.LockService";
const party = (one) => `${one.owner}\u0000${one.identity ?? ""}`;

// edges are the waits, each {lock, waiter, holders}, and how many locks could not be looked into.
async function edges() {
  const contended = (await listed(`${lock}/List`, {}, "locks")).filter((one) => one.contenders > 1);
  contended.sort((a, b) => b.contenders - a.contenders);
  const found = [];
  let refused = 0;
  for (let at = 0; at < Math.min(most, contended.length); at += 3) {
    for (const view of await Promise.all(contended.slice(at, at + 3).map(viewOf))) {
      if (view instanceof Refusal) {
        if (++refused === Math.min(most, contended.length)) throw view;
        continue;
      }
      for (const waiter of stamped(view).waiters ?? []) found.push({ lock: view.name, waiter, holders: view.holders ?? [] });
    }
  }
  return { found, refused };
}

// viewOf is a lock's view, or why it may not be seen.
async function viewOf(one) {
  try {
    return (await call(`${lock}/Get`, { name: one.name })).view;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

// chain follows whom the holder itself waits for, until that is nobody, or somebody who is in the chain already.
function chain(edge, byWaiter) {
  const words = [];
  const met = new Set([party(edge.waiter)]);
  for (let next = edge; next && next.holders.length; ) {
    const holder = next.holders[0];
    words.push(who(holder));
    if (met.has(party(holder))) return { words, circle: met.size > 1 && holder.owner !== undefined && holder.owner !== "" };
    met.add(party(holder));
    next = byWaiter.get(party(holder));
    if (next) words.push(`waits for ${visible(next.lock)} of`);
  }
  return { words, circle: false };
}

const circles = { column: 3, down: false }; // first: that column sorts them so

export const waits = {
  id: "waits", title: "Waits", key: (row) => row.name, order: circles, empty: "No caller waits for a lock.",
  list: async () => {
    const { found, refused } = await edges();
    waits.note = refused === 0 ? "" : `and ${refused} locks that could not be read`;
    const byWaiter = new Map(found.map((edge) => [party(edge.waiter), edge]));
    return found.map((edge, index) => ({ ...edge, ...chain(edge, byWaiter), name: `${edge.lock}\u0000${index}` }));
  },
  alarm: (rows) => {
    const stuck = rows.filter((row) => row.circle).length;
    return stuck === 0 ? "" : `${stuck} in a circle`;
  },
  columns: [
    { title: "who", className: "name", text: (row) => who(row.waiter), sort: (row) => row.waiter.owner ?? "" },
    { title: "for", className: "number", text: (row) => age(row.waiter), sort: (row) => seconds(row.waiter.age) },
    { title: "lock", className: "name", text: (row) => visible(row.lock), sort: (row) => row.lock },
    { title: "held by", className: "name wide", text: (row) => (row.circle ? "CIRCLE: " : "") + row.words.join(" "), sort: (row) => (row.circle ? "" : row.words.join(" ")) },
  ],
  matches: (row, words) => `${row.lock} ${row.waiter.owner} ${row.words.join(" ")}`.toLowerCase().includes(words),
  opens: (row) => ["locks", row.lock],
};
