/** Jobs that timers begin in several processes at once. Each client stands for a process. */

import assert from "node:assert/strict";
import { once } from "node:events";
import test, { type TestContext } from "node:test";

import { sleep } from "../src/clock.js";
import {
  AlreadyDoneError,
  Client,
  GuardLostError,
  Jobs,
  type JobsOptions,
  LostError,
  NotRepeatedError,
  SidekeeperError,
  SupersededError,
} from "../src/index.js";
import { type Sidecar, startSidecar } from "../src/testing.js";
import { PATIENT, program, until } from "./sidecar.js";

/** A fleet of processes at one sidecar. */
class Fleet {
  readonly errors: unknown[] = [];

  private constructor(
    private readonly t: TestContext,
    readonly sidecar: Sidecar,
  ) {}

  static async start(t: TestContext): Promise<Fleet> {
    process.env["SIDEKEEPER_PROGRAM"] = program();
    const sidecar = await startSidecar({ sessionTimeout: 20 });
    t.after(() => sidecar.stop());
    return new Fleet(t, sidecar);
  }

  process(owner: string, options: JobsOptions = {}): { client: Client; jobs: Jobs } {
    const client = new Client({ address: this.sidecar.address });
    const jobs = new Jobs(client, { owner, onError: (error) => this.errors.push(error), ...options });
    this.t.after(() => client.close());
    return { client, jobs };
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) {
    await once(signal, "abort");
  }
}

void test("a job is run by one process at a time, and skipped by the others", async (t) => {
  const fleet = await Fleet.start(t);
  let now = 0;
  let most = 0;
  const job = async (): Promise<void> => {
    most = Math.max(most, ++now);
    await sleep(0.01);
    now--;
  };
  const ticks = ["a", "b", "c"].map((owner) => fleet.process(owner).jobs.locked("reports", {}, job));
  const ran = [];
  for (let round = 0; round < 10; round++) {
    ran.push(...(await Promise.all(ticks.map(async (tick) => tick()))));
  }
  assert.equal(most, 1);
  assert.ok(ran.includes(true) && ran.includes(false));
  assert.deepEqual(fleet.errors, []);
});

void test("a quick job is not run again by a process that sees the same tick later", async (t) => {
  const fleet = await Fleet.start(t);
  let runs = 0;
  const job = (): void => {
    runs++;
  };
  const { client, jobs } = fleet.process("a");
  const second = fleet.process("b").jobs.locked("reports", {}, job);
  const ran = jobs.locked("reports", { holdAtLeast: 3600 }, job)();
  await until("it has run", PATIENT, () => runs === 1);
  assert.equal(await second(), false);
  client.close();
  assert.equal(await ran, false);
  await until("the lock is free", PATIENT, second);
  assert.equal(runs, 2);
});

void test("the lock of a quick job is held for as long as asked for, and no longer", async (t) => {
  const fleet = await Fleet.start(t);
  const began = performance.now();
  assert.equal(await fleet.process("a").jobs.locked("reports", { holdAtLeast: 0.5 }, () => undefined)(), true);
  assert.ok(performance.now() - began >= 490);
  assert.equal(await fleet.process("b").jobs.locked("reports", {}, () => undefined)(), true);
});

void test("a job that takes longer than its interval is not run beside itself", async (t) => {
  const fleet = await Fleet.start(t);
  const { jobs } = fleet.process("a");
  for (const tickOf of [jobs.locked.bind(jobs, "reports", {}), jobs.led.bind(jobs, "scheduler")]) {
    const begun = new AbortController();
    const end = new AbortController();
    const tick = tickOf(async () => {
      begun.abort();
      await aborted(end.signal);
    });
    const running = tick();
    await aborted(begun.signal);
    assert.equal(await tick(), false);
    end.abort();
    assert.equal(await running, true);
  }
  await jobs.close();
});

void test("a job whose lock is lost is told so, and the loss is reported", async (t) => {
  const fleet = await Fleet.start(t);
  const { client, jobs } = fleet.process("a");
  const tick = jobs.locked("reports", {}, async (signal) => {
    await fleet.sidecar.expireLock("reports");
    await aborted(signal);
    await assert.rejects(client.config.put("report", "late"), GuardLostError);
  });
  assert.equal(await tick(), false);
  assert.ok(fleet.errors[0] instanceof LostError);
  assert.equal(fleet.errors.length, 1);
});

void test("what a job throws is reported, and the next tick runs it again", async (t) => {
  const fleet = await Fleet.start(t);
  const { jobs } = fleet.process("a");
  const mine = new Error("mine");
  const tick = jobs.locked("reports", {}, () => {
    throw mine;
  });
  assert.equal(await tick(), false);
  assert.equal(await tick(), false);
  assert.deepEqual(fleet.errors, [mine, mine]);
});

void test("a tick without a sidecar is reported, and rejects only if the report does", async (t) => {
  const fleet = await Fleet.start(t);
  const raise = (error: unknown): never => {
    throw error;
  };
  const quiet = fleet.process("a").jobs.locked("reports", {}, () => assert.fail("it holds nothing"));
  const loud = fleet.process("b", { onError: raise }).jobs.locked("reports", {}, () => assert.fail("it holds nothing"));
  await fleet.sidecar.stop();
  assert.equal(await quiet(), false);
  assert.ok(fleet.errors[0] instanceof SidekeeperError);
  await assert.rejects(loud(), SidekeeperError);
});

void test("who closes jobs waits for them and for their locks, and no other begins", async (t) => {
  const fleet = await Fleet.start(t);
  const { jobs } = fleet.process("a");
  const begun = new AbortController();
  const end = new AbortController();
  let wasAborted: boolean | undefined;
  const tick = jobs.locked("reports", {}, async (signal) => {
    begun.abort();
    await aborted(end.signal);
    wasAborted = signal.aborted;
  });
  const running = tick();
  await aborted(begun.signal);
  const closed = jobs.close(PATIENT).then(() => wasAborted);
  assert.equal(await jobs.locked("others", {}, () => undefined)(), false);
  assert.equal(await fleet.process("b").jobs.locked("reports", {}, () => undefined)(), false);
  end.abort();
  assert.equal(await closed, false);
  assert.equal(await running, true);
  assert.equal(await fleet.process("c").jobs.locked("reports", {}, () => undefined)(), true);
});

void test("a job that does not end at shutdown is told to", async (t) => {
  const fleet = await Fleet.start(t);
  const { jobs } = fleet.process("a");
  const begun = [new AbortController(), new AbortController()];
  const running = [jobs.locked.bind(jobs, "reports", {}), jobs.led.bind(jobs, "scheduler")].map(async (tickOf, i) =>
    tickOf(async (signal) => {
      begun[i]?.abort();
      await aborted(signal);
    })(),
  );
  await Promise.all(begun.map(async ({ signal }) => aborted(signal)));
  await jobs.close(0);
  assert.deepEqual(await Promise.all(running), [true, true]);
  assert.deepEqual(fleet.errors, []);
});

void test("jobs of an election run only where it is led, and elsewhere when the leader has closed", async (t) => {
  const fleet = await Fleet.start(t);
  const { client, jobs } = fleet.process("a");
  const other = fleet.process("b").jobs.led("scheduler", () => undefined);
  const written: bigint[] = [];
  const tick = jobs.led("scheduler", async () => void written.push((await client.config.put("led", "by a")).revision));
  assert.equal(await tick(), true);
  assert.equal(await other(), false);
  assert.equal(await tick(), true);
  assert.equal(written.length, 2);
  assert.deepEqual(fleet.errors, []);
  await jobs.close();
  await until("the other leads", PATIENT, other);
});

void test("closing does not outlast its grace for a lock that is to be held longer", async (t) => {
  const fleet = await Fleet.start(t);
  const { client, jobs } = fleet.process("a");
  const running = jobs.locked("reports", { holdAtLeast: 3600 }, () => undefined)();
  await until("it is held", PATIENT, async () => (await client.getLock("reports")).holders.length === 1);
  await jobs.close(0);
  assert.equal((await client.getLock("reports")).holders.length, 0);
  await running;
});

void test("a leader that is asked to yield ends its job first, and stands again", async (t) => {
  const fleet = await Fleet.start(t);
  const { client, jobs } = fleet.process("a");
  const other = fleet.process("b").jobs.led("scheduler", () => undefined);
  const begun = new AbortController();
  const end = new AbortController();
  let wasAborted: boolean | undefined;
  const tick = jobs.led("scheduler", async (signal) => {
    begun.abort();
    await aborted(end.signal);
    wasAborted = signal.aborted;
  });
  const running = tick();
  await aborted(begun.signal);
  assert.equal(await other(), false);
  await client.transferLeadership("scheduler", "b");
  await until("it yields", PATIENT, async () => (await client.getElection("scheduler")).leader?.yieldRequested === true);
  for (let round = 0; round < 20; round++) {
    assert.equal((await client.getElection("scheduler")).leader?.candidate, "a");
  }
  end.abort();
  assert.equal(await running, true);
  assert.equal(wasAborted, false);
  await until("the other leads", PATIENT, other);
  await until("it stands again", PATIENT, async () => (await client.getElection("scheduler")).candidates.length === 1);
});

void test("a job whose leadership is lost is told so, and this process leads again", async (t) => {
  const fleet = await Fleet.start(t);
  const { jobs } = fleet.process("a");
  let runs = 0;
  const tick = jobs.led("scheduler", async (signal) => {
    if (++runs === 1) {
      await fleet.sidecar.expireAll();
      await aborted(signal);
    }
  });
  assert.equal(await tick(), false);
  assert.ok(fleet.errors[0] instanceof LostError);
  await until("it leads again", PATIENT, tick);
});

void test("a campaign that fails is reported, and the next tick begins another", async (t) => {
  const fleet = await Fleet.start(t);
  const { client, jobs } = fleet.process("a");
  const readers = await client.acquire("scheduler", { mode: "read" });
  const tick = jobs.led("scheduler", () => undefined);
  assert.equal(await tick(), false);
  assert.ok(fleet.errors[0] instanceof SidekeeperError);
  await readers.release();
  await until("it leads", PATIENT, tick);
});

void test("a quick job is done once for each tick, by whichever process comes first", async (t) => {
  const fleet = await Fleet.start(t);
  const ran: string[] = [];
  const processes = ["a", "b", "c"].map((owner) =>
    fleet.process(owner).jobs.once("reports", "minute", {}, () => {
      ran.push(owner);
    }),
  );
  const due = new Date("2026-11-29T03:00:00Z");
  const later = new Date("2026-11-29T03:01:00.9Z");
  const first = await Promise.all(processes.map(async (tick) => tick(due)));
  for (const tick of processes) {
    assert.equal(await tick({ date: due }), false);
  }
  assert.deepEqual(first.filter(Boolean).length, 1);
  assert.equal(ran.length, 1);
  assert.equal(await processes[1]?.(later), true);
  assert.deepEqual(ran.slice(1), ["b"]);
  assert.deepEqual(fleet.errors, []);
});

void test("the key of a tick is its time in UTC, or what a function makes of it", async (t) => {
  const fleet = await Fleet.start(t);
  const { client, jobs } = fleet.process("a");
  const due = new Date("2026-11-29T23:59:58.7+01:00");
  const keys = { minute: "2026-11-29T22.59", hour: "2026-11-29T22", day: "2026-11-29" } as const;
  for (const [every, key] of Object.entries(keys)) {
    assert.equal(await jobs.once("reports", every as keyof typeof keys, {}, () => undefined)(due), true);
    await assert.rejects(client.begin("reports", key, { perName: true }), AlreadyDoneError);
  }
  const month = jobs.once(
    "reports",
    (at) => at.toISOString().slice(0, 7),
    { perName: false },
    () => undefined,
  );
  assert.equal(await month(due), true);
  await assert.rejects(client.begin("reports", "2026-11"), AlreadyDoneError);
  let given: Date | undefined;
  const began = Date.now();
  const key = (at: Date): string => {
    given = at;
    return "now";
  };
  assert.equal(await jobs.once("reports", key, {}, () => undefined)("no time"), true);
  assert.ok(given !== undefined && given.getTime() >= began + 500 && given.getTime() <= Date.now() + 500);
});

void test("a process that waits runs the job of one that has failed, and no more often than allowed", async (t) => {
  const fleet = await Fleet.start(t);
  const due = new Date();
  const mine = new Error("mine");
  const begun = new AbortController();
  const end = new AbortController();
  const { client, jobs } = fleet.process("a");
  const failing = jobs.once("reports", "day", {}, async () => {
    begun.abort();
    await aborted(end.signal);
    throw mine;
  });
  const running = failing(due);
  await aborted(begun.signal);
  const takesOver = fleet.process("b").jobs.once("reports", "day", {}, () => undefined);
  const waiting = takesOver(due);
  await until("it waits", PATIENT, async () => (await client.getLock("reports")).waiters.length === 1);
  end.abort();
  assert.equal(await running, false);
  assert.equal(await waiting, true);
  assert.deepEqual(fleet.errors, [mine]);
  const twice = jobs.once("others", "day", { maxAttempts: 1 }, () => {
    throw mine;
  });
  assert.equal(await twice(due), false);
  assert.equal(await twice(due), false);
  assert.ok(fleet.errors[2] instanceof NotRepeatedError);
});

void test("a tick that waits too long, or while its jobs are closed, is skipped", async (t) => {
  const fleet = await Fleet.start(t);
  const { client, jobs } = fleet.process("a");
  const lock = await client.acquire("reports");
  const job = (): void => assert.fail("it is done by another");
  assert.equal(await jobs.once("reports", "day", { wait: 0 }, job)(), false);
  assert.equal(await jobs.once("reports", "day", { wait: 0.05 }, job)(), false);
  const waiting = jobs.once("reports", "day", {}, job)();
  await until("it waits", PATIENT, async () => (await client.getLock("reports")).waiters.length === 1);
  await jobs.close();
  assert.equal(await waiting, false);
  assert.deepEqual(fleet.errors, []);
  await lock.release();
});

void test("a job that is done once is told that its lock is lost, and at shutdown to end", async (t) => {
  const fleet = await Fleet.start(t);
  const { client, jobs } = fleet.process("a");
  const due = new Date("2026-11-29T03:00:00Z");
  const tick = jobs.once("reports", "day", {}, async (signal) => {
    await fleet.sidecar.expireLock("reports");
    await aborted(signal);
    await client.config.put("report", "late");
  });
  assert.equal(await tick(due), false);
  assert.ok(fleet.errors[0] instanceof LostError);
  const begun = new AbortController();
  const stopped = jobs.once("others", "day", {}, async (signal) => {
    begun.abort();
    await aborted(signal);
    signal.throwIfAborted();
  });
  const running = stopped(due);
  await aborted(begun.signal);
  await jobs.close(0);
  assert.equal(await running, false);
  const again = fleet.process("b").jobs;
  assert.equal(await again.once("others", "day", { skipLost: true }, () => undefined)(due), true); // it had failed
  assert.equal(await again.once("reports", "day", { skipLost: true }, () => undefined)(due), false); // it was lost
  assert.ok(fleet.errors.at(-1) instanceof NotRepeatedError);
});

void test("a job that has run has run even if its success cannot be recorded", async (t) => {
  const fleet = await Fleet.start(t);
  const { jobs } = fleet.process("a");
  const { client } = fleet.process("b");
  const tick = jobs.once("reports", "day", {}, async (signal) => {
    await fleet.sidecar.expireLock("reports");
    await aborted(signal);
    await (await client.begin("reports", "2026-11-29", { perName: true })).release();
  });
  assert.equal(await tick(new Date("2026-11-29T03:00:00Z")), true);
  assert.ok(fleet.errors[0] instanceof SupersededError);
  assert.equal(fleet.errors.length, 1);
});

void test("a key by a function is that of the day where the job is planned", async (t) => {
  const fleet = await Fleet.start(t);
  const { jobs } = fleet.process("a");
  let runs = 0;
  const dayIn = (timeZone: string) => (due: Date) => due.toLocaleDateString("sv", { timeZone });
  const job = (): void => {
    runs++;
  };
  const [there, utc] = [jobs.once("there", dayIn("Europe/Berlin"), {}, job), jobs.once("utc", "day", {}, job)];
  const due = ["2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z"].map((at) => new Date(at)); // each at 01:00 in Berlin
  const ran = [];
  for (const at of due) {
    ran.push(await there(at), await utc(at));
  }
  assert.deepEqual(ran, [true, true, true, false]);
  assert.equal(runs, 3);
});
