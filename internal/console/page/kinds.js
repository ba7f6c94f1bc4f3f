// What there is to show: how each kind is listed, in which columns, and how one of it is shown.
import { at } from "./address.js";
import { call, listed } from "./api.js";
import { askToClaim, claimed } from "./claims.js";
import { leaseOf, lookInto, wordsAt } from "./known.js";
import { leases } from "./leases.js";
import { schedules } from "./schedules.js";
import { sets } from "./sets.js";
import { age, pairs, several, stamped, visible, who } from "./words.js";

const lock = "sidekeeper.lock.v1.LockService";
const membership = "sidekeeper.membership.v1.MembershipService";
const semaphore = "sidekeeper.semaphore.v1.SemaphoreService";
const barrier = "sidekeeper.barrier.v1.BarrierService";
const items = "sidekeeper.queue.v1.QueueService";
const sequence = "sidekeeper.sequence.v1.SequenceService";
const config = "sidekeeper.config.v1.ConfigService";

export const breakHold = (name, token, reason) => call(`${lock}/Break`, { name, fencingToken: token, reason });
export const revoke = (name, reason, grace) => call(`${lock}/Revoke`, { name, reason, ...(grace === "" ? {} : { grace: `${grace}s` }) });

const name = { title: "name", className: "name", text: (row) => visible(row.name), sort: (row) => row.name };
const mode = (one) => ({ MODE_READ: "read", MODE_WRITE: "write" })[one.mode] ?? "";
const token = (one) => one.token ?? "";
export const notes = (one) => [one.claim && claimed(one.claim), one.foreign && "another client", one.revocationRequested && "asked to release", pairs(one.metadata)].filter(Boolean).join(", ");

// What a page of locks does not say is asked for as it is seen.
const views = new Map();

function seenLock(row, changed) {
  const known = views.get(row.name);
  if (known && performance.now() - known.at < 3000) return;
  views.set(row.name, { ...known, at: performance.now() });
  queue(async () => {
    try {
      views.set(row.name, { view: stamped((await call(`${lock}/Get`, { name: row.name })).view), at: performance.now() });
    } catch {
      views.delete(row.name); // it is asked for again when it is seen again
    }
    changed();
  });
}

// forget forgets the views of locks that are no more.
function forget(rows) {
  const names = new Set(rows.map((row) => row.name));
  for (const one of views.keys()) if (!names.has(one)) views.delete(one);
  return rows;
}

const viewOf = (row) => views.get(row.name)?.view;

// queue runs a few tasks at a time.
const waiting = [];
let running = 0;
function queue(task) {
  waiting.push(task);
  while (running < 3 && waiting.length) {
    running++;
    waiting.pop()().finally(() => { running--; if (waiting.length) queue(waiting.pop()); });
  }
}

const holders = (row) => viewOf(row)?.holders ?? [];

// contenders are the columns of those at a lock or a semaphore. Whom the sidecar knows leads to its lease.
const contenders = (kind, of) => [
  { title: "who", className: "name", text: who, to: (one) => lease(kind, of, one.token) },
  { title: "for", className: "number", text: age },
  { title: "token", className: "number wide", text: token },
  { title: "notes", className: "wide", text: (one) => [mode(one), one.permits && `${one.permits} permit${one.permits === 1 ? "" : "s"}`, notes(one)].filter(Boolean).join(", ") },
];

function lease(kind, of, token) {
  const number = leaseOf(kind, of, token);
  return number ? at("leases", number) : undefined;
}

const count = (title) => ({ title, className: "number", text: (row) => row[title] ?? 0, sort: (row) => row[title] ?? 0 });

export const kinds = [
  {
    id: "locks", title: "Locks", key: (row) => row.name, order: { column: 1, down: true },
    empty: "No lock is held or waited for. To hold one for a minute: sidekeeper lock run orders -- sleep 60",
    begin: { title: "Claim a lock…", act: () => askToClaim() },
    list: async (tell) => forget(await listed(`${lock}/List`, {}, "locks", tell)),
    words: (row) => [row.name, ...wordsAt(row.name)], lookInto,
    columns: [
      name,
      { title: "contenders", className: "number", text: (row) => row.contenders, sort: (row) => row.contenders },
      { title: "claims", className: "number wide", text: (row) => row.claims || "", sort: (row) => row.claims ?? 0 },
      { title: "held by", className: "name", text: (row) => several(holders(row).map(who)) },
      { title: "for", className: "number wide", text: (row) => (holders(row)[0] ? age(holders(row)[0]) : "") },
      { title: "waiting", className: "number wide", text: (row) => (viewOf(row) ? (viewOf(row).waiters ?? []).length + (viewOf(row).waitersOmitted ?? 0) : "") },
    ],
    seen: seenLock, mayBreak: (row) => /^[\w./-]{1,200}$/.test(row.name), explained: true,
    watch: (row) => [`${lock}/Watch`, { name: row.name }],
    parts: (view) => [
      { title: "Holders", rows: view.holders ?? [], columns: contenders("lock", view.name), breakable: true },
      { title: "Waiters, in the order of their turn", rows: view.waiters ?? [], omitted: view.waitersOmitted, columns: waiters(view) },
    ],
  },
  {
    id: "groups", title: "Groups", key: (row) => row.name, empty: "There is no group. To join one for a minute: sidekeeper members join web web-1 -- sleep 60",
    list: async () => (await listed(`${membership}/List`, {}, "groups")).map((one) => ({ ...one, name: one.group })),
    columns: [
      name,
      { title: "members", className: "number", text: (row) => row.members ?? 0, sort: (row) => row.members ?? 0 },
      { title: "notes", className: "wide", text: (row) => (row.permanent ? "permanent" : "") },
    ],
    watch: (row) => [`${membership}/Watch`, { group: row.name }],
    parts: (view, group) => [{
      title: "Members", rows: view.members ?? [], omitted: view.membersOmitted,
      columns: [{ title: "member", className: "name", text: (one) => visible(one.member) }, { title: "owner", className: "name", text: who, to: (one) => lease("member", `${group}/${one.member}`) },
        { title: "for", className: "number", text: age }, { title: "notes", className: "wide", text: (one) => one.text || notes(one) }],
    }],
  },
  {
    id: "semaphores", title: "Semaphores", key: (row) => row.name, empty: "There is no semaphore. To make one of three permits: sidekeeper semaphore create pool 3",
    list: (tell) => listed(`${semaphore}/List`, {}, "semaphores", tell),
    columns: [name, { title: "limit", className: "number", text: (row) => row.limit, sort: (row) => row.limit }],
    watch: (row) => [`${semaphore}/Watch`, { name: row.name }],
    parts: (view) => [
      { title: `Holders, of ${view.held ?? 0} of ${view.limit ?? 0} permits`, rows: view.holders ?? [], columns: contenders("semaphore", view.name) },
      { title: "Waiters, in the order of their turn", rows: view.waiters ?? [], omitted: view.waitersOmitted, columns: contenders("semaphore", view.name) },
    ],
  },
  {
    id: "queues", title: "Queues", key: (row) => row.name, empty: "No queue has items.",
    list: (tell) => listed(`${items}/List`, {}, "queues", tell),
    columns: [name, count("items"), count("taken"), count("delayed")],
  },
  {
    id: "barriers", title: "Barriers", key: (row) => row.name, empty: "No barrier is set, and no caller stands at a double barrier.",
    list: (tell) => listed(`${barrier}/List`, {}, "barriers", tell),
    columns: [name, { title: "kind", className: "state", text: (row) => (row.set ? "set" : "double") }, count("present"), count("inside")],
  },
  schedules,
  sets,
  {
    id: "sequences", title: "Sequences", key: (row) => row.name, empty: "There is no sequence. To make one: sidekeeper seq create invoices",
    list: (tell) => listed(`${sequence}/List`, {}, "sequences", tell),
    columns: [name, { title: "last issued", className: "number", text: (row) => (row.malformed ? "malformed" : row.lastIssued ?? "0"), sort: (row) => BigInt(row.lastIssued ?? 0) }],
    get: async (row) => call(`${sequence}/Get`, { name: row.name }),
    facts: (got) => [["last issued", got.lastIssued ?? "0"], ["incarnation", got.incarnation]],
  },
  {
    id: "config", title: "Configuration", key: (row) => row.name, empty: "There is no key. To set one: sidekeeper config put shop/limit 250",
    list: async () => (await listed(`${config}/List`, { asText: true }, "entries")).map((one) => ({ ...one, name: one.key })),
    columns: [
      name,
      { title: "value", className: "name", text: (row) => visible((row.text ?? (row.value ? "(not text)" : "")).slice(0, 200)) },
      { title: "version", className: "number wide", text: (row) => row.version ?? 0, sort: (row) => row.version ?? 0 },
    ],
    get: async (row) => (await call(`${config}/Get`, { key: row.name, asText: true })).entry,
    facts: (got) => [["version", got.version ?? 0], ["revision", got.revision], ["created", got.createdRevision]],
    text: (got) => got.text ?? (got.value ? `${got.value}\n(base64)` : ""),
  },
  leases,
];

// waiters say whom each of them waits for: the one ahead of it that it cannot share with.
function waiters(view) {
  const queue = [...(view.holders ?? []), ...(view.waiters ?? [])];
  const place = new Map(queue.map((one, index) => [one, index]));
  const exclusive = [];
  let last = -1;
  queue.forEach((one, index) => { exclusive[index] = last; if (one.mode !== "MODE_READ") last = index; });
  const shown = contenders("lock", view.name);
  const ahead = (one) => queue[one.mode === "MODE_READ" ? exclusive[place.get(one)] : place.get(one) - 1];
  return [
    { title: "place", className: "place", text: (one) => place.get(one) + 1 - (view.holders ?? []).length },
    ...shown.slice(0, 2),
    { title: "waits for", className: "name", text: (one) => (ahead(one) ? who(ahead(one)) : "") },
    shown[3],
  ];
}
