// A client process of the fault test that uses the TypeScript client: it does what ../caller/stand.go does, and notes it in the same form.
//
// It takes an order as one line of JSON from its input, and carries it out until the input ends. docs/histories.md has the events.
import { openSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

import { Client, LostError, SidekeeperError } from "../../../clients/typescript/dist/src/index.js";

const CALLERS = 5;
const LOCKS = 16;
const CODES = [
  "OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied", "ResourceExhausted",
  "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated",
];

// Numbers of JSON are too short for nanoseconds and for tokens: what is one of them is written as it stands.
const text = (event) => JSON.stringify(event, (_, value) => (typeof value === "bigint" ? `#${value}#` : value)).replaceAll(/"#(-?\d+)#"/g, "$1");

const lines = createInterface({ input: process.stdin });
const order = JSON.parse((await lines[Symbol.asyncIterator]().next()).value);
const stopping = new AbortController();
process.stdin.on("end", () => stopping.abort());
process.stdin.resume();

const now = () => process.hrtime.bigint() + BigInt(order.ahead);

const file = openSync(`${order.histories}/${String(order.client).padStart(5, "0")}.history`, "ax", 0o644);
const note = (event) => writeSync(file, `${text({ at: now(), client: order.client, ...event })}\n`);
const clocks = () => note({ kind: "clocks", wall: BigInt(Date.now()) * 1_000_000n });

const between = (least, most) => least + Math.random() * (most - least);

/** Waits for a while, and says whether to go on. */
const pause = (milliseconds) =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      stopping.signal.removeEventListener("abort", done);
      resolve(!stopping.signal.aborted);
    };
    const timer = setTimeout(done, stopping.signal.aborted ? 0 : milliseconds);
    stopping.signal.addEventListener("abort", done);
  });

let newest = 0;

/** What one caller does with one lock, or as one member. */
class Operation {
  constructor(caller, begins) {
    this.caller = caller;
    this.isLock = begins.lock !== undefined;
    this.number = ++newest;
    this.first = 0n;
    this.written = 0n;
    this.options = { owner: `${order.client}/${this.number}`, signal: stopping.signal };
    this.note({ sidecar: order.sidecar, resumes: order.resumes, repeats: true, ...begins });
  }

  note(event) {
    note({ op: this.number, caller: this.caller, ...event });
  }

  end(error) {
    const cause = error instanceof LostError ? error.cause : error;
    if (stopping.signal.aborted && !(cause instanceof SidekeeperError) && cause !== undefined) {
      this.note({ kind: "ended", code: "Canceled", byUser: true });
    } else if (cause instanceof SidekeeperError) {
      this.note({ kind: "ended", code: CODES[cause.code], reason: cause.reason });
    } else {
      this.note({ kind: "ended", code: cause === undefined ? "OK" : "Unknown", reason: cause === undefined ? "" : String(cause) });
    }
  }

  /** Notes now and then for how long the caller has been sure of a lock. */
  look(held) {
    const asked = now();
    if (!this.isLock || !held.valid) {
      return;
    }
    this.first ||= now();
    if (asked >= this.first && asked - this.written > 100_000_000n) {
      this.written = asked;
      this.note({ kind: "believed", from: this.first, to: asked });
    }
  }

  /** Keeps something for a while and gives it up, unless it is lost before. */
  async keep(held, most, giveUp) {
    const over = performance.now() + between(200, most);
    while (performance.now() < over && held.error === undefined && (await pause(30))) {
      this.look(held);
    }
    const lost = held.error;
    if (lost === undefined) {
      this.note({ kind: "releasing" });
    } else {
      this.end(lost);
    }
    const error = await giveUp().catch((failed) => failed);
    if (lost === undefined) {
      this.end(error);
    }
  }

  /** What has begun; nothing if it has not, which is noted. */
  async begun(beginning) {
    return beginning.catch((error) => {
      this.end(error);
    });
  }
}

async function hold(client, caller, name) {
  const operation = new Operation(caller, { kind: "called", lock: name, mode: "exclusive" });
  const told = {
    onQueued: ({ position }) => operation.note({ kind: "queued", position }),
    onSuspended: () => operation.note({ kind: "suspended" }),
    onResumed: () => operation.note({ kind: "resumed" }),
  };
  const lock = await operation.begun(client.acquire(name, { ...operation.options, ...told }));
  if (lock !== undefined) {
    operation.note({ kind: "granted", token: BigInt(lock.fencingToken) });
    await operation.keep(lock, 3_000, () => lock.release());
  }
}

async function belong(client, caller) {
  const group = `${order.prefix}/group`;
  const member = `${order.slot}-${caller - 1}`;
  const operation = new Operation(caller, { kind: "joining", group, member });
  const joined = await operation.begun(client.join(group, member, { onConflict: "wait", ...operation.options }));
  if (joined !== undefined) {
    operation.note({ kind: "joined", incarnation: BigInt(joined.incarnation) });
    await operation.keep(joined, 20_000, () => joined.leave());
  }
}

async function goAbout(client, caller) {
  const name = `${order.prefix}/stand/${(order.slot * (CALLERS - 1) + caller - 1) % LOCKS}`;
  while (await pause(between(0, 200))) {
    await (caller === CALLERS ? belong(client, caller) : hold(client, caller, name));
  }
}

clocks();
const client = new Client({ address: order.address });
await Promise.all(Array.from({ length: CALLERS }, (_, index) => goAbout(client, index + 1)));
client.close();
clocks();
process.exit(0);
