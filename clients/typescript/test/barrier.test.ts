/** Barriers, and entries of double barriers. */

import assert from "node:assert/strict";
import test from "node:test";

import {
  AlreadyContendingError,
  BarrierEntry,
  Client,
  InvalidFieldError,
  LeaseClosedError,
  LostError,
  NameIsDirectoryError,
  SidekeeperError,
  WaitTimeoutError,
} from "../src/index.js";
import { PATIENT, connected, until } from "./sidecar.js";

/** A promise, and whether it has settled. */
class Watched<T> {
  settled = false;
  readonly result: Promise<T>;

  constructor(promise: Promise<T>) {
    this.result = promise.finally(() => {
      this.settled = true;
    });
    this.result.catch(() => undefined);
  }
}

/** Two callers of one round. */
async function inside(client: Client, name: string): Promise<[BarrierEntry, BarrierEntry]> {
  return Promise.all([client.enterBarrier(name, 2), client.enterBarrier(name, 2)]);
}

void test("a barrier holds callers back until it is removed", async (t) => {
  const { client } = await connected(t);
  await client.awaitBarrier("gate");
  await client.setBarrier("gate");
  await client.setBarrier("gate");
  let waits = 0;
  const onWaiting = (): number => waits++;
  const first = new Watched(client.awaitBarrier("gate", { onWaiting }));
  const second = new Watched(client.awaitBarrier("gate", { onWaiting }));
  await until("both wait", PATIENT, () => waits === 2);
  assert.ok(!first.settled && !second.settled);
  await client.removeBarrier("gate");
  await Promise.all([first.result, second.result]);
  await client.removeBarrier("gate");
  await assert.rejects(client.awaitBarrier("/"), InvalidFieldError);
});

void test("the wait at a barrier ends with the caller's signal, and with the client", async (t) => {
  const { client, sidecar } = await connected(t);
  await client.setBarrier("gate");
  const impatient = new Client({ address: sidecar.address });
  const controller = new AbortController();
  let waits = 0;
  const onWaiting = (): number => waits++;
  const cancelled = new Watched(impatient.awaitBarrier("gate", { signal: controller.signal, onWaiting }));
  const closed = new Watched(impatient.awaitBarrier("gate", { onWaiting }));
  await until("both wait", PATIENT, () => waits === 2);
  controller.abort(new RangeError("enough"));
  await assert.rejects(cancelled.result, /enough/);
  assert.ok(!closed.settled);
  impatient.close();
  await assert.rejects(closed.result, SidekeeperError);
  await assert.rejects(impatient.awaitBarrier("gate"), /the client is closed/);
});

void test("callers enter and leave a double barrier together", async (t) => {
  const { client } = await connected(t);
  const present: number[] = [];
  const entering = new Watched(client.enterBarrier("start", 2, { owner: "first", onWaiting: (n) => present.push(n) }));
  await until("the first waits", PATIENT, () => present.length > 0);
  assert.equal(present[0], 1);
  assert.ok(!entering.settled);
  await assert.rejects(client.setBarrier("start"), NameIsDirectoryError);
  const second = await client.enterBarrier("start", 2);
  const first = await entering.result;
  assert.ok(first.valid && second.valid && first.round > 0n);
  assert.equal(first.round, second.round);

  const leaving = new Watched(first.leave());
  assert.deepEqual([first.valid, first.error, second.valid], [false, undefined, true]);
  await assert.rejects(client.enterBarrier("start", 2, { wait: 1 }), WaitTimeoutError); // who comes late is not let in
  assert.ok(!leaving.settled);
  await Promise.all([second.leave(), leaving.result]);
  await first.leave();
  await first.release();
  assert.deepEqual([first.error, second.error], [undefined, undefined]);

  const [third, fourth] = await inside(client, "start");
  assert.ok(third.round > first.round);
  await Promise.all([third.leave(), fourth.leave()]);
});

void test("nobody waits for whose entry is lost", async (t) => {
  const { client } = await connected(t);
  const lease = await client.openLease();
  const [staying, leased] = await Promise.all([client.enterBarrier("start", 2), client.enterBarrier("start", 2, { lease })]);
  await assert.rejects(client.enterBarrier("start", 2, { lease }), AlreadyContendingError);
  const leaving = staying.leave();
  await lease.close();
  await leaving;
  assert.ok(leased.error instanceof LostError && leased.error.cause instanceof LeaseClosedError);
  assert.equal(leased.signal.reason, leased.error);
  await assert.rejects(leased.leave(), LostError);
  await assert.rejects(leased.release(), LostError);
});

void test("an entry that was lost is not left", async (t) => {
  const { client, sidecar } = await connected(t);
  const [one, two] = await inside(client, "start");
  await sidecar.expire();
  await Promise.all([one.ended, two.ended]);
  await assert.rejects(one.leave(), LostError);
  await assert.rejects(two.leave(), LostError);
});

void test("an entry is lost whose sidecar freezes while it is left", async (t) => {
  const { client, sidecar } = await connected(t);
  const entry = await client.enterBarrier("start", 1);
  sidecar.send("SIGSTOP");
  await assert.rejects(entry.leave(), LostError);
});

void test("nobody waits for who does not wait for the others", async (t) => {
  const { client } = await connected(t);
  const [one, two] = await inside(client, "start");
  const leaving = new Watched(one.leave());
  await two.release();
  await leaving.result;
  await two.leave();

  const [three, four] = await inside(client, "start");
  const controller = new AbortController();
  const cancelled = new Watched(three.leave(controller.signal));
  await client.awaitBarrier("elsewhere");
  assert.ok(!cancelled.settled);
  controller.abort(new RangeError("enough"));
  await assert.rejects(cancelled.result, /enough/);
  await four.leave();
  await assert.rejects(three.leave(), /enough/);
});

void test("an entry ends with its client", async (t) => {
  const { client, sidecar } = await connected(t);
  const other = new Client({ address: sidecar.address });
  const [here, there] = await Promise.all([client.enterBarrier("start", 2), other.enterBarrier("start", 2)]);
  const leaving = new Watched(there.leave());
  await client.awaitBarrier("elsewhere");
  other.close();
  await assert.rejects(leaving.result, (error) => error instanceof LostError || error instanceof SidekeeperError);
  await here.leave();
});

void test("a double barrier is entered with a size and a time to wait", async (t) => {
  const { client } = await connected(t);
  await assert.rejects(client.enterBarrier("start", 0), InvalidFieldError);
  await assert.rejects(client.enterBarrier("start", 1001), InvalidFieldError);
  await assert.rejects(client.enterBarrier("start", 2, { wait: 0 }), InvalidFieldError);
  await assert.rejects(client.enterBarrier("start", 2, { wait: 1 }), WaitTimeoutError);
  await using alone = await client.enterBarrier("start", 1);
  assert.ok(alone.valid);
});
