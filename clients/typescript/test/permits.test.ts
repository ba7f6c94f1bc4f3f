/** Permits of semaphores. */

import assert from "node:assert/strict";
import test from "node:test";

import {
  AlreadyContendingError,
  InvalidFieldError,
  LostError,
  type Revocation,
  SemaphoreExistsError,
  SemaphoreFullError,
  SemaphoreNotFoundError,
  TooManyPermitsError,
} from "../src/index.js";
import { PATIENT, connected, until } from "./sidecar.js";

void test("permits are held up to the limit", async (t) => {
  const { client } = await connected(t);
  await client.createSemaphore("api", 3);
  await assert.rejects(client.createSemaphore("api", 4), SemaphoreExistsError);
  const first = await client.acquirePermits("api", { permits: 2, owner: "first" });
  const second = await client.acquirePermits("api");
  assert.ok(first.valid && second.token > first.token);
  await assert.rejects(client.acquirePermits("api", { wait: 0 }), SemaphoreFullError);
  await assert.rejects(client.acquirePermits("api", { permits: 4 }), TooManyPermitsError);
  await assert.rejects(client.acquirePermits("other"), SemaphoreNotFoundError);
  const { limit, held, holders } = await client.getSemaphore("api");
  assert.deepEqual([limit, held, holders[0]?.owner, holders[0]?.permits], [3, 3, "first", 2]);
  const positions: number[] = [];
  const waiting = client.acquirePermits("api", { permits: 2, onQueued: (position) => positions.push(position) });
  await until("it waits", PATIENT, () => positions.length > 0);
  assert.equal(positions[0], 0);
  await first.release();
  assert.equal(first.validFor, 0);
  assert.equal(first.error, undefined);
  await (await waiting).release();
  await second.release();
  assert.equal((await client.getSemaphore("api")).held, 0);
});

void test("permits on a lease end with it", async (t) => {
  const { client } = await connected(t);
  await client.createSemaphore("leased", 1);
  const lease = await client.openLease();
  const held = await client.acquirePermits("leased", { lease });
  await assert.rejects(client.acquirePermits("leased", { lease }), AlreadyContendingError);
  await lease.close();
  await held.ended;
  assert.ok(held.error instanceof LostError);
  await using again = await client.acquirePermits("leased", { wait: PATIENT });
  assert.ok(again.valid);
});

void test("a body is told that its permits are lost", async (t) => {
  const { client, sidecar } = await connected(t);
  await client.createSemaphore("body", 1);
  const running = client.withPermits("body", {}, async (permits, signal) => {
    assert.ok(permits.valid);
    const aborted = new Promise((resolve) => {
      signal.addEventListener("abort", resolve, { once: true });
    });
    await sidecar.expire();
    await aborted;
  });
  await assert.rejects(running, LostError);
  assert.equal(await client.withPermits("body", {}, () => 7), 7);
});

void test("a permit bears a number if it is asked for", async (t) => {
  const { client } = await connected(t);
  await client.createSemaphore("ids", 3);
  const first = await client.acquirePermits("ids", { numbered: true });
  const second = await client.acquirePermits("ids", { numbered: true });
  const plain = await client.acquirePermits("ids");
  assert.deepEqual([first.number, second.number, plain.number], [0, 1, undefined]);
  const { holders, quarantines } = await client.getSemaphore("ids");
  assert.deepEqual(
    holders.map(({ number }) => number),
    [0, 1, undefined],
  );
  assert.deepEqual(quarantines, []);
  await first.release();
  assert.equal(await client.withPermits("ids", { numbered: true, wait: 0 }, ({ number }) => number), 0);
  await assert.rejects(client.acquirePermits("ids", { quarantine: 60 }), InvalidFieldError);
});

void test("a number that was lost rests", async (t) => {
  const { client, sidecar } = await connected(t);
  await client.createSemaphore("ids", 3);
  const lost = await client.acquirePermits("ids", { numbered: true, quarantine: 3600 });
  await sidecar.expire();
  await lost.ended;
  assert.ok(lost.error instanceof LostError);
  assert.deepEqual([lost.number, lost.valid], [0, false]);
  assert.deepEqual((await client.getSemaphore("ids")).quarantines, [{ number: 0, until: undefined }]);
  assert.equal(await client.withPermits("ids", { numbered: true, quarantine: 0 }, ({ number }) => number), 1);
  const [rests, ...others] = (await client.getSemaphore("ids")).quarantines;
  assert.deepEqual([rests?.number, others], [0, []]);
  const left = (Number(rests?.until) - Date.now()) / 1000;
  assert.ok(left > 3500 && left < 3700, `${left} s`);
});

void test("holders are asked when a semaphore shrinks", async (t) => {
  const { client } = await connected(t);
  await client.createSemaphore("shrinks", 2);
  const asked: Revocation[] = [];
  const older = await client.acquirePermits("shrinks");
  const newer = await client.acquirePermits("shrinks", { onRevocation: (revocation) => asked.push(revocation) });
  const asks = await client.resizeSemaphore("shrinks", 1, { reason: "less" });
  assert.ok(asks === 0 || asks === 1); // a holder is asked, and does not count, as long as it stands in the queue still
  await until("it is asked", PATIENT, () => asked.length > 0);
  assert.equal(asked[0]?.reason, "less");
  assert.equal(older.revocation, undefined);
  await newer.release();
  await older.release();
  for await (const view of client.watchSemaphore("shrinks")) {
    assert.equal(view.limit, 1);
    break;
  }
});
