/** Work that is done once. */

import assert from "node:assert/strict";
import { once } from "node:events";
import test, { type TestContext } from "node:test";

import { Client as Channel, credentials } from "@grpc/grpc-js";

import { sleep } from "../src/clock.js";
import { OnceServiceService, type Record, State } from "../src/gen/sidekeeper/once/v1/once.js";
import {
  AlreadyDoneError,
  type Attempt,
  Client,
  LockBrokenError,
  LockHeldError,
  LostError,
  NotRepeatedError,
  SidekeeperError,
  SupersededError,
} from "../src/index.js";
import { call, stubOf } from "../src/transport.js";
import { PATIENT, Sidecar, until } from "./sidecar.js";

interface Shop {
  readonly sidecar: Sidecar;
  readonly client: Client;
  readonly other: Client;
  readonly recordOf: (name: string, key: string) => Promise<Record>;
  readonly stateOf: (name: string, key: string) => Promise<string>;
}

async function open(t: TestContext): Promise<Shop> {
  const sidecar = await Sidecar.start("20s");
  const channel = new Channel(sidecar.address, credentials.createInsecure());
  const [client, other] = [new Client({ address: sidecar.address }), new Client({ address: sidecar.address })];
  t.after(async () => {
    channel.close();
    client.close();
    other.close();
    await sidecar.end();
  });
  const stub = stubOf(channel, OnceServiceService);
  const recordOf = async (name: string, key: string): Promise<Record> => {
    const { record } = await call(stub.get, { name, key });
    assert.ok(record);
    return record;
  };
  return { sidecar, client, other, recordOf, stateOf: async (name, key) => State[(await recordOf(name, key)).state] };
}

const noDisk = new Error(`no\tdisk ${"é".repeat(200)}`);

function fail(): never {
  throw noDisk;
}

void test("work is done until it has succeeded", async (t) => {
  const { client, recordOf } = await open(t);
  const numbers: number[] = [];
  const options = { owner: "me", keep: 3600 };
  const failing = client.once("mail", "order-7", options, async (attempt, signal) => {
    numbers.push(attempt.number);
    assert.deepEqual(attempt.ticket().lock, "mail/order-7");
    assert.ok(attempt.valid && !signal.aborted);
    await client.config.put("sent", "x");
    fail();
  });
  await assert.rejects(failing, noDisk);
  const { note } = await recordOf("mail", "order-7");
  assert.ok(note.startsWith("Error: no disk é"));
  assert.ok([255, 256].includes(Buffer.byteLength(note)));
  assert.equal(await client.once("mail", "order-7", options, ({ number }) => numbers.push(number)), true);
  assert.equal(await client.once("mail", "order-7", options, fail), false);
  assert.deepEqual(numbers, [1, 2]);
  assert.equal((await recordOf("mail", "order-7")).keep?.seconds, 3600n);
  const isDone = (error: unknown): boolean => error instanceof AlreadyDoneError && error.metadata["owner"] === "me";
  await assert.rejects(client.begin("mail", "order-7"), isDone);
});

void test("no more attempts are made than allowed", async (t) => {
  const { client, other } = await open(t);
  for (const number of [1, 2]) {
    const attempt = await client.begin("mail", "few", { maxAttempts: 2 });
    assert.equal(attempt.number, number);
    await attempt.finish("failed", "no disk");
  }
  await assert.rejects(client.begin("mail", "few", { maxAttempts: 2 }), NotRepeatedError);
  await assert.rejects(other.begin("mail", "few", { skipFailed: true }), NotRepeatedError);
  await assert.rejects(client.once("mail", "few", { maxAttempts: 2 }, fail), NotRepeatedError);
  await (await other.begin("mail", "few")).release();
  await assert.rejects(client.begin("mail", "few", { skipLost: true }), NotRepeatedError);
});

void test("work whose lock is broken is told so, and its attempt is lost", async (t) => {
  const { client, sidecar, stateOf } = await open(t);
  const options = { perName: true, skipLost: true };
  const broken = client.once("nightly", "k", options, async (_, signal) => {
    await Promise.all([sidecar.break("nightly", PATIENT), sleep(PATIENT, signal)]);
  });
  await assert.rejects(broken, (error) => error instanceof LostError && error.cause instanceof LockBrokenError);
  await until("its place is gone", PATIENT, async () => (await stateOf("nightly", "k")) === "LOST");
  await assert.rejects(client.begin("nightly", "k", options), NotRepeatedError);
});

void test("work that fails by itself after a loss leaves its attempt lost", async (t) => {
  const { client, sidecar, stateOf } = await open(t);
  const failing = client.once("mail", "k", {}, async (attempt) => {
    await sidecar.expire("mail/k");
    await attempt.ended;
    fail();
  });
  await assert.rejects(failing, noDisk);
  assert.equal(await stateOf("mail", "k"), "LOST");
});

void test("an error that tells of a loss leaves an attempt lost", async (t) => {
  const { client, other, stateOf } = await open(t);
  const lock = await other.acquire("other");
  const ticket = lock.ticket();
  await lock.release();
  const late = async (): Promise<unknown> => ticket.guard(async () => client.config.put("late", "x"));
  const wrapped = async (wrap: (error: unknown) => Error): Promise<unknown> =>
    late().catch((error: unknown) => {
      throw wrap(error);
    });
  const works = {
    itself: late,
    cause: async () => wrapped((cause) => new Error("no disk", { cause })),
    among: async () => wrapped((error) => new AggregateError([noDisk, error])),
    neither: async () => wrapped(() => noDisk),
  };
  const found: { [how: string]: string } = {};
  for (const [how, work] of Object.entries(works)) {
    await assert.rejects(client.once("mail", how, {}, work));
    found[how] = await stateOf("mail", how);
  }
  assert.deepEqual(found, { itself: "LOST", cause: "LOST", among: "LOST", neither: "FAILED" });
});

void test("work that its own caller stops has failed", async (t) => {
  const { client, stateOf } = await open(t);
  const controller = new AbortController();
  const stopped = client.once("mail", "k", { signal: controller.signal }, async (_, signal) => {
    controller.abort(new RangeError("enough"));
    await sleep(PATIENT, signal);
  });
  await assert.rejects(stopped, /enough/);
  assert.equal(await stateOf("mail", "k"), "FAILED");
  const waits = client.once("mail", "k", { signal: controller.signal }, fail);
  await assert.rejects(waits, /enough/);
});

void test("what work throws need not be an error", async (t) => {
  const { client, recordOf } = await open(t);
  const strange = {
    toString: (): never => {
      throw new Error("it cannot be said");
    },
  };
  const thrown = client.once("mail", "k", {}, () => {
    throw strange; // eslint-disable-line @typescript-eslint/only-throw-error
  });
  await thrown.catch((error: unknown) => assert.equal(error, strange));
  assert.equal((await recordOf("mail", "k")).note, "it has failed");
});

void test("a success is recorded though the lock was lost", async (t) => {
  const { client, sidecar, stateOf } = await open(t);
  const done = await client.once("mail", "k", {}, async (attempt, signal) => {
    const aborted = once(signal, "abort");
    await sidecar.expire("mail/k");
    await aborted;
    assert.ok(attempt.error instanceof LostError);
  });
  assert.equal(done, true);
  assert.equal(await stateOf("mail", "k"), "SUCCEEDED");
});

void test("the first outcome of an attempt counts", async (t) => {
  const { client, recordOf, stateOf } = await open(t);
  const attempt = await client.begin("mail", "k");
  await attempt.finish("failed", "no disk");
  assert.ok(!attempt.valid && attempt.error === undefined);
  await attempt.finish("failed", "another note");
  assert.equal((await recordOf("mail", "k")).note, "no disk");
  await assert.rejects(attempt.finish("succeeded"), AlreadyDoneError);
  const released = await client.begin("mail", "released");
  await released.release();
  assert.equal(await stateOf("mail", "released"), "LOST");
  await released.finish("succeeded");
  await assert.rejects(client.begin("mail", "released"), AlreadyDoneError);
  assert.throws(() => void attempt.ticket().guard(fail), noDisk);
  await assert.rejects(attempt.finish("done" as never), /outcome is 'done': one of "succeeded", "failed"/);
});

void test("an attempt that is left without an outcome is lost", async (t) => {
  const { client, stateOf } = await open(t);
  {
    await using attempt = await client.begin("mail", "k");
    assert.ok(attempt.valid);
  }
  assert.equal(await stateOf("mail", "k"), "LOST");
});

void test("a success is recorded after work has released its attempt", async (t) => {
  const { client, stateOf } = await open(t);
  assert.equal(await client.once("mail", "k", {}, async (attempt) => attempt.release()), true);
  assert.equal(await stateOf("mail", "k"), "SUCCEEDED");
});

void test("work that has finished its attempt keeps that outcome", async (t) => {
  const { client, stateOf } = await open(t);
  await assert.rejects(
    client.once("mail", "failed", {}, async (attempt) => attempt.finish("failed")),
    AlreadyDoneError,
  );
  for (const [key, end] of [
    ["succeeded", async (attempt: Attempt) => attempt.finish("succeeded")],
    ["released", async (attempt: Attempt) => attempt.release()],
  ] as const) {
    const failing = client.once("mail", key, {}, async (attempt) => {
      await end(attempt);
      fail();
    });
    await assert.rejects(failing, noDisk);
  }
  const states = await Promise.all(["failed", "succeeded", "released"].map(async (key) => stateOf("mail", key)));
  assert.deepEqual(states, ["FAILED", "SUCCEEDED", "LOST"]);
});

void test("a failure that cannot be recorded is logged", async (t) => {
  const { sidecar } = await open(t);
  const [debugged, logged]: [unknown[], unknown[]] = [[], []];
  const logger = {
    debug: (_: string, error: unknown) => void debugged.push(error),
    error: (_: string, error: unknown) => void logged.push(error),
  };
  const client = new Client({ address: sidecar.address, logger });
  t.after(() => client.close());
  const lost = client.once("mail", "lost", {}, async (attempt) => {
    await sidecar.expire("mail/lost");
    await attempt.ended;
    fail();
  });
  await assert.rejects(lost, noDisk);
  assert.ok(debugged.some((error) => error instanceof LostError));
  assert.equal(logged.length, 0);
  const frozen = client.once("mail", "frozen", {}, () => {
    sidecar.send("SIGSTOP");
    fail();
  });
  await assert.rejects(frozen, noDisk);
  sidecar.send("SIGCONT");
  assert.deepEqual(
    logged.map((error) => error instanceof SidekeeperError),
    [true],
  );
});

void test("an attempt is superseded by the next", async (t) => {
  const { client, other, sidecar, stateOf } = await open(t);
  const superseded = client.once("mail", "k", {}, async (first) => {
    await sidecar.expire("mail/k");
    await first.ended;
    const second = await other.begin("mail", "k");
    assert.ok(second.number === 2 && second.fencingToken > first.fencingToken);
    await second.finish("failed");
  });
  await assert.rejects(superseded, SupersededError);
  assert.equal(await stateOf("mail", "k"), "FAILED");
});

void test("a finish that has failed can be asked for again", async (t) => {
  const { client, other, sidecar, stateOf } = await open(t);
  const late = await client.begin("nightly", "late", { perName: true, wait: 0 });
  await sidecar.expire("nightly");
  await late.ended;
  const holder = await other.begin("nightly", "other", { perName: true });
  await assert.rejects(late.finish("succeeded"), LockHeldError);
  await holder.release();
  await late.finish("succeeded");
  assert.equal(await stateOf("nightly", "late"), "SUCCEEDED");
});

void test("finish waits for a sidecar that is frozen", async (t) => {
  const { client, sidecar, stateOf } = await open(t);
  const attempt = await client.begin("mail", "k");
  sidecar.send("SIGSTOP");
  let settled = false;
  const finishing = attempt.finish("succeeded").then(() => {
    settled = true;
  });
  await sleep(0.2);
  assert.ok(!settled);
  assert.ok(!attempt.valid);
  sidecar.send("SIGCONT");
  await finishing;
  assert.equal(await stateOf("mail", "k"), "SUCCEEDED");
});

void test("a client that is closed leaves its attempts lost", async (t) => {
  const { client, other, stateOf } = await open(t);
  const attempt = await client.begin("mail", "k");
  client.close();
  assert.ok(attempt.error instanceof LostError);
  await assert.rejects(attempt.finish("succeeded"), SidekeeperError);
  const second = await other.begin("mail", "k");
  assert.equal(second.number, 2);
  await second.release();
  assert.equal(await stateOf("mail", "k"), "LOST");
});

void test("callers that have the same work do it once", async (t) => {
  const { client, other } = await open(t);
  const ran: number[] = [];
  const callers = [client, other, client, other].map(async (each) =>
    each.once("mail", "k", {}, ({ number }) => ran.push(number)),
  );
  assert.deepEqual((await Promise.all(callers)).sort(), [false, false, false, true]);
  assert.deepEqual(ran, [1]);
});
