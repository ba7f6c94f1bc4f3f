// The leases of the sidecar that the console asks, and what each of them has and waits for.
import { at } from "./address.js";
import { call, listed, Refusal } from "./api.js";
import { leases as numbered } from "./known.js";
import { age, pairs, seconds, several, time, visible, who } from "./words.js";

const ofKind = { lock: "locks", semaphore: "semaphores", member: "groups" };

// The name of a member stands behind that of its group.
const linked = (one) => ofKind[one.kind] && at(ofKind[one.kind], one.kind === "member" ? one.name.slice(0, one.name.lastIndexOf("/")) : one.name);

const possessions = (row, held) =>
  several((row.possessions ?? []).filter((one) => (one.held ?? false) === held).map((one) => `${one.kind} ${visible(one.name)}`));

const state = (row) => (row.suspended || row.state === "STATE_SUSPENDED" ? "suspended" : row.sleeping ? "sleeping" : "");

const words = (row) => [row.lease, row.owner, row.identity, state(row), ...(row.possessions ?? []).map((one) => one.name)];

const things = [
  { title: "kind", className: "state", text: (one) => one.kind },
  { title: "name", className: "name", text: (one) => visible(one.name), to: linked },
  { title: "for", className: "number", text: (one) => (one.for === undefined ? "" : age(one)) },
];

// elsewhere is a lease of another sidecar, of which only that is known which locks it waits for, and who it is there.
async function elsewhere(lease) {
  const { locks = [] } = await call("sidekeeper.lock.v1.LockService/Explain", { lease }).catch((error) => {
    throw /NOT_FOUND/.test(error.message) ? new Refusal("No lease of this number is known. It has ended, or it waits for no lock and is at another sidecar.") : error;
  });
  const possessions = [];
  let contender;
  for (const { name, holders = [], waiters = [] } of locks) {
    for (const party of [...holders, ...waiters].filter((one) => one.lease === lease)) {
      ({ contender } = party);
      possessions.push({ kind: "lock", name, held: holders.includes(party), for: seconds(contender.age) });
    }
  }
  return { ...contender, lease, elsewhere: true, possessions };
}

export const leases = {
  id: "leases", title: "Leases", note: "of this sidecar", key: (row) => row.name, empty: "No lease is open.",
  list: async () => {
    const all = await numbered();
    if (all) return all.map((one) => ({ ...one, at: performance.now(), age: `${one.age}s`, validFor: `${one.validFor}s` }));
    return (await listed("sidekeeper.lease.v1.LeaseService/List", {}, "leases")).map((one, index) => ({ ...one, name: `#${index}`, closed: true }));
  },
  columns: [
    { title: "lease", className: "state", text: (row) => row.lease ?? "" },
    { title: "owner", className: "name", text: who, sort: (row) => row.owner ?? "" },
    { title: "age", className: "number", text: age, sort: (row) => seconds(row.age) },
    { title: "valid for", className: "number spare", text: (row) => time(seconds(row.validFor)), sort: (row) => seconds(row.validFor) },
    { title: "state", className: "state spare", text: state, sort: state },
    { title: "has", className: "name wide", text: (row) => possessions(row, true) },
    { title: "waits for", className: "name wide", text: (row) => possessions(row, false) },
  ],
  order: { column: undefined }, // as they come: suspended ones first, then the oldest
  words,
  get: async (row) => (await leases.list()).find((one) => one.name === row.name) ?? elsewhere(row.name),
  facts: (got) => [
    ["owner", who(got)],
    ...(got.elsewhere ? [["sidecar", "another one: only what its lease waits for is known here"]] : [
      ["state", state(got) || "live"], ["age", age(got)], ["valid for", time(seconds(got.validFor))], ["timeout", time(got.ttl ?? 0)],
    ]),
    ...(got.metadata ? [["metadata", pairs(got.metadata)]] : []),
  ],
  parts: (got) => [true, false].map((held) => ({
    title: held ? "Has" : "Waits for", columns: things, empty: "nothing",
    rows: got.possessions.filter((one) => (one.held ?? false) === held).map((one) => ({ ...one, age: `${one.for}s`, at: performance.now() })),
  })),
};
