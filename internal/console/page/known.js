// What the sidecar's admin listener says of its leases. It alone knows them by the numbers that stand in the log.
import { own, Refusal } from "./api.js";

const fresh = 3000; // milliseconds
const rarely = 30000; // if it says nothing

let due = 0;
let answer = Promise.resolve(undefined);
let numbers = new Map(); // of leases, by what stands on them
let names = new Map(); // numbers of leases, by the locks that they hold or wait for

const key = (kind, name, token) => [kind, name, token].join("\u0000");

// state is what it says, or undefined if it does not: then the page goes without.
export function state() {
  if (performance.now() > due) {
    due = performance.now() + fresh;
    answer = own("/state").then(number, (error) => {
      due = performance.now() + rarely;
      if (error instanceof Refusal) return undefined;
      throw error;
    });
  }
  return answer;
}

function number(said) {
  numbers = new Map();
  names = new Map();
  for (const { kind, name, holders, waiters } of said.locks) {
    for (const one of holders) numbers.set(key(kind, name, one.token), one.lease);
    if (kind === "lock") names.set(name, [...holders, ...waiters].map((one) => one.lease));
  }
  for (const one of said.members) numbers.set(key("member", one.name, ""), one.lease);
  return said;
}

// leaseOf is the number of the lease that has a lock, permits or a member, as far as that is known by now.
export function leaseOf(kind, name, token = "") {
  if (performance.now() > due) state().catch(() => undefined);
  return numbers.get(key(kind, name, token));
}

// leases are all of them with what they have and wait for, if the listener tells of all.
export async function leases() {
  const said = await state();
  if (!said || said.counts.leases > said.leases.length) return undefined;
  const rows = new Map(said.leases.map((one) => [one.lease, { ...one, name: one.lease, identity: one.caller, possessions: [] }]));
  const give = (lease, possession) => rows.get(lease)?.possessions.push(possession);
  for (const { kind, name, holders, waiters } of said.locks) {
    for (const one of holders) give(one.lease, { kind, name, held: true, for: one.for });
    for (const one of waiters) give(one.lease, { kind, name, held: false, for: one.for });
  }
  for (const one of said.members) give(one.lease, { kind: "member", name: one.name, held: one.joined, for: one.for });
  return [...rows.values()];
}

// wordsAt are the owners, identities and numbers of leases of those at a lock, as far as they are known by now.
export const wordsAt = (lock) => [...(words[lock] ?? []), ...(names.get(lock) ?? [])];

let words = {};
let looked = -Infinity;
let looking = false;

// lookInto has the console look into all locks now and then, and says into how many of these it has not.
export function lookInto(locks, changed) {
  state().catch(() => undefined);
  if (!looking && performance.now() - looked > rarely) {
    looking = true;
    own("/who").then((all) => { words = all; }, () => { words = {}; })
      .finally(() => { looked = performance.now(); looking = false; changed(); });
  }
  const left = locks.filter((one) => !words[one.name]).length;
  return left === 0 ? "" : `${left.toLocaleString("en")} ${looking ? "still to look into" : "not looked into"}`;
}
