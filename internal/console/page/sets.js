// Sets of items: whom the plan gives each item to, who holds its lock, and what moves while a set is shown.
import { at } from "./address.js";
import { call, listed } from "./api.js";
import { age, clock, named, pairs, seconds, since, stamped, time, visible, who } from "./words.js";

const assignment = "sidekeeper.assignment.v1.AssignmentService";

const mostMoves = 200; // that are shown
const mostNamed = 5; // items of one state

// holding is what a holder says of itself. One that names no member took the lock without the set.
const holding = ({ member, owner }) => (member ? named(member) : `${owner ? named(owner) : "a holder without a name"} (no member)`);

// The states of an item, those first that a person should look at.
const states = ["differs", "unplanned", "no member", "not taken", "held"];

// state says whether the plan and the holder of the lock agree.
function state({ member, holder }) {
  if (!holder) return member ? "not taken" : "no member";
  if (!member) return "unplanned";
  return holder.member === member ? "held" : "differs";
}

// look compares a view with those before, and notes what has moved. The service does not tell since when an item is as it is: what has been so
// at each look is known to be so only since the first of them.
function look(seen, view) {
  const now = Date.now();
  const { items: before } = seen;
  seen.items = new Map();
  const rows = (view.items ?? []).map((one) => {
    const old = before.get(one.item) ?? {};
    const is = {
      state: state(one), since: now,
      planned: one.member ? visible(one.member) : old.planned, taken: one.holder ? holding(one.holder) : old.taken,
    };
    if (old.state === is.state) is.since = old.since;
    for (const what of before.has(one.item) ? ["planned", "taken"] : []) {
      if (old[what] !== is[what]) seen.moves.unshift({ what, item: one.item, from: old[what], to: is[what], when: now });
    }
    seen.items.set(one.item, is);
    return { item: one.item, planned: one.member, holder: one.holder, state: is.state, since: is.since };
  });
  seen.omitted += Math.max(0, seen.moves.length - mostMoves);
  seen.moves.length = Math.min(seen.moves.length, mostMoves);
  return { ...view, members: view.members ?? [], rows, seen };
}

// some names the first items of these states, and says since when the first of them has been seen like that.
function some({ rows }, ...wanted) {
  const found = rows.filter((one) => wanted.includes(one.state));
  if (found.length === 0) return "none";
  const names = found.slice(0, mostNamed).map((one) => visible(one.item)).join(", ");
  const oldest = found.reduce((least, one) => Math.min(least, one.since), Infinity);
  return `${found.length}: ${names}${found.length > mostNamed ? ", …" : ""}; seen so ${since((Date.now() - oldest) / 1000)}`;
}

// shares are the largest and the smallest share of those members that take items.
function shares({ members, membersOmitted }) {
  const taking = members.filter((one) => one.capacity).sort((a, b) => (b.items ?? 0) - (a.items ?? 0));
  if (taking.length === 0) return "no member takes items";
  const share = (one) => `${one.items ?? 0} items (${visible(one.member)})`;
  const [most, least] = [taking[0], taking[taking.length - 1]];
  return `largest ${share(most)}, smallest ${share(least)}${membersOmitted ? ", of the members that are shown" : ""}`;
}

const ago = (when) => time(Math.max(0, Date.now() - when) / 1000);
const holds = (got, member) => got.rows.filter((one) => one.holder?.member === member).length;
const count = (title, field) => ({ title, className: "number", text: (row) => row[field] ?? 0, sort: (row) => row[field] ?? 0 });
const rowsOf = (sets) => sets.map((one) => ({ ...one, name: one.set }));

export const sets = {
  id: "sets", title: "Sets", key: (row) => row.name,
  empty: "There is no set of items. To define one: sidekeeper assign define orders --count 6",
  list: async (tell) => rowsOf(await listed(`${assignment}/List`, {}, "sets", tell && ((early) => tell(rowsOf(early))))),
  columns: [
    { title: "name", className: "name", text: (row) => visible(row.name), sort: (row) => row.name },
    { ...count("items", "items"), text: (row) => row.items ?? "not readable" },
    count("members", "members"),
    count("unassigned", "unassigned"),
    { title: "for", className: "number wide", text: (row) => (row.shortFor ? time(seconds(row.shortFor)) : "–"), sort: (row) => seconds(row.shortFor) },
    { title: "plan's age", className: "number wide", text: (row) => (row.age ? time(seconds(row.age)) : "–"), sort: (row) => seconds(row.age) },
  ],
  get: async (row) => { // the row is one opening of the details, for as long as which it remembers
    const { view } = await call(`${assignment}/Get`, { set: row.name, holders: true });
    row.seen ??= { begun: new Date(), items: new Map(), moves: [], omitted: 0 };
    return look(row.seen, stamped(view));
  },
  facts: (got) => [
    ["plan", got.age ? `written ${time(seconds(got.age))} ago` : "none yet"], ["shares", shares(got)],
    ["without a member", some(got, "no member", "unplanned") + (got.shortFor ? `, for ${time(seconds(got.shortFor))}` : "")], ["plan and holder differ", some(got, "differs", "unplanned")],
    ["planned, not taken", some(got, "not taken")],
  ],
  parts: (got) => [{
    title: "Members", rows: got.members, omitted: got.membersOmitted, columns: [
      { title: "member", className: "name", text: (one) => visible(one.member) },
      { title: "holds", className: "number", text: (one) => `${holds(got, one.member)} of ${one.items ?? 0}` },
      { title: "takes", className: "number", text: (one) => (one.capacity ? `≤ ${one.capacity}` : "drained") },
      { title: "owner", className: "name", text: who },
      { title: "for", className: "number wide", text: age },
      { title: "notes", className: "spare", text: (one) => pairs(one.metadata) },
    ],
  }, {
    title: "Items", rows: got.rows, columns: [
      { title: "item", className: "name", text: (one) => visible(one.item), to: (one) => at("locks", `${got.set}/${one.item}`) },
      { title: "planned for", className: "name", text: (one) => visible(one.planned) },
      { title: "held by", className: "name", text: (one) => (one.holder ? holding(one.holder) : "–") },
      { title: "state", className: "state", text: (one) => one.state, sort: (one) => states.indexOf(one.state) },
      { title: "seen so for", className: "number", text: (one) => ago(one.since) },
      { title: "token", className: "number spare", text: (one) => one.holder?.fencingToken ?? "" },
    ],
  }, {
    title: `Moves since ${clock(got.seen.begun)}, the newest first`, rows: got.seen.moves, omitted: got.seen.omitted,
    empty: "none was seen", columns: [
      { title: "ago", className: "number", text: (one) => ago(one.when) },
      { title: "item", className: "name", text: (one) => visible(one.item) },
      { title: "what", className: "state", text: (one) => one.what },
      { title: "from", className: "name", text: (one) => one.from ?? "–" },
      { title: "to", className: "name", text: (one) => one.to },
    ],
  }],
};
