/** Work at the ticks of a schedule. */

import assert from "node:assert/strict";
import { once } from "node:events";
import test, { type TestContext } from "node:test";

import { sleep } from "../src/clock.js";
import {
  AlreadyDoneError,
  Client,
  LockHeldError,
  LostError,
  ScheduleNotFoundError,
  SupersededError,
  WaitTimeoutError,
  tickets,
} from "../src/index.js";
import { PATIENT, Sidecar, until } from "./sidecar.js";

interface Planned {
  readonly sidecar: Sidecar;
  readonly client: Client;
  readonly other: Client;
}

/** A sidecar with a schedule of which a run waits. */
async function open(t: TestContext): Promise<Planned> {
  const sidecar = await Sidecar.start("20s");
  const [client, other] = [new Client({ address: sidecar.address }), new Client({ address: sidecar.address })];
  t.after(async () => {
    client.close();
    other.close();
    await sidecar.end();
  });
  await sidecar.schedules.put("reports");
  await sidecar.schedules.run("reports", "now");
  return { sidecar, client, other };
}

/** Sees that the first attempt was lost: the next one is the second. */
async function beginsAgain({ other }: Planned): Promise<void> {
  const tick = await other.work("reports", { wait: PATIENT });
  assert.deepEqual([tick.runId, tick.number], ["now", 2]);
  await tick.release();
}

const noDisk = new Error(`no\tdisk ${"é".repeat(200)}`);

function fail(): never {
  throw noDisk;
}

void test("a tick is finished by its caller", async (t) => {
  const { client, other, sidecar } = await open(t);
  const tick = await client.work("reports", { owner: "me" });
  assert.deepEqual([tick.name, tick.runId, tick.number, tick.holdId.length], ["reports", "now", 1, 32]);
  assert.ok(Math.abs(tick.at.getTime() - Date.now()) < 60_000);
  assert.deepEqual([tick.ticket().lock, tick.ticket().fencingToken], ["reports", tick.fencingToken]);
  assert.deepEqual([tick.valid, tick.signal.aborted, tick.revocation], [true, false, undefined]);
  await tick.guard(async () => client.config.put("made", "x"));
  await assert.rejects(other.work("reports", { wait: 0 }), LockHeldError);
  await tick.finish("succeeded", "three of them");
  assert.deepEqual([tick.valid, tick.signal.aborted, tick.error], [false, true, undefined]);
  await assert.rejects(tick.finish("failed"), AlreadyDoneError);
  assert.deepEqual(await sidecar.schedules.history("reports"), ["now succeeded 1: three of them"]);
  await assert.rejects(client.work("reports", { wait: 0 }), WaitTimeoutError);
  await assert.rejects(client.work("none"), ScheduleNotFoundError);
});

void test("a tick has succeeded when its body settles", async (t) => {
  const { client, sidecar } = await open(t);
  const worked = client.work("reports", {}, async (tick, signal) => {
    await client.config.put("made", "x");
    assert.deepEqual(
      tickets().map(({ lock }) => lock),
      ["reports"],
    );
    assert.ok(tick.valid && !signal.aborted);
  });
  assert.equal(await worked, undefined);
  assert.deepEqual(await sidecar.schedules.history("reports"), ["now succeeded 1"]);
});

void test("a tick has failed when its body rejects, whatever that is with", async (t) => {
  const { client, sidecar } = await open(t);
  await assert.rejects(client.work("reports", {}, fail), noDisk);
  await sidecar.schedules.run("reports", "strange");
  const strange = {
    toString: (): never => {
      throw new Error("it cannot be said");
    },
  };
  const thrown = client.work("reports", {}, () => {
    throw strange; // eslint-disable-line @typescript-eslint/only-throw-error
  });
  await thrown.catch((error: unknown) => assert.equal(error, strange));
  await sidecar.schedules.run("reports", "stopped");
  const controller = new AbortController();
  const stopped = client.work("reports", { signal: controller.signal }, async (_, signal) => {
    controller.abort(new RangeError("enough"));
    await sleep(PATIENT, signal);
  });
  await assert.rejects(stopped, /enough/);
  const [last, said, full] = await sidecar.schedules.history("reports");
  assert.deepEqual([last, said], ["stopped failed 1: RangeError: enough", "strange failed 1: it has failed"]);
  const note = full?.replace("now failed 1: ", "") ?? "";
  assert.ok(note.startsWith("Error: no disk é"));
  assert.ok([255, 256].includes(Buffer.byteLength(note)));
});

void test("a body whose lock is lost is told so, and its tick begins again", async (t) => {
  const planned = await open(t);
  const { client, sidecar } = planned;
  const lost = client.work("reports", {}, async (_, signal) => {
    await sidecar.expire("reports");
    await sleep(PATIENT, signal);
  });
  await assert.rejects(lost, LostError);
  await beginsAgain(planned);
});

void test("a body that rejects after a loss has not failed", async (t) => {
  const planned = await open(t);
  const { client, sidecar } = planned;
  const failing = client.work("reports", {}, async (tick) => {
    await sidecar.expire("reports");
    await tick.ended;
    fail();
  });
  await assert.rejects(failing, noDisk);
  await beginsAgain(planned);
});

void test("the signal of a tick says that it is lost", async (t) => {
  const planned = await open(t);
  const tick = await planned.client.work("reports");
  const aborted = once(tick.signal, "abort");
  await planned.sidecar.expire("reports");
  await aborted;
  assert.ok(tick.signal.reason instanceof LostError);
  await beginsAgain(planned);
  await assert.rejects(tick.finish("succeeded"), SupersededError);
});

void test("a success is recorded though the lock of the tick was lost", async (t) => {
  const { client, sidecar } = await open(t);
  await client.work("reports", {}, async (tick, signal) => {
    const aborted = once(signal, "abort");
    await sidecar.expire("reports");
    await aborted;
    assert.ok(tick.error instanceof LostError);
  });
  assert.deepEqual(await sidecar.schedules.history("reports"), ["now succeeded 1"]);
});

void test("a tick that is left without an outcome is lost", async (t) => {
  const planned = await open(t);
  {
    await using tick = await planned.client.work("reports");
    assert.ok(tick.valid);
  }
  await beginsAgain(planned);
});

void test("a tick that is waited for comes when it is due, and not after the waiting is over", async (t) => {
  const { client, other, sidecar } = await open(t);
  const positions: number[] = [];
  const first = await client.work("reports");
  const second = other.work("reports", { onQueued: ({ position }) => positions.push(position) });
  await until("it waits", PATIENT, () => positions.length > 0);
  const controller = new AbortController();
  const third = client.work("reports", { signal: controller.signal });
  controller.abort(new RangeError("enough"));
  await assert.rejects(third, /enough/);
  await first.finish("succeeded");
  await sidecar.schedules.run("reports", "next");
  const next = await second;
  assert.deepEqual([positions[0], next.runId, next.number], [1, "next", 1]);
  await next.finish("succeeded");
});

void test("what work is given is checked before anything is sent", async (t) => {
  const { client } = await open(t);
  await assert.rejects(client.work("reports", { timeout: 1 } as never), /there is no option "timeout"/);
  await assert.rejects(client.work(7 as never), /name is 7/);
  await assert.rejects(client.work("reports", {}, undefined as never), /body is undefined: a function/);
  const elsewhere = new Client({ address: "unix:///nowhere" });
  t.after(() => elsewhere.close());
  await assert.rejects(elsewhere.work("reports", { lease: await client.openLease() }), /another client's/);
});
