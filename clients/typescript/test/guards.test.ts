/** Writes that are carried out only while a lock is held. */

import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";

import { status } from "@grpc/grpc-js";

import { Client, Commit, GuardLostError, InvalidFieldError, type Lock, LostError, Ticket, unguarded } from "../src/index.js";
import { Sidecar } from "./sidecar.js";

async function connected(t: TestContext): Promise<{ sidecar: Sidecar; client: Client; other: Client }> {
  const sidecar = await Sidecar.start();
  const [client, other] = [new Client({ address: sidecar.address }), new Client({ address: sidecar.address })];
  t.after(async () => {
    client.close();
    other.close();
    await sidecar.end();
  });
  return { sidecar, client, other };
}

async function textOf(client: Client, key: string): Promise<string> {
  return Buffer.from((await client.config.get(key)).value).toString();
}

void test("what is written after the loss is refused", async (t) => {
  const { sidecar, client } = await connected(t);
  const ids = client.sequence("ids");
  await ids.create(1);
  await client.config.put("old", "1");
  const lock = await client.acquire("orders");
  await lock.guard(async () => {
    await client.config.put("state", "held");
    const member = await client.join("web", "web-1");
    await member.update({ port: "80" });
    assert.equal(await ids.next(), 1n);
    await sidecar.expire("orders");
    await lock.ended;
    const isRefused = (error: unknown): boolean =>
      error instanceof GuardLostError && error.metadata["fencing_token"] === String(lock.fencingToken);
    await assert.rejects(client.config.put("state", "late"), isRefused);
    await assert.rejects(client.config.commit(new Commit().put("state", "late")), isRefused);
    await assert.rejects(client.config.delete("old"), isRefused);
    await assert.rejects(ids.next(), isRefused);
    await assert.rejects(client.join("web", "web-2"), isRefused);
    await assert.rejects(member.update({ port: "81" }), isRefused);
    await unguarded(async () => member.update({ port: "82" }));
    await member.leave();
    assert.equal(await ids.next({ relaxed: true }), 2n);
    await unguarded(async () => client.config.put("other", "unguarded"));
    await assert.rejects(client.config.put("state", "late"), isRefused);
  });
  assert.equal(await textOf(client, "state"), "held");
  await client.config.put("state", "after");
});

void test("a lost lock is kept from others for its delay", async (t) => {
  const { sidecar, client, other } = await connected(t);
  await (await client.acquire("orders", { lockDelay: 60 })).release();
  const lost = await client.acquire("orders", { lockDelay: 0.5 });
  await sidecar.expire("orders");
  await lost.ended;
  const positions: number[] = [];
  const began = Date.now();
  const lock = await other.acquire("orders", { onQueued: ({ position }) => positions.push(position) });
  assert.ok(Date.now() - began >= 400, String(Date.now() - began));
  assert.deepEqual(positions, [0]);
  await lock.release();
});

void test("the body of a lock is guarded by it and by all around it", async (t) => {
  const { client } = await connected(t);
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let late: Promise<unknown> = Promise.resolve();
  await client.withLock("outer", {}, async () => {
    await client.withLock("inner", {}, async () => client.config.put("state", "both"));
    await client.config.put("state", "outer");
    late = assert.rejects(
      released.then(async () => client.config.put("state", "late")),
      GuardLostError,
    );
  });
  release();
  await late;
  await client.config.put("state", "neither");
});

void test("a ticket guards what others write for the holder", async (t) => {
  const { client, other } = await connected(t);
  const ticket = await client.withLock("orders", {}, async (lock) => {
    await lock.ticket().guard(async () => other.config.put("state", "for the holder"));
    await lock.release();
    await other.config.put("state", "of its own"); // a hold is no guard of another client's
    return lock.ticket();
  });
  const refused = ticket.guard(async () => other.config.put("state", "late"));
  await assert.rejects(refused, (error) => error instanceof GuardLostError && error.metadata["lock"] === "orders");
  await assert.rejects(
    new Ticket("orders", 0n).guard(async () => other.config.put("state", "late")),
    InvalidFieldError,
  );
});

void test("a leader whose write meets the loss first leads again", async (t) => {
  const { client, sidecar } = await connected(t);
  const tokens: bigint[] = [];
  const led = await client.runWhileLeader("scheduler", {}, async (lock) => {
    tokens.push(lock.fencingToken);
    if (tokens.length === 1) {
      await sidecar.expire("scheduler");
    }
    await client.config.put("leader", String(lock.fencingToken));
    return "led";
  });
  assert.equal(led, "led");
  assert.equal(tokens.length, 2);
});

void test("a write that is refused is a loss, unless the body has released its lock", async (t) => {
  const { client } = await connected(t);
  const lost = (lock: Lock): Error =>
    new GuardLostError(status.FAILED_PRECONDITION, { message: "lost", metadata: { fencing_token: String(lock.fencingToken) } });
  const failing = client.withLock("orders", {}, (lock) => {
    throw lost(lock);
  });
  await assert.rejects(failing, (error) => error instanceof LostError && error.cause instanceof GuardLostError);
  const released = client.runWhileLeader("orders", {}, async (lock) => {
    await lock.release();
    await client.config.put("state", "late");
  });
  await assert.rejects(released, GuardLostError);
  let led = 0;
  await client.runWhileLeader("orders", {}, (lock) => {
    led++;
    if (led === 1) {
      throw lost(lock);
    }
  });
  assert.equal(led, 2);
});

void test("the late write of an earlier holder is refused", async (t) => {
  const { sidecar, client, other } = await connected(t);
  const first = await client.acquire("orders");
  await first.guard(async () => client.config.put("state", "first"));
  await sidecar.expire("orders");
  await other.withLock("orders", {}, async (second) => {
    await other.config.put("state", "second");
    await assert.rejects(
      first.guard(async () => client.config.put("state", "late")),
      GuardLostError,
    );
    await assert.rejects(
      first.ticket().guard(async () => client.config.put("state", "late")),
      (error) => error instanceof GuardLostError && error.metadata["current_token"] === String(second.fencingToken),
    );
    assert.equal(await textOf(client, "state"), "second");
  });
});

void test("a ticket is verified, and current tokens are watched", async (t) => {
  const { client } = await connected(t);
  const lock = await client.acquire("orders");
  const { fencingToken } = lock;
  assert.deepEqual(await client.verify(lock.ticket()), { held: true, currentToken: fencingToken });
  assert.deepEqual(await client.verify(new Ticket("orders", fencingToken + 1n)), { held: false, currentToken: fencingToken });
  const tokens = client.watchTokens(["orders"]);
  assert.deepEqual((await tokens.next()).value, { lock: "orders", fencingToken, stale: false });
  await lock.release();
  assert.deepEqual((await tokens.next()).value, { lock: "orders", fencingToken: 0n, stale: false });
  await tokens.return();
  assert.deepEqual(await client.verify(lock.ticket()), { held: false, currentToken: 0n });
});
