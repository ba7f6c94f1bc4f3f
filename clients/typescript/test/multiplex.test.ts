/** What is said on the stream of a lease. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";

import { Server, ServerCredentials, type ServerDuplexStream, type ServiceError, status } from "@grpc/grpc-js";

import { BarrierServiceService, type LeaveRequest } from "../src/gen/sidekeeper/barrier/v1/barrier.js";
import { sleep, use } from "../src/clock.js";
import { LeaseServiceService, type MultiplexRequest, type MultiplexResponse } from "../src/gen/sidekeeper/lease/v1/lease.js";
import { LockServiceService, type ReleaseRequest } from "../src/gen/sidekeeper/lock/v1/lock.js";
import {
  type BarrierEntry,
  Client,
  EnsembleDeniedError,
  EnsembleUnreachableError,
  InvalidFieldError,
  Jobs,
  LeaseClosedError,
  LeaseLimitError,
  LeaseLostError,
  LockBrokenError,
  LockHeldError,
  LostError,
  ReleaseUnconfirmedError,
  SidekeeperError,
} from "../src/index.js";
import { seconds } from "../src/types.js";
import { PATIENT, until } from "./sidecar.js";

function duration(seconds: bigint): { seconds: bigint; nanos: number } {
  return { seconds, nanos: 0 };
}

/** A sidecar that says on the streams of leases what a test tells it to. Unless told otherwise, it does what it is asked to. */
class Script {
  address: string;
  /** What was asked for, in order: `open`, `check`, `start 2 orders`, `stop 2`, `no more`, `close`, `Release h2`, `Leave h2`. */
  readonly asked: string[] = [];
  answers = true;
  checks = true;
  /** What ends the streams of the next leases, when they are asked for or something is started on them. */
  readonly refusals: Partial<ServiceError>[] = [];
  readonly losses: Partial<ServiceError>[] = [];
  /** What the next attempts to leave a barrier are answered with. */
  readonly stays: Partial<ServiceError>[] = [];
  /** What Release is answered with, if it is an error. */
  unreleased: Partial<ServiceError> | null = null;
  /** How long what is started may wait, in seconds. */
  readonly waits: (number | undefined)[] = [];
  openingTakes = 0;
  resumable = false;
  private stream: ServerDuplexStream<MultiplexRequest, MultiplexResponse> | undefined;
  private readonly folder = mkdtempSync(path.join(os.tmpdir(), "sk"));
  private readonly server = new Server();

  constructor() {
    this.address = `unix://${this.folder}/s.sock`;
    this.server.addService(LeaseServiceService, {
      multiplex: (stream: ServerDuplexStream<MultiplexRequest, MultiplexResponse>) => {
        this.stream = stream;
        stream.on("data", ({ request }: MultiplexRequest) => this.answer(request));
        stream.on("end", () => {
          if (!stream.cancelled) {
            this.asked.push("no more");
          }
          stream.end();
        });
      },
      close: (_: unknown, callback: (error: null, reply: object) => void) => {
        this.asked.push("close");
        callback(null, {});
        this.stream?.end();
      },
    });
    this.server.addService(LockServiceService, {
      release: (
        { request }: { request: ReleaseRequest },
        callback: (error: Partial<ServiceError> | null, reply: object) => void,
      ) => {
        this.asked.push(`Release ${request.holdId}`);
        callback(this.unreleased, {});
      },
    });
    this.server.addService(BarrierServiceService, {
      leave: ({ request }: { request: LeaveRequest }, callback: (error: Partial<ServiceError> | null, reply: object) => void) => {
        this.asked.push(`Leave ${request.holdId}`);
        callback(this.stays.shift() ?? null, {});
      },
    });
  }

  async start(overTcp = false): Promise<void> {
    const at = overTcp ? "127.0.0.1:0" : this.address;
    await new Promise<void>((resolve, reject) => {
      this.server.bindAsync(at, ServerCredentials.createInsecure(), (error, port) => {
        this.address = overTcp ? `127.0.0.1:${port}` : at;
        return error ? reject(error) : resolve();
      });
    });
  }

  stop(): void {
    this.server.forceShutdown();
    rmSync(this.folder, { recursive: true, force: true });
  }

  say(response: MultiplexResponse["response"]): void {
    this.stream?.write({ response });
  }

  opened(): void {
    this.say({ $case: "opened", value: { leaseId: "1e", ttl: duration(10n), resumable: this.resumable } });
  }

  grant(requestId: bigint): void {
    const value = { $case: "granted", value: { holdId: `h${requestId}`, fencingToken: requestId } } as const;
    this.say({ $case: "event", value: { requestId, event: { $case: "acquire", value: { event: value } } } });
  }

  enter(requestId: bigint): void {
    const value = { $case: "entered", value: { holdId: `h${requestId}`, token: requestId, round: 7n } } as const;
    this.say({ $case: "event", value: { requestId, event: { $case: "enter", value: { event: value } } } });
  }

  end(requestId: bigint, code = status.OK, reason = "", metadata: Record<string, string> = {}): void {
    const message = reason === "" ? "" : `${reason}: said the script`;
    this.say({ $case: "ended", value: { requestId, code, reason, message, metadata, retryDelay: undefined } });
  }

  get cancelled(): boolean {
    return this.stream?.cancelled === true;
  }

  /** Ends the stream with an error. */
  fail(code: status): void {
    this.stream?.emit("error", Object.assign(new Error("said the script"), { code }));
  }

  /** Ends the stream of a lease, if there is an error for that. */
  endStream(error: Partial<ServiceError> | undefined): void {
    if (error !== undefined) {
      this.stream?.emit("error", error);
      this.stream = undefined;
    }
  }

  async sees(...asked: string[]): Promise<void> {
    await until(String(asked), PATIENT, () => this.asked.length >= asked.length);
    assert.deepEqual(this.asked.splice(0), asked);
  }

  private answer(request: MultiplexRequest["request"]): void {
    switch (request?.$case) {
      case "open":
        this.asked.push(["open", request.value.owner].filter(Boolean).join(" "));
        this.endStream(this.refusals.shift());
        setTimeout(() => this.opened(), this.openingTakes);
        break;
      case "resume":
        this.asked.push("resume");
        break;
      case "check":
        this.asked.push("check");
        if (this.checks) {
          this.say({ $case: "checked", value: { checkId: request.value.checkId, validFor: duration(60n) } });
        }
        break;
      case "start": {
        const { requestId, request: of } = request.value;
        const { leaseId } = of?.value ?? {};
        const named = of?.$case === "join" || of?.$case === "share" ? of.value.member : undefined;
        const name = named ?? (of?.$case === "acquireAll" ? "several" : (of?.value as { name: string } | undefined)?.name);
        this.asked.push(`start ${requestId} ${name}${leaseId}`);
        const wait = of?.$case === "acquire" ? of.value.waitTimeout : undefined;
        this.waits.push(wait && seconds(wait));
        this.endStream(this.losses.shift());
        if (this.answers) {
          this.grant(requestId);
        }
        break;
      }
      case "stop":
        this.asked.push(`stop ${request.value.requestId}`);
        if (this.answers) {
          this.end(request.value.requestId);
        }
    }
  }
}

async function scripted(t: TestContext, overTcp = false): Promise<{ script: Script; client: Client }> {
  const script = new Script();
  await script.start(overTcp);
  const client = new Client({ address: script.address });
  t.after(() => {
    client.close();
    script.stop();
  });
  return { script, client };
}

void test("a lock of a lease takes two messages, and no call or question of its own", async (t) => {
  const { script, client } = await scripted(t);
  const lease = await client.openLease();
  await script.sees("open", "check");
  for (const id of [2, 3, 4]) {
    const lock = await client.acquire("orders", { lease });
    assert.equal(lock.fencingToken, BigInt(id));
    assert.ok(lock.valid && Math.abs(lock.validFor - lease.validFor) < 1);
    await lock.release();
    assert.deepEqual([lock.valid, lock.error], [false, undefined]);
    await script.sees(`start ${id} orders`, `stop ${id}`);
  }
});

void test("a release settles when the place is gone", async (t) => {
  const { script, client } = await scripted(t);
  const lease = await client.openLease();
  const lock = await client.acquire("orders", { lease });
  script.answers = false;
  let released = false;
  const releasing = lock.release().then(() => (released = true));
  await script.sees("open", "check", "start 2 orders", "stop 2");
  await new Promise(setImmediate);
  assert.equal(released, false);
  script.end(2n);
  await releasing;
});

/** Has the sidecar die when the work has ended, before it answers to the release. */
async function dies(script: Script): Promise<void> {
  await until("it is released", PATIENT, () => script.asked.includes("stop 2"));
  script.unreleased = { code: status.UNAVAILABLE, details: "it is gone" };
  script.fail(status.UNAVAILABLE);
}

void test("work whose release is not confirmed is not to be repeated, and its result is there", async (t) => {
  const { script, client } = await scripted(t);
  const doing = client.withLock("orders", {}, () => {
    script.answers = false;
    return "the result";
  });
  await dies(script);
  await assert.rejects(doing, (error) => {
    assert.ok(error instanceof ReleaseUnconfirmedError);
    assert.match(error.message, /^lock orders: the work has ended, but its release is not confirmed: UNAVAILABLE: /);
    assert.deepEqual([error.code, error.reason, error.result], [status.ABORTED, "RELEASE_UNCONFIRMED", "the result"]);
    return true;
  });
});

void test("work that failed fails with its own error, though its release is not confirmed", async (t) => {
  const { script, client } = await scripted(t);
  const doing = client.withLock("orders", {}, () => {
    script.answers = false;
    throw new RangeError("mine");
  });
  await dies(script);
  await assert.rejects(doing, RangeError);
});

void test("a job whose release is not confirmed was run", async (t) => {
  const { script, client } = await scripted(t);
  const errors: unknown[] = [];
  const jobs = new Jobs(client, { onError: (error) => errors.push(error) });
  const ran = jobs.locked("orders", {}, () => {
    script.answers = false;
  })();
  await dies(script);
  assert.equal(await ran, true);
  assert.ok(errors.length === 1 && errors[0] instanceof ReleaseUnconfirmedError);
});

void test("locks of one lease are acquired and released at once", async (t) => {
  const { client } = await scripted(t);
  const lease = await client.openLease();
  const locks = await Promise.all(["a", "b", "c", "d", "e", "f"].map(async (name) => client.acquire(name, { lease })));
  assert.equal(new Set(locks.map(({ fencingToken }) => fencingToken)).size, 6);
  await Promise.all(locks.map(async (lock) => lock.release()));
});

void test("the end of a lock of a lease is acknowledged once, when its listeners have run", async (t) => {
  const { script, client } = await scripted(t);
  const lease = await client.openLease();
  const lock = await client.acquire("orders", { lease });
  let asked: string[] = [];
  const ended = lock.ended.then(() => (asked = [...script.asked]));
  script.answers = false;
  script.end(2n, status.ABORTED, "LOCK_BROKEN", { by: "me" });
  await ended;
  assert.deepEqual(asked, ["open", "check", "start 2 orders"]);
  assert.ok(lock.error?.cause instanceof LockBrokenError);
  assert.equal(lock.error.cause.message, "said the script");
  assert.deepEqual(lock.error.cause.metadata, { by: "me" });
  await assert.rejects(lock.release(), (error) => error === lock.error);
  await script.sees("open", "check", "start 2 orders", "Release h2");
  script.answers = true;
  await client.acquire("stock", { lease });
  await script.sees("start 3 stock");
  assert.ok(lease.valid);
});

void test("a request that is refused ends alone, with what its single call would say", async (t) => {
  const { script, client } = await scripted(t);
  const lease = await client.openLease();
  script.answers = false;
  for (const [id, code, reason, kind] of [
    [2n, status.ABORTED, "LOCK_HELD", LockHeldError],
    [3n, status.PERMISSION_DENIED, "ENSEMBLE_DENIED", EnsembleDeniedError],
    [4n, status.INVALID_ARGUMENT, "INVALID_FIELD", InvalidFieldError],
  ] as const) {
    const refused = client.acquire("orders", { lease });
    await until("it is asked for", PATIENT, () => script.asked.includes(`start ${id} orders`));
    script.end(id, code, reason, { field: "name", rule: "is wrong" });
    await assert.rejects(refused, (error) => {
      assert.ok(error instanceof kind);
      assert.deepEqual([error.code, error.reason, error.message], [code, reason, "said the script"]);
      assert.deepEqual(error.fields, [{ field: "name", rule: "is wrong" }]);
      return true;
    });
  }
  assert.ok(lease.valid);
});

void test("a suspension of the lease reaches all who hold something, and nobody who waits", async (t) => {
  const { script, client } = await scripted(t);
  const lease = await client.openLease();
  const told: string[] = [];
  const options = (who: string): object => ({
    lease,
    onSuspended: (remaining: number) => told.push(`${who} suspended ${remaining}`),
    onResumed: () => told.push(`${who} resumed`),
  });
  const locks = await Promise.all(["a", "b"].map(async (name) => client.acquire(name, options(name))));
  script.answers = false;
  const waiting = assert.rejects(client.acquire("c", options("c")), LockHeldError);
  await until("it is asked for", PATIENT, () => script.asked.includes("start 4 c"));
  script.say({ $case: "suspended", value: { remaining: duration(3n) } });
  await until("it is suspended", PATIENT, () => told.length === 2);
  assert.deepEqual(
    [lease, ...locks].map(({ suspended }) => suspended),
    [true, true, true],
  );
  script.say({ $case: "resumed", value: {} });
  await until("it is resumed", PATIENT, () => told.length === 4);
  assert.deepEqual(
    [lease, ...locks].map(({ suspended }) => suspended),
    [false, false, false],
  );
  assert.deepEqual(told, ["a suspended 3", "b suspended 3", "a resumed", "b resumed"]);
  script.end(4n, status.ABORTED, "LOCK_HELD");
  await waiting;
});

void test("who gives up waiting for a lock of a lease stops it, and has no grant that crosses that", async (t) => {
  const { script, client } = await scripted(t);
  const lease = await client.openLease();
  script.answers = false;
  const controller = new AbortController();
  const waiting = client.acquire("orders", { lease, signal: controller.signal });
  await script.sees("open", "check", "start 2 orders");
  controller.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  script.grant(2n);
  script.answers = true;
  await client.acquire("orders", { lease });
  await script.sees("stop 2", "start 3 orders");
});

void test(
  "when the stream breaks, who waits and who holds is told so, and the end is acknowledged by a call",
  { timeout: 4500 },
  async (t) => {
    const { script, client } = await scripted(t);
    const lease = await client.openLease();
    const lock = await client.acquire("orders", { lease });
    const releasing = await client.acquire("prices", { lease });
    script.answers = false;
    const waiting = client.acquire("stock", { lease });
    const released = releasing.release();
    await script.sees("open", "check", "start 2 orders", "start 3 prices", "start 4 stock", "stop 3");
    script.fail(status.UNAVAILABLE);
    await assert.rejects(waiting, (error) => error instanceof SidekeeperError && error.code === status.UNAVAILABLE);
    await lock.ended;
    assert.equal(lock.error?.cause.code, status.UNAVAILABLE);
    assert.equal(lock.error.cause, lease.error?.cause);
    await released; // by a call, when what was asked for got no answer
    await script.sees("Release h2", "Release h3");
  },
);

void test("a lease that is closed ends what waits and what is held, which needs no acknowledgment", async (t) => {
  const { script, client } = await scripted(t);
  const lease = await client.openLease();
  const lock = await client.acquire("orders", { lease });
  script.answers = false;
  const waiting = client.acquire("stock", { lease });
  await script.sees("open", "check", "start 2 orders", "start 3 stock");
  const refused = assert.rejects(waiting, LeaseClosedError);
  await lease.close();
  await refused;
  assert.ok(lock.error?.cause instanceof LeaseClosedError);
  await (await client.openLease()).close();
  assert.ok(!script.asked.includes("Release h2"), String(script.asked));
});

void test("who waits so long has no lease of a sidecar that freezes after it", { timeout: 4500 }, async (t) => {
  const { script, client } = await scripted(t);
  script.checks = false;
  await assert.rejects(client.openLease({ wait: 0.001 }), /the sidecar does not answer/);
  await until("it is cancelled", PATIENT, () => script.cancelled);
});

void test("a stream that breaks while its validity is asked for holds nobody up", { timeout: 4500 }, async (t) => {
  const { script, client } = await scripted(t);
  script.checks = false;
  const refused = assert.rejects(client.openLease({ wait: 0 }), /said the script/);
  await script.sees("open", "check");
  script.fail(status.UNAVAILABLE);
  await refused;
});

const LOST = { code: status.ABORTED, details: "LEASE_LOST: it expired" };

/** A clock that can be put forward, as that of a machine which was suspended. */
function suspending(t: TestContext): (seconds: number) => void {
  let slept = 0;
  use({ coarse: 0, read: () => performance.now() / 1000 + slept });
  t.after(() => use(undefined));
  return (seconds) => {
    slept += seconds;
  };
}

void test("a lease on which nothing stands is not lost when its validity runs out", { timeout: 20_000 }, async (t) => {
  const suspend = suspending(t);
  const { script, client } = await scripted(t);
  const lease = await client.openLease();
  for (let round = 0; round < 2; round++) {
    script.checks = false;
    suspend(3600);
    const waiting = client.acquire("orders", { lease });
    await sleep(0.7); // in which the lease is looked at, and asked about
    assert.deepEqual([lease.valid, lease.validFor, lease.error, lease.signal.aborted], [false, 0, undefined, false]);
    assert.ok(!script.asked.some((asked) => asked.startsWith("start")));
    script.checks = true;
    const lock = await waiting;
    assert.ok(lock.valid && lease.valid);
    await lock.release();
    script.asked.length = 0;
  }
  const lock = await client.acquire("orders", { lease });
  script.checks = false;
  suspend(3600);
  await lease.ended;
  assert.ok(lock.error?.cause instanceof LeaseLostError && lease.error?.cause instanceof LeaseLostError);
});

void test("what is started on a lease that is not valid fails when no answer says that it is", async (t) => {
  const suspend = suspending(t);
  const { script, client } = await scripted(t);
  const lease = await client.openLease();
  script.checks = false;
  suspend(3600);
  await assert.rejects(client.acquire("orders", { lease, wait: 0 }), /the sidecar does not answer/);
  assert.equal(lease.error, undefined);
});

void test("a lease on which a release is under way is lost when its validity runs out", async (t) => {
  const suspend = suspending(t);
  const { script, client } = await scripted(t);
  const lease = await client.openLease();
  const lock = await client.acquire("orders", { lease });
  script.answers = false;
  script.checks = false;
  const refused = assert.rejects(lock.release(), LostError);
  await until("it is released", PATIENT, () => script.asked.includes("stop 2"));
  suspend(3600);
  await refused;
  assert.ok(lease.error?.cause instanceof LeaseLostError);
});

void test("a lock without a lease has one of its own, which ends with it without a call", async (t) => {
  const { script, client } = await scripted(t);
  const lock = await client.acquire("orders", { owner: "billing" });
  assert.ok(lock.valid);
  await lock.release();
  assert.equal(lock.error, undefined);
  await script.sees("open billing", "check", "start 2 orders", "stop 2", "no more");
});

void test("the wait of a lock without a lease is for both the lease and the lock", async (t) => {
  const { script, client } = await scripted(t);
  script.openingTakes = 50;
  for (const wait of [60, 0]) {
    await (await client.acquire("orders", { wait })).release();
  }
  const [left = 0, none] = script.waits;
  assert.ok(left > 0 && left <= 60 - 0.04, String(left));
  assert.equal(none, 0);
});

void test("a lease that is lost before its only lock is granted costs an attempt", async (t) => {
  const { script, client } = await scripted(t);
  script.losses.push(LOST);
  await (await client.acquire("orders")).release();
  script.losses.push(LOST);
  await assert.rejects(client.acquire("orders", { wait: 0 }), (error) => {
    assert.ok(error instanceof EnsembleUnreachableError && error.code === status.UNAVAILABLE);
    assert.equal(error.message, "nothing is held: it expired");
    return true;
  });
});

void test("that a lease is lost is said of its only lock first", async (t) => {
  const { script, client } = await scripted(t);
  script.answers = false;
  const tried = client.acquire("orders", { wait: 0 });
  await script.sees("open", "check", "start 2 orders");
  script.end(2n, status.ABORTED, "LEASE_LOST");
  await assert.rejects(tried, (error) => {
    assert.ok(error instanceof EnsembleUnreachableError && error.code === status.UNAVAILABLE);
    assert.equal(error.message, "nothing is held: said the script");
    return true;
  });
});

void test("a lease that cannot be opened is the error of its only lock", async (t) => {
  const { script, client } = await scripted(t);
  script.refusals.push({ code: status.RESOURCE_EXHAUSTED, details: "LEASE_LIMIT: too many" });
  await assert.rejects(client.acquire("orders"), LeaseLimitError);
});

void test("a lock is lost with the lease that it alone has", async (t) => {
  const { script, client } = await scripted(t);
  const lock = await client.acquire("orders");
  script.endStream(LOST);
  await lock.ended;
  assert.ok(lock.error?.cause instanceof LeaseLostError);
  await assert.rejects(lock.release(), LostError);
});

void test("a lease ends whose only lock was lost when that is released", async (t) => {
  const { script, client } = await scripted(t);
  const lock = await client.acquire("orders");
  script.end(2n, status.ABORTED, "LOCK_BROKEN");
  await lock.ended;
  assert.ok(!script.cancelled);
  await assert.rejects(lock.release(), LostError);
  await until("it is cancelled", PATIENT, () => script.cancelled);
});

void test("a lease that is reached over TCP ends with its stream, whatever the sidecar says", async (t) => {
  const { script, client } = await scripted(t, true);
  script.resumable = true;
  const lease = await client.openLease();
  const lock = await client.acquire("orders", { lease });
  script.fail(status.UNAVAILABLE);
  await until("the lock is lost", PATIENT, () => lock.error !== undefined);
  assert.equal(lock.error?.cause.code, status.UNAVAILABLE);
  assert.ok(!lease.valid);
});

void test("a lock that was released before its stream broke is released, though its place is gone", async (t) => {
  const { script, client } = await scripted(t);
  script.resumable = true;
  const lease = await client.openLease();
  const lock = await client.acquire("orders", { lease });
  script.answers = false;
  const releasing = lock.release();
  await script.sees("open", "check", "start 2 orders", "stop 2");
  script.fail(status.UNAVAILABLE);
  await script.sees("resume", "stop 2");
  script.opened();
  script.end(2n, status.ABORTED, "LOCK_BROKEN");
  await releasing;
  assert.equal(lock.error, undefined);
  assert.ok(lease.valid);
});

void test("a lock is lost that is released while its lease is away, and was broken before", async (t) => {
  const { script, client } = await scripted(t);
  script.resumable = true;
  const lease = await client.openLease();
  const lock = await client.acquire("orders", { lease });
  await script.sees("open", "check", "start 2 orders");
  script.answers = false;
  script.fail(status.UNAVAILABLE);
  await script.sees("resume");
  const releasing = lock.release();
  await script.sees("stop 2");
  script.opened();
  script.end(2n, status.ABORTED, "LOCK_BROKEN");
  await assert.rejects(releasing, LostError);
});

void test("an entry of a barrier is left once the sidecar knows it again, and is not asked for when its place is gone", async (t) => {
  const { script, client } = await scripted(t);
  script.answers = false;
  const lease = await client.openLease();
  const enter = async (id: bigint): Promise<BarrierEntry> => {
    const entering = client.enterBarrier("start", 1, { lease });
    await until("it is asked for", PATIENT, () => script.asked.includes(`start ${id} start`));
    script.enter(id);
    return entering;
  };
  const unknown = { code: status.NOT_FOUND, details: "HOLD_NOT_FOUND: said the script" };
  const known = await enter(2n);
  script.stays.push(unknown, { code: status.UNAVAILABLE, details: "away" }, unknown);
  await known.leave();
  await script.sees("open", "check", "start 2 start", "Leave h2", "Leave h2", "Leave h2", "Leave h2", "stop 2");

  const gone = await enter(3n);
  script.stays.push(unknown);
  script.end(3n);
  await gone.ended;
  await assert.rejects(gone.leave(), ReleaseUnconfirmedError);
  await script.sees("start 3 start", "Leave h3");
});
