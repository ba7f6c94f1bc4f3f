/** What the scenarios do not tell of locks. */

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import test from "node:test";

import { sleep, use } from "../src/clock.js";
import { View } from "../src/gen/sidekeeper/lock/v1/lock.js";
import { View as SemaphoreView } from "../src/gen/sidekeeper/semaphore/v1/semaphore.js";
import { Client, LeaseClosedError, LeaseLostError, LockHeldError, LostError, SidekeeperError } from "../src/index.js";
import { semaphoreViewFrom } from "../src/permits.js";
import { lockViewFrom } from "../src/types.js";
import { PATIENT, connected, until } from "./sidecar.js";

void test("a lock is released at the end of its block", async (t) => {
  const { client } = await connected(t);
  {
    await using lock = await client.acquire("orders");
    assert.ok(lock.valid);
    assert.ok(lock.fencingToken > 0n);
    await assert.rejects(client.acquire("orders", { wait: 0 }), LockHeldError);
  }
  await (await client.acquire("orders", { wait: 0 })).release();
});

void test("views say how many waiters they omit", () => {
  assert.equal(lockViewFrom(View.fromPartial({ waitersOmitted: 3 })).waitersOmitted, 3);
  assert.equal(semaphoreViewFrom(SemaphoreView.fromPartial({ waitersOmitted: 4 })).waitersOmitted, 4);
});

void test("a body that fails fails with its own error, and releases the lock", async (t) => {
  const { client } = await connected(t);
  const failing = client.withLock("orders", {}, () => {
    throw new RangeError("mine");
  });
  await assert.rejects(failing, /mine/);
  assert.equal(await client.withLock("orders", { wait: 0 }, () => 7), 7);
});

void test("a body that goes on without its lock rejects with LostError", async (t) => {
  const { client, sidecar } = await connected(t);
  const going = client.withLock("orders", {}, async (lock) => {
    await sidecar.expire("orders");
    await lock.ended;
    return "done";
  });
  await assert.rejects(going, LostError);
});

void test("a sidecar that is frozen holds nobody up for longer than they wait", async (t) => {
  const { client, sidecar } = await connected(t);
  const lease = await client.openLease({ ttl: PATIENT });
  sidecar.send("SIGSTOP");
  t.after(() => sidecar.send("SIGCONT"));
  const wait = 0.001;
  const refused = [
    client.acquire("orders", { wait }),
    client.acquire("orders", { wait, lease }),
    client.openLease({ wait }),
    client.join("workers", "a", { wait }),
    client.join("workers", "a", { wait, lease }),
  ];
  const silent = /the sidecar does not answer/;
  await Promise.all(refused.map(async (work) => assert.rejects(work, silent)));
});

void test("the caller's own signal stops the body", async (t) => {
  const { client } = await connected(t);
  const controller = new AbortController();
  const held = client.withLock("orders", { signal: controller.signal }, async (_, signal) => {
    controller.abort(new Error("enough"));
    await sleep(PATIENT, signal);
  });
  await assert.rejects(held, /enough/);
});

void test("a caller that gives up while it is granted the lock does not have it", async (t) => {
  const { client } = await connected(t);
  const first = await client.acquire("orders");
  const controller = new AbortController();
  const options = {
    signal: controller.signal,
    onQueued: () => void first.release().then(() => controller.abort(new Error("enough"))),
  };
  const waiting = client.acquire("orders", options);
  await waiting.then(
    async (lock) => lock.release(), // it was faster
    (error: unknown) => assert.match(String(error), /enough/),
  );
  await (await client.acquire("orders", { wait: 1 })).release();
});

void test("nothing is left on the signal of a caller that is refused", async (t) => {
  const { client } = await connected(t);
  const { signal } = new AbortController();
  await using held = await client.acquire("orders");
  await assert.rejects(client.acquire("orders", { wait: 0, signal }), LockHeldError);
  assert.equal(getEventListeners(signal, "abort").length, 0);
  assert.ok(held.valid);
});

void test("a killed sidecar is noticed at once", async (t) => {
  const { client, sidecar } = await connected(t);
  const lock = await client.acquire("orders");
  const killed = performance.now();
  void sidecar.kill();
  await lock.ended;
  t.diagnostic(`the holder of a lock learns of a killed sidecar after ${(performance.now() - killed).toFixed(1)} ms`);
  assert.ok(lock.signal.aborted);
});

void test("a callback that throws harms nobody's lock, and is logged", async (t) => {
  const { client: first, sidecar } = await connected(t);
  const logged: string[] = [];
  const logger = {
    debug: (): void => undefined,
    error: (message: string, error: unknown) => logged.push(message, String(error)),
  };
  const client = new Client({ address: sidecar.address, logger });
  t.after(() => client.close());
  const lock = await first.acquire("orders");
  let released = Promise.resolve();
  const onQueued = (): void => {
    released = lock.release();
    throw new Error("mine");
  };
  const next = await client.acquire("orders", { onQueued });
  assert.ok(next.valid);
  await released;
  assert.deepEqual(logged, ["a callback of lock orders failed", "Error: mine"]);
});

void test("a client that is closed says so", async (t) => {
  const { client } = await connected(t);
  client.close();
  client.close();
  for (const work of [client.acquire("orders"), client.openLease(), client.getLock("orders"), client.join("a", "b")]) {
    await assert.rejects(work, (error) => error instanceof SidekeeperError && error.message === "the client is closed");
  }
});

void test("what is not valid any more says why, at once and for good", async (t) => {
  const { client, sidecar } = await connected(t);
  const lease = await client.openLease();
  const lock = await client.acquire("orders", { lease });
  const member = await client.join("workers", "a", { lease });
  sidecar.send("SIGSTOP");
  t.after(() => sidecar.send("SIGCONT"));
  while (lock.valid && lease.valid && member.valid) {
    // The loop is blocked: nobody else notices.
  }
  const blocked = performance.now() + 200;
  while (performance.now() < blocked) {
    for (const held of [lock, lease, member]) {
      assert.ok(held.valid || held.error?.cause.reason === "LEASE_LOST");
    }
  }
  await lock.ended;
  assert.equal(lock.error?.cause.reason, "LEASE_LOST");
  assert.equal(lock.valid, false);
});

void test("what is lost before it was the caller's is refused with a SidekeeperError", async (t) => {
  const { client } = await connected(t);
  const lease = await client.openLease();
  const first = await client.acquire("orders");
  const waiting = client.acquire("orders", { lease });
  const joining = client.join("workers", "a", { lease: await client.openLease() });
  await joining;
  const second = client.join("workers", "a", { lease, onConflict: "wait" });
  await until("it waits", PATIENT, async () => (await client.getLock("orders")).waiters.length === 1);
  await sleep(0.1);
  const refusals = [waiting, second].map(async (work) => assert.rejects(work, LeaseClosedError));
  await lease.close();
  await Promise.all(refusals);
  await first.release();
  t.after(() => use(undefined));
  use({
    coarse: 0,
    read: () => {
      throw new Error("blind");
    },
  });
  await assert.rejects(client.acquire("orders"), LeaseLostError);
  await assert.rejects(client.openLease(), LeaseLostError);
  await assert.rejects(client.join("workers", "b"), LeaseLostError);
});

void test("an address that is none is refused", () => {
  for (const address of ["nonsense", "host:", "host:port", ":", "http://localhost:7181"]) {
    assert.throws(() => new Client({ address }), /neither unix:\/\/\/path, a path nor host:port/);
  }
  assert.throws(() => new Client({ address: "example.org:7181" }), /needs credentials/);
});

void test("what listens to a lock runs in the async context in which the lock was acquired", async (t) => {
  const { client, sidecar } = await connected(t);
  const others = new Client({ address: sidecar.address });
  t.after(() => others.close());
  const context = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const see = (what: string): void => void seen.push(`${what} in ${context.getStore() ?? "none"}`);
  // The first call makes the connection, and those that wait for it begin when it stands.
  const first = context.run("first", async () => client.config.list().next());
  const lock = await context.run("own", async () => client.acquire("orders", { onRevocation: () => see("asked") }));
  await first;
  context.run("listener", () => lock.signal.addEventListener("abort", () => see("ended")));
  await others.revoke("orders");
  await until("the revocation", PATIENT, () => seen.length === 1);
  await context.run("release", async () => lock.release());
  assert.deepEqual(seen, ["asked in own", "ended in own"]);
});

void test("what a listener to a view of the configuration throws does not end the view", async (t) => {
  const { sidecar } = await connected(t);
  const failures: unknown[] = [];
  const logger = { debug: () => undefined, error: (_: string, error: unknown) => void failures.push(error) };
  const client = new Client({ address: sidecar.address, logger });
  t.after(() => client.close());
  using view = await client.config.view();
  const context = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  context.run("own", () => view.onChange(() => seen.push(context.getStore())));
  view.onChange(() => {
    throw new RangeError("mine");
  });
  await client.config.put("flags/a", "on");
  await until("the first failure", PATIENT, () => failures.length === 1);
  await client.config.put("flags/b", "on");
  await until("the second failure", PATIENT, () => view.get("flags/b") !== undefined && failures.length === 2);
  assert.equal(view.error, undefined);
  assert.deepEqual(seen, ["own", "own"]);
});
