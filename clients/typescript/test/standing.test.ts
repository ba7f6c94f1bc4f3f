/** Claims. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";

import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";

import {
  type ClaimRequest,
  type ClaimResponse,
  LockServiceService,
  type ReleaseRequest,
} from "../src/gen/sidekeeper/lock/v1/lock.js";
import {
  ClaimEndedError,
  ClaimNotFoundError,
  Client,
  GuardLostError,
  LockHeldError,
  NoProcessError,
  OutcomeUnknownError,
  Ticket,
  WaitTimeoutError,
} from "../src/index.js";
import { PATIENT, connected, until } from "./sidecar.js";

function minutesLeft(end: Date | undefined): number {
  return Math.round((Number(end) - Date.now()) / 60_000);
}

void test("a claim outlives its client", async (t) => {
  const { client, sidecar } = await connected(t);
  const other = new Client({ address: sidecar.address });
  const made = await other.claim("staging", 600, "apply", { owner: "ci-7" });
  other.close();
  const { holders } = await client.getLock("staging");
  const { owner, fencingToken, claim } = holders[0] ?? {};
  assert.deepEqual([owner, fencingToken, claim?.reason], ["ci-7", made.fencingToken, "apply"]);
  assert.deepEqual([minutesLeft(claim?.until), minutesLeft(made.until)], [10, 10]);
  const known = client.claimById(made.id);
  assert.deepEqual([known.fencingToken, known.until], [0n, undefined]);
  assert.throws(() => known.ticket(), /has no ticket/);
  const counts = await known.check();
  assert.ok(counts > 50 && counts <= 58, String(counts));
  assert.deepEqual([known.fencingToken, minutesLeft(known.until)], [made.fencingToken, 10]);
  await known.extend(1200);
  assert.equal(minutesLeft(known.until), 20);
  await assert.rejects(client.revoke("staging"), NoProcessError);
  await known.release();
  await known.release();
  await assert.rejects(known.check(), ClaimEndedError);
  await assert.rejects(client.claim("staging", 600, "apply", { claimId: made.id }), ClaimEndedError);
  await assert.rejects(client.claimById("0".repeat(32)).check(), ClaimNotFoundError);
});

void test("what is written is guarded by a claim", async (t) => {
  const { client } = await connected(t);
  const claim = await client.claim("staging", 60, "apply");
  assert.deepEqual(claim.ticket(), new Ticket("staging", claim.fencingToken));
  await claim.ticket().guard(async () => client.config.put("app/colour", "red"));
  await claim.release();
  await assert.rejects(
    claim.ticket().guard(async () => client.config.put("app/colour", "blue")),
    GuardLostError,
  );
});

void test("a claim waits as others do, and is withdrawn if no caller knows its id", async (t) => {
  const { client } = await connected(t);
  const lock = await client.acquire("staging");
  const waiters = async (number: number): Promise<unknown> =>
    until(`${number} wait`, PATIENT, async () => (await client.getLock("staging")).waiters.length === number);
  await assert.rejects(client.claim("staging", 60, "apply", { wait: 0 }), LockHeldError);
  await assert.rejects(client.claim("staging", 60, "apply", { wait: 0.1 }), WaitTimeoutError);
  for (const [options, left] of [
    [{}, 0],
    [{ claimId: "0123456789abcdef".repeat(2) }, 1],
  ] as const) {
    const stop = new AbortController();
    const waiting = client.claim("staging", 60, "apply", { ...options, signal: stop.signal });
    await waiters(1);
    stop.abort(new Error("stopped"));
    await assert.rejects(waiting, /stopped/);
    await waiters(left);
  }
  const waiting = client.claim("staging", 60, "apply", { claimId: "0123456789abcdef".repeat(2) });
  await lock.release();
  assert.ok((await waiting).fencingToken > lock.fencingToken);
});

/** A sidecar that answers so many calls of Claim with a lost reply, and a client of it. */
async function losing(t: TestContext, replies: number): Promise<{ client: Client; asked: ClaimRequest[]; released: string[] }> {
  const asked: ClaimRequest[] = [];
  const released: string[] = [];
  const folder = mkdtempSync(path.join(os.tmpdir(), "sk"));
  const server = new Server();
  server.addService(LockServiceService, {
    claim: ({ request }: ServerUnaryCall<ClaimRequest, ClaimResponse>, answer: sendUnaryData<ClaimResponse>) => {
      const lost = asked.push(request) <= replies;
      answer(lost ? { code: status.ABORTED, details: "OUTCOME_UNKNOWN: lost" } : null, { fencingToken: 7n, until: new Date() });
    },
    release: ({ request }: ServerUnaryCall<ReleaseRequest, object>, answer: sendUnaryData<object>) => {
      released.push(request.claimId);
      answer(null, {});
    },
  });
  await new Promise((bound) => {
    server.bindAsync(`unix://${folder}/s.sock`, ServerCredentials.createInsecure(), bound);
  });
  const client = new Client({ address: `unix://${folder}/s.sock` });
  t.after(() => {
    client.close();
    server.forceShutdown();
    rmSync(folder, { recursive: true });
  });
  return { client, asked, released };
}

void test("a claim is asked for with one id until there is an answer", async (t) => {
  const { client, asked, released } = await losing(t, 2);
  const { id, fencingToken } = await client.claim("staging", 60, "apply", { wait: PATIENT });
  assert.deepEqual([asked.map(({ claimId }) => claimId), fencingToken, released], [[id, id, id], 7n, []]);
  assert.match(id, /^[0-9a-f]{32}$/);
  const [first, , last] = asked.map(({ waitTimeout }) => Number(waitTimeout?.seconds) + (waitTimeout?.nanos ?? 0) / 1e9);
  assert.ok(first === PATIENT && last !== undefined && last < PATIENT && last > PATIENT - 20, `${first} and ${last}`);
});

void test("a claim without an answer is released if no caller knows its id", async (t) => {
  const { client, asked, released } = await losing(t, 2);
  const options = { wait: 0 };
  await assert.rejects(client.claim("staging", 60, "apply", { ...options, claimId: "f".repeat(32) }), OutcomeUnknownError);
  await assert.rejects(client.claim("staging", 60, "apply", options), OutcomeUnknownError);
  await until("it is released", PATIENT, () => released.length > 0);
  assert.deepEqual(released, [asked[1]?.claimId]);
});
