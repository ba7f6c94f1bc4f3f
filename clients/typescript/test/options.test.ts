/** Wrong options are refused at once: there is no sidecar in these tests but where one is started. */

import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { setTimeout as later } from "node:timers/promises";

import { Client, Commit, Jobs, LostError, type Sequence, fence } from "../src/index.js";
import { Locked } from "../src/nestjs.js";
import { startSidecar } from "../src/testing.js";
import { PATIENT, connected } from "./sidecar.js";

type Wrong = Record<string, unknown>;
/** What JavaScript makes of a type: every function takes everything. */
type Loose<T> = T extends (...given: never[]) => infer R
  ? (...given: unknown[]) => R extends Sequence ? Loose<R> : R
  : { readonly [Name in keyof T]: Loose<T[Name]> };
type Refusal = [call: (client: Loose<Client>) => unknown, said: string | RegExp, name?: string];

/** A client that finds no sidecar. */
const nowhere = new Client({ address: "unix:///nowhere/s.sock" });

async function refused([call, message, name = "TypeError"]: Refusal): Promise<void> {
  await assert.rejects(async () => Promise.resolve(call(nowhere as unknown as Loose<Client>)), { name, message });
}

const body = (): void => assert.fail("nothing is held");

/** Every call that takes options, with those that it has. */
const CALLS: [call: (client: Client, options: Wrong) => unknown, known: string][] = [
  [(c, o) => c.openLease(o), "ttl, owner, metadata, wait, signal"],
  [(c, o) => c.acquire("a", o), "mode, lease, wait, metadata, signal, onSuspended, onResumed, owner, lockDelay, detectDeadlock, onQueued, onRevocation"],
  [(c, o) => c.withLock("a", o, body), "mode, lease, wait, metadata, signal, onSuspended, onResumed, owner, lockDelay, detectDeadlock, onQueued, onRevocation, suspensionGrace"],
  [(c, o) => c.runWhileLeader("a", o, body), "mode, lease, wait, metadata, signal, onSuspended, onResumed, owner, lockDelay, detectDeadlock, onQueued, onRevocation, suspensionGrace"],
  [(c, o) => c.claim("a", 60, "x", o), "claimId, mode, wait, owner, metadata, signal"],
  [(c, o) => c.acquireAll(["a"], o), "lease, wait, metadata, signal, onSuspended, onResumed, owner, onQueued, onRevocation"],
  [(c, o) => c.withLocks(["a"], o, body), "lease, wait, metadata, signal, onSuspended, onResumed, owner, onQueued, onRevocation, suspensionGrace"],
  [(c, o) => c.acquireAll([{ name: "a", ...o }]), "name, mode"],
  [(c, o) => c.revoke("a", o), "reason, grace"],
  [(c, o) => c.share("a", o, body), "member, capacity, lease, owner, metadata, signal, drain, drainTimeout, onAssigned, onError"],
  [(c, o) => c.acquirePermits("a", o), "permits, numbered, quarantine, lease, wait, metadata, signal, onSuspended, onResumed, owner, onQueued, onRevocation"],
  [(c, o) => c.withPermits("a", o, body), "permits, numbered, quarantine, lease, wait, metadata, signal, onSuspended, onResumed, owner, onQueued, onRevocation, suspensionGrace"],
  [(c, o) => c.begin("a", "k", o), "perName, keep, skipLost, skipFailed, maxAttempts, lease, wait, metadata, signal, onSuspended, onResumed, owner, onQueued, onRevocation"],
  [(c, o) => c.once("a", "k", o, body), "perName, keep, skipLost, skipFailed, maxAttempts, lease, wait, metadata, signal, onSuspended, onResumed, owner, onQueued, onRevocation"],
  [(c, o) => c.resizeSemaphore("a", 1, o), "reason, grace"],
  [(c, o) => c.awaitBarrier("a", o), "signal, onWaiting"],
  [(c, o) => c.enterBarrier("a", 1, o), "lease, wait, metadata, signal, onSuspended, onResumed, owner, onWaiting"],
  [(c, o) => c.campaign("a", "b", o), "value, lease, wait, metadata, signal, onSuspended, onResumed, onCandidate, onYieldRequested"],
  [(c, o) => c.withLeadership("a", "b", o, body), "value, lease, wait, metadata, signal, onSuspended, onResumed, onCandidate, onYieldRequested, suspensionGrace"],
  [(c, o) => c.transferLeadership("a", "b", o), "reason, grace"],
  [(c, o) => c.join("a", "b", o), "lease, owner, metadata, onConflict, wait, signal"],
  [(c, o) => c.stayJoined("a", "b", { signal: AbortSignal.timeout(1), ...o }), "owner, metadata, signal, onJoined"],
  [(c, o) => c.sequence("a").next(o), "relaxed"],
  [(c, o) => c.sequence("a").nextRange(2, o), "relaxed"],
  [(c, o) => c.config.get("a", o), "linearizable"],
  [(_, o) => new Client(o), "address, credentials, logger"],
  [(c, o) => new Jobs(c, o), "owner, onError"],
  [(c, o) => new Jobs(c).locked("a", o, body), "holdAtLeast, suspensionGrace"],
  [(c, o) => new Jobs(c).once("a", "day", o, body), "perName, keep, skipLost, skipFailed, maxAttempts, wait"],
  [(_, o) => Locked("a", o), "holdAtLeast, suspensionGrace"],
  [(_, o) => startSidecar(o), "sessionTimeout"],
  [(_, o) => new fence.Gate({} as fence.Store, o), "locks, withoutTicket, verify, logger"],
]; // prettier-ignore

void test("an option that there is none of is refused, with those that there are", async () => {
  for (const [call, known] of CALLS) {
    await refused([() => call(nowhere, { waitt: 1 }), `there is no option "waitt"; the options are ${known}`]);
  }
});

void test("what is no object of options is refused", async () => {
  for (const [call, known] of CALLS.slice(0, 2)) {
    for (const [given, shown] of [
      [null, "null"],
      [5, "5"],
      ["x", "'x'"],
      [body, "[Function: body]"],
      [[], "[]"],
    ]) {
      const message = `options is ${shown as string}: an object with any of ${known}`;
      await refused([() => call(nowhere, given as unknown as Wrong), message]);
    }
  }
  const address = "options is 'localhost:7181': an object with any of address, credentials, logger";
  await refused([() => new Client("localhost:7181" as unknown as object), address]);
});

const SPAN = "a number of seconds from 0 to 315360000";
const NUMBER = "a whole number from 0 to 2147483647";
const MODES = 'one of "exclusive", "read", "write"';

/** Wrong values of acquire's options, and of those that only other calls have. */
const VALUES: Refusal[] = [
  [(c) => c.acquire("a", { mode: "rw" }), `mode is 'rw': ${MODES}`],
  [(c) => c.acquire("a", { mode: 2 }), `mode is 2: ${MODES}`],
  [(c) => c.acquire("a", { mode: "toString" }), `mode is 'toString': ${MODES}`],
  [(c) => c.acquire("a", { lease: "9f" }), "lease is '9f': a Lease, as openLease settles with"],
  [(c) => c.acquire("a", { lease: c.openLease().catch(() => undefined) }), /^lease is Promise .*: a Lease, as openLease settles with$/],
  [(c) => c.acquire("a", { wait: "x" }), `wait is 'x': ${SPAN}`],
  [(c) => c.acquire("a", { wait: null }), `wait is null: ${SPAN}`],
  [(c) => c.acquire("a", { wait: 5n }), `wait is 5n: ${SPAN}`],
  [(c) => c.acquire("a", { wait: -1 }), `wait is -1: ${SPAN}`, "RangeError"],
  [(c) => c.acquire("a", { wait: NaN }), `wait is NaN: ${SPAN}`, "RangeError"],
  [(c) => c.acquire("a", { wait: Infinity }), `wait is Infinity: ${SPAN}`, "RangeError"],
  [(c) => c.acquire("a", { lockDelay: -1 }), `lockDelay is -1: ${SPAN}`, "RangeError"],
  [(c) => c.acquire("a", { owner: 5 }), "owner is 5: a string"],
  [(c) => c.acquire("a", { metadata: "x" }), "metadata is 'x': an object"],
  [(c) => c.acquire("a", { metadata: { port: 80 } }), "metadata.port is 80: a string"],
  [(c) => c.acquire("a", { detectDeadlock: "no" }), "detectDeadlock is 'no': true or false"],
  [(c) => c.acquire("a", { signal: 5 }), "signal is 5: an AbortSignal"],
  [(c) => c.acquire("a", { onQueued: "f" }), "onQueued is 'f': a function"],
  [(c) => c.withLock("a", { suspensionGrace: -2 }, body), `suspensionGrace is -2: ${SPAN}`, "RangeError"],
  [(c) => c.withLock("a", {}), "body is undefined: a function"],
  [(c) => c.runWhileLeader("a", {}), "body is undefined: a function"],
  [(c) => c.openLease({ ttl: "10s" }), `ttl is '10s': ${SPAN}`],
  [(c) => c.revoke("a", { grace: -1 }), `grace is -1: ${SPAN}`, "RangeError"],
  [(c) => c.acquireAll("ab"), "locks is 'ab': an array of names and of objects such as { name, mode }"],
  [(c) => c.acquireAll([{ name: "a", mode: "rw" }]), `mode is 'rw': ${MODES}`],
  [(c) => c.acquireAll([5]), "options is 5: an object with any of name, mode"],
  [(c) => c.acquireAll([{ mode: "read" }]), "name is undefined: a string"],
  [(c) => c.acquirePermits("a", { permits: "2" }), `permits is '2': ${NUMBER}`],
  [(c) => c.acquirePermits("a", { permits: 1.5 }), `permits is 1.5: ${NUMBER}`, "RangeError"],
  [(c) => c.acquirePermits("a", { numbered: 1 }), "numbered is 1: true or false"],
  [(c) => c.acquirePermits("a", { quarantine: "1m" }), `quarantine is '1m': ${SPAN}`],
  [(c) => c.acquirePermits("a", { quarantine: -1 }), `quarantine is -1: ${SPAN}`, "RangeError"],
  [(c) => c.begin("a", 5), "key is 5: a string"],
  [(c) => c.begin("a", "k", { perName: 1 }), "perName is 1: true or false"],
  [(c) => c.begin("a", "k", { keep: "1d" }), `keep is '1d': ${SPAN}`],
  [(c) => c.begin("a", "k", { maxAttempts: 1.5 }), `maxAttempts is 1.5: ${NUMBER}`, "RangeError"],
  [(c) => c.once("a", "k", {}), "work is undefined: a function"],
  [(c) => new Jobs(c as never).once("a", "week" as never, {}, body), `key is 'week': one of "minute", "hour", "day"`],
  [(c) => c.claim("a", "1m", "x"), `reserveFor is '1m': ${SPAN}`],
  [(c) => c.claim("a", 60), "reason is undefined: a string"],
  [(c) => c.claim("a", 60, "x", { claimId: 5 }), "claimId is 5: a string"],
  [(c) => c.claimById(5), "claimId is 5: a string"],
  [(c) => c.createSemaphore("a", -1), `limit is -1: ${NUMBER}`, "RangeError"],
  [(c) => c.createSemaphore("a"), `limit is undefined: ${NUMBER}`],
  [(c) => c.enterBarrier("a", 1e10), `size is 10000000000: ${NUMBER}`, "RangeError"],
  [(c) => c.join("a", "b", { onConflict: "retry" }), `onConflict is 'retry': one of "reject", "wait", "replace"`],
  [(c) => c.stayJoined("a", "b", {}), "signal is undefined: an AbortSignal"],
  [(c) => c.campaign("a", "b", { value: 80 }), "value is 80: a string"],
  [(c) => c.acquire(), "name is undefined: a string"],
  [(c) => c.campaign("a"), "candidate is undefined: a string"],
  [(c) => c.getLock(5), "name is 5: a string"],
  [(c) => c.watchLock("a", { signal: 5 }), "signal is { signal: 5 }: an AbortSignal"],
  [(c) => c.sequence("a").nextRange(2.5), `count is 2.5: ${NUMBER}`, "RangeError"],
  [(c) => c.sequence("a").create("x"), "first is 'x': a whole number"],
  [(c) => c.config.put("a", 5), "value is 5: a string or a Uint8Array"],
  [(c) => c.config.put("a", "b", "mising"), `precondition is 'mising': "missing", "exists" or { version }, with a whole number`],
  [() => new Commit().put("a", "b", { vresion: 5 } as never), `precondition is { vresion: 5 }: "missing", "exists" or { version }, with a whole number`],
  [(c) => c.config.watch("a"), "keys is 'a': an array of strings"],
  [() => new Client({ address: 7181 as never }), "address is 7181: a string"],
  [() => new Client({ logger: {} as never }), "logger is {}: an object with functions debug and error, such as console"],
  [() => new Client({ credentials: {} as never }), "credentials is {}: ChannelCredentials of @grpc/grpc-js"],
  [() => new Jobs(nowhere).close(Infinity), `grace is Infinity: ${SPAN}`, "RangeError"],
  [() => new fence.Gate({} as fence.Store, { locks: "a" as never }), "locks is 'a': an array of strings"],
]; // prettier-ignore

void test("a wrong value is refused, with the option, the value and the rule", async () => {
  for (const refusal of VALUES) {
    await refused(refusal);
  }
});

void test("options that are undefined are left out", async (t) => {
  const { client } = await connected(t);
  const options = Object.fromEntries(
    ["mode", "lease", "wait", "owner", "metadata", "signal", "lockDelay"].map((name) => [name, undefined]),
  );
  assert.equal(await client.withLock("orders", { ...options, suspensionGrace: undefined } as object, () => 7), 7);
});

void test("a grace longer than any timer stops no body", async (t) => {
  const { client, sidecar } = await connected(t);
  const suspended = client.withLock("orders", { suspensionGrace: 30 * 24 * 3600 }, async (lock, signal) => {
    await sidecar.suspend(2);
    while (!lock.suspended) {
      await later(5);
    }
    await later(50);
    return signal.aborted;
  });
  assert.equal(await suspended, false);
});

void test("a body that stops because its lock is lost rejects with LostError, whatever its functions make of the signal", async (t) => {
  const { client, sidecar } = await connected(t);
  const bodies: ((signal: AbortSignal) => Promise<unknown>)[] = [
    async (signal) => later(PATIENT * 1000, undefined, { signal }),
    async (signal) => once(new EventTarget(), "never", { signal }),
    async (signal) => later(PATIENT * 1000, undefined, { signal }).catch((error: unknown) => {
      throw new Error("the work has not ended", { cause: error });
    }),
  ]; // prettier-ignore
  for (const stopping of bodies) {
    const held = client.withLock("orders", {}, async (_, signal) => {
      const stopped = stopping(signal);
      await Promise.all([sidecar.expire("orders"), stopped]);
    });
    await assert.rejects(held, LostError);
  }
});

void test("a body that fails by itself after a loss rejects with its own error", async (t) => {
  const { client, sidecar } = await connected(t);
  const held = client.withLock("orders", {}, async (lock) => {
    await sidecar.expire("orders");
    await lock.ended;
    throw new RangeError("mine");
  });
  await assert.rejects(held, /mine/);
});

void test("a body that stops because of the caller's signal rejects with its reason", async (t) => {
  const { client } = await connected(t);
  const controller = new AbortController();
  const held = client.withLock("orders", { signal: controller.signal }, async (_, signal) => {
    const stopped = later(PATIENT * 1000, undefined, { signal });
    controller.abort(new RangeError("enough"));
    await stopped;
  });
  await assert.rejects(held, /enough/);
});

void test("a job that stops because leadership is lost is reported with LostError", async (t) => {
  const { client, sidecar } = await connected(t);
  const failed: unknown[] = [];
  await using jobs = new Jobs(client, { onError: (error) => failed.push(error) });
  const tick = jobs.led("scheduler", async (signal) => {
    const stopped = later(PATIENT * 1000, undefined, { signal });
    await Promise.all([sidecar.expire(), stopped]);
  });
  while (failed.length === 0) {
    await tick();
  }
  assert.ok(failed[0] instanceof LostError, String(failed[0]));
});
