/** Several locks at once. */

import assert from "node:assert/strict";
import test from "node:test";

import { credentials } from "@grpc/grpc-js";

import {
  AlreadyContendingError,
  Client,
  GuardLostError,
  InvalidFieldError,
  LockBrokenError,
  LockHeldError,
  LostError,
  type Revocation,
  Ticket,
  WaitTimeoutError,
  type WantedLock,
  tickets,
} from "../src/index.js";
import { PATIENT, connected, until } from "./sidecar.js";

const ACCOUNTS: readonly (string | WantedLock)[] = ["accounts/7", { name: "accounts/9", mode: "read" }];

void test("several locks are one hold", async (t) => {
  const { client } = await connected(t);
  const held = await client.acquireAll(ACCOUNTS, { owner: "transfer" });
  assert.ok(held.valid && !held.suspended);
  assert.deepEqual(held.names, ["accounts/7", "accounts/9"]);
  assert.deepEqual(
    held.tickets(),
    held.names.map((name) => new Ticket(name, held.fencingTokens.get(name) ?? -1n)),
  );
  const { holders } = await client.getLock("accounts/9");
  assert.deepEqual([holders.length, holders[0]?.mode, holders[0]?.owner], [1, "read", "transfer"]);
  await assert.rejects(client.acquire("accounts/7", { wait: 0 }), LockHeldError);
  await assert.rejects(client.acquireAll(["accounts/8", "accounts/7"], { wait: 0 }), LockHeldError);
  await assert.rejects(client.acquireAll(["accounts/8", "accounts/7"], { wait: 0.1 }), WaitTimeoutError);
  await assert.rejects(client.acquireAll(["accounts/8", "accounts/8"]), (error) => {
    return error instanceof InvalidFieldError && error.fields[0]?.field === "locks[1].name";
  });
  const reader = await client.acquire("accounts/9", { mode: "read", wait: 0 });
  await held.release();
  await held.release();
  assert.equal(held.validFor, 0);
  assert.equal(held.error, undefined);
  await using again = await client.acquireAll(["accounts/8", "accounts/7"], { wait: 0 });
  assert.ok((again.fencingTokens.get("accounts/7") ?? 0n) > (held.fencingTokens.get("accounts/7") ?? 0n));
  await reader.release();
});

void test("who waits for several locks is told for which, and leaves all queues", async (t) => {
  const { client } = await connected(t);
  const first = await client.acquire("accounts/9", { mode: "write" });
  const told: ReadonlyMap<string, number>[] = [];
  const stop = new AbortController();
  const waiting = client.acquireAll(ACCOUNTS, { signal: stop.signal, onQueued: (ahead) => told.push(ahead) });
  await until("it waits", PATIENT, () => told.length > 0);
  assert.deepEqual(told[0], new Map([["accounts/9", 1]]));
  stop.abort();
  await assert.rejects(waiting, { name: "AbortError" });
  await until("the place is gone", PATIENT, async () => {
    const { holders, waiters } = await client.getLock("accounts/7");
    return holders.length + waiters.length === 0;
  });
  const second = client.acquireAll(ACCOUNTS);
  await first.release();
  await (await second).release();
});

void test("who asks for one of several locks asks for all", async (t) => {
  const { client } = await connected(t);
  const asked: Revocation[] = [];
  const held = await client.acquireAll(ACCOUNTS, { onRevocation: (revocation) => asked.push(revocation) });
  assert.equal(await client.revoke("accounts/9", { reason: "audit" }), 1);
  await until("it is asked", PATIENT, () => asked.length > 0);
  assert.equal(asked[0]?.reason, "audit");
  assert.deepEqual(held.revocation, asked.at(-1));
  assert.deepEqual(
    (await client.getLock("accounts/9")).holders.map((holder) => holder.revocationRequested),
    [true],
  );
  await held.release();
});

void test("several locks on a lease end with it", async (t) => {
  const { client, sidecar } = await connected(t);
  const lease = await client.openLease();
  const held = await client.acquireAll(ACCOUNTS, { lease });
  await assert.rejects(client.acquire("accounts/7", { lease }), AlreadyContendingError);
  await sidecar.break("accounts/9", PATIENT);
  await held.ended;
  assert.ok(held.error instanceof LostError && held.error.cause instanceof LockBrokenError);
  assert.ok(lease.valid);
  const again = await client.acquireAll(ACCOUNTS, { lease, wait: PATIENT });
  await lease.close();
  await again.ended;
  assert.ok(again.error instanceof LostError);
});

void test("over TCP several locks are one call", async (t) => {
  const { sidecar } = await connected(t);
  const secure = credentials.createSsl(sidecar.pem("ca"), sidecar.pem("client-key"), sidecar.pem("client"));
  using distant = new Client({ address: sidecar.secureAddress, credentials: secure });
  const held = await distant.acquireAll(ACCOUNTS);
  assert.ok(held.valid);
  await sidecar.break("accounts/7", PATIENT);
  await held.ended;
  assert.ok(held.error instanceof LostError && held.error.cause instanceof LockBrokenError);
  assert.ok(await distant.withLocks(ACCOUNTS, { wait: PATIENT }, ({ valid }) => valid));
  assert.equal((await distant.getLock("accounts/7")).holders.length, 0);
});

void test("a body is guarded by all its locks, and told when they are lost", async (t) => {
  const { client, sidecar } = await connected(t);
  const held = await client.withLocks(ACCOUNTS, {}, async (locks) => {
    await client.config.put("balance", "held");
    assert.deepEqual(tickets(), locks.tickets().slice(0, 1)); // readers do not exclude each other
    return locks;
  });
  await assert.rejects(
    held.guard(async () => client.config.put("balance", "late")),
    GuardLostError,
  );
  const lost = client.withLocks(ACCOUNTS, {}, async (_, signal) => {
    const aborted = new Promise((resolve) => {
      signal.addEventListener("abort", resolve, { once: true });
    });
    await sidecar.expire("accounts/9");
    await aborted;
    await client.config.put("balance", "late");
  });
  await assert.rejects(lost, (error) => error instanceof LostError && error.what === "locks accounts/7, accounts/9");
  assert.equal(Buffer.from((await client.config.get("balance")).value).toString(), "held");
});
