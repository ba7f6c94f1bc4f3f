/** Leases that outlive their sidecar: the real program, killed and started again over the ensemble of another process. */

import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { Readable } from "node:stream";
import { type TestContext, test } from "node:test";

import { Client as Channel, credentials } from "@grpc/grpc-js";

import { AlreadyDoneError, Client, LockHeldError, LostError } from "../src/index.js";
import { sleep } from "../src/clock.js";
import { Schedules, program, until } from "./sidecar.js";

const TTL = 4;

type Process = ChildProcessByStdio<null, Readable, null>;

/** Starts the program, and returns when it has said something. */
async function launch(flags: readonly string[], expected: RegExp): Promise<{ child: Process; found: RegExpExecArray }> {
  const child = spawn(program(), flags, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  let found: RegExpExecArray | null = null;
  await until("the program starts", 10, () => (found = expected.exec(said)) !== null);
  return { child, found: found as unknown as RegExpExecArray };
}

async function kill(child: Process): Promise<void> {
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

/** A sidecar that keeps its state, and the ensemble that it stands on. */
class Resuming {
  private readonly folder = mkdtempSync(path.join(os.tmpdir(), "sk"));
  readonly address = `unix://${this.folder}/s.sock`;
  readonly state = path.join(this.folder, "state");
  private ensemble: Process | undefined;
  private sidecar: Process | undefined;
  private server = "";

  static async begin(t: TestContext): Promise<Resuming> {
    const made = new Resuming();
    t.after(async () => made.close());
    const flags = ["dev", "--listen", `unix://${made.folder}/dev.sock`, "--log-level", "error"];
    const { child, found } = await launch(flags, /ensemble: +(\S+),/);
    made.ensemble = child;
    made.server = found[1] ?? "";
    await made.start();
    return made;
  }

  async start(): Promise<void> {
    const where = [`--zookeeper=${this.server}`, `--listen=${this.address}`, "--operator-listen=", `--state-dir=${this.state}`];
    const times = [`--session-timeout=${TTL}s`, "--tick-time=200ms", "--heartbeat=250ms", "--log-level=error"];
    this.sidecar = (await launch(["serve", ...where, ...times], /listening/)).child;
  }

  async kill(): Promise<void> {
    if (this.sidecar !== undefined) {
      await kill(this.sidecar);
      this.sidecar = undefined;
    }
  }

  private async close(): Promise<void> {
    await this.kill();
    if (this.ensemble !== undefined) {
      await kill(this.ensemble);
    }
    rmSync(this.folder, { recursive: true });
  }
}

void test("an attempt outlives its sidecar, and is finished while that is away", async (t) => {
  const resuming = await Resuming.begin(t);
  const client = new Client({ address: resuming.address });
  t.after(() => client.close());
  const attempt = await client.begin("mail", "k");
  await resuming.kill();
  await until("it is suspended", 10, () => attempt.suspended);
  await resuming.start();
  await until("it is resumed", 10, () => !attempt.suspended);
  await attempt.guard(async () => client.config.put("guarded", "by the attempt that has kept its id"));
  await resuming.kill();
  let settled = false;
  const finishing = attempt.finish("succeeded").then(() => {
    settled = true;
  });
  await sleep(0.5);
  assert.ok(!settled);
  await resuming.start();
  await finishing;
  await assert.rejects(client.begin("mail", "k"), AlreadyDoneError);
});

void test("a permit keeps its number when it is resumed", async (t) => {
  const resuming = await Resuming.begin(t);
  const client = new Client({ address: resuming.address });
  t.after(() => client.close());
  await client.createSemaphore("ids", 3);
  const first = await client.acquirePermits("ids", { numbered: true });
  const second = await client.acquirePermits("ids", { numbered: true });
  await first.release();
  await resuming.kill();
  await until("it is suspended", 10, () => second.suspended);
  await resuming.start();
  await until("it is resumed", 10, () => !second.suspended);
  await sleep(TTL + 1);
  assert.deepEqual([second.number, second.valid], [1, true]);
  assert.equal(await client.withPermits("ids", { numbered: true }, ({ number }) => number), 0);
  await second.release();
});

void test("a tick outlives its sidecar, and is finished by the next", async (t) => {
  const resuming = await Resuming.begin(t);
  const channel = new Channel(resuming.address, credentials.createInsecure());
  const [client, schedules] = [new Client({ address: resuming.address }), new Schedules(channel)];
  t.after(() => {
    client.close();
    channel.close();
  });
  await schedules.put("reports");
  await schedules.run("reports", "now");
  const tick = await client.work("reports");
  await resuming.kill();
  await until("it is suspended", 10, () => tick.suspended);
  await resuming.start();
  await until("it is resumed", 10, () => !tick.suspended);
  await sleep(TTL + 1);
  assert.ok(tick.valid);
  await tick.guard(async () => client.config.put("guarded", "by the attempt that has kept its id"));
  await tick.finish("succeeded");
  assert.deepEqual(await schedules.history("reports"), ["now succeeded 1"]);
});

void test("what stands on a lease, and locks without one, outlive their sidecar", async (t) => {
  const resuming = await Resuming.begin(t);
  const client = new Client({ address: resuming.address });
  t.after(() => client.close());
  const lease = await client.openLease();
  const news: string[] = [];
  const lock = await client.acquire("held", {
    lease,
    onSuspended: () => news.push("suspended"),
    onResumed: () => news.push("resumed"),
  });
  const alone = await client.acquire("alone");
  const several = await client.acquireAll(["one", "two"]);
  const member = await client.join("group", "member", { lease });
  const other = await client.acquire("awaited", { lease: await client.openLease() });
  let granted = false;
  const waiting = client.acquire("awaited", { lease }).then((held) => {
    granted = true;
    return held;
  });
  await sleep(0.3);
  for (let round = 0; round < 2; round++) {
    await resuming.kill();
    await until("suspended", 5, () => [lease, lock, alone, several].every((held) => held.suspended));
    assert.ok(lock.valid && alone.valid);
    await resuming.start();
    await until("resumed", 5, () => ![lease, lock, alone, several].some((held) => held.suspended));
  }
  assert.equal(news[0], "suspended");
  assert.equal(news.at(-1), "resumed");
  await sleep(TTL + 1);
  assert.ok(lock.valid && alone.valid && several.valid && member.valid && lease.valid && !granted);
  await several.guard(async () => client.config.put("guarded", "by the hold that has kept its id"));
  const rival = new Client({ address: resuming.address });
  t.after(() => rival.close());
  for (const name of ["held", "alone", "one", "two"]) {
    await assert.rejects(rival.acquire(name, { wait: 0 }), LockHeldError);
  }
  await alone.release();
  await rival.acquire("alone", { wait: 0 });
  await several.release();
  await rival.acquireAll(["two", "one"], { wait: 0 });
  await other.release();
  await (await waiting).release();
  await lock.release();
  assert.ok((await rival.acquire("held", { wait: 5 })).fencingToken > lock.fencingToken);
});

void test("entries of a double barrier, and the wait at a barrier, outlive their sidecar", async (t) => {
  const resuming = await Resuming.begin(t);
  const client = new Client({ address: resuming.address });
  t.after(() => client.close());
  await client.setBarrier("gate");
  let waits = 0;
  let passed = false;
  const waiting = client.awaitBarrier("gate", { onWaiting: () => waits++ }).then(() => (passed = true));
  const lease = await client.openLease();
  const [leaves, stays] = await Promise.all([client.enterBarrier("start", 2), client.enterBarrier("start", 2, { lease })]);
  await until("it waits at the gate", 5, () => waits === 1);
  await resuming.kill();
  await until("suspended", 5, () => leaves.suspended && stays.suspended);
  let left = false;
  const leaving = leaves.leave().then(() => (left = true));
  await resuming.start();
  await until("resumed", 5, () => !stays.suspended);
  await until("it waits at the gate again", 5, () => waits === 2);
  assert.deepEqual([stays.valid, left, passed], [true, false, false]);
  await client.removeBarrier("gate");
  await waiting;
  await stays.leave();
  await leaving;
});

void test("a lock that is released while its sidecar is away is free when that is confirmed", async (t) => {
  const resuming = await Resuming.begin(t);
  const client = new Client({ address: resuming.address });
  t.after(() => client.close());
  const lease = await client.openLease();
  const lock = await client.acquire("held", { lease });
  await resuming.kill();
  await until("suspended", 5, () => lease.suspended);
  const releasing = lock.release();
  await sleep(0.1);
  await resuming.start();
  await releasing;
  const rival = new Client({ address: resuming.address });
  t.after(() => rival.close());
  await rival.acquire("held", { wait: 0 });
});

void test("a lease whose sidecar is away for too long is lost when its validity runs out", async (t) => {
  const resuming = await Resuming.begin(t);
  const client = new Client({ address: resuming.address });
  t.after(() => client.close());
  const lease = await client.openLease();
  const lock = await client.acquire("held", { lease });
  await resuming.kill();
  const left = lock.validFor;
  const began = performance.now();
  await lock.ended;
  assert.ok((performance.now() - began) / 1000 < left + 0.5);
  assert.ok(lock.error instanceof LostError && !lock.valid);
  await assert.rejects(lease.close(), LostError);
});

void test("a lease that the next sidecar does not know is lost at once", async (t) => {
  const resuming = await Resuming.begin(t);
  const client = new Client({ address: resuming.address });
  t.after(() => client.close());
  const lease = await client.openLease();
  const lock = await client.acquire("held", { lease });
  await resuming.kill();
  rmSync(resuming.state, { recursive: true });
  await resuming.start();
  await until("lost", 2, () => lock.error !== undefined);
  assert.ok(!lease.valid);
});
