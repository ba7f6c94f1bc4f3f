/** A sidecar for tests: `sidekeeper dev`, the real program with an ensemble in memory. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

import { Client as Channel, credentials } from "@grpc/grpc-js";

import { sleep } from "../src/clock.js";
import { AssignmentServiceService } from "../src/gen/sidekeeper/assignment/v1/assignment.js";
import { DevServiceService } from "../src/gen/sidekeeper/dev/v1/dev.js";
import { LockServiceService } from "../src/gen/sidekeeper/lock/v1/lock.js";
import { Policy } from "../src/gen/sidekeeper/once/v1/once.js";
import { Misfire, ScheduleServiceService, State } from "../src/gen/sidekeeper/schedule/v1/schedule.js";
import { Client } from "../src/index.js";
import { type Stub, call, stubOf } from "../src/transport.js";

/** The repository. Tests run from dist/test. */
export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../../..");

/** Seconds after which something does not happen any more. */
export const PATIENT = 30;

/** The sidecar's program: SIDEKEEPER_PROGRAM, or built from this tree. */
export function program(): string {
  const given = process.env["SIDEKEEPER_PROGRAM"];
  if (given !== undefined) {
    return given;
  }
  const built = path.join(ROOT, "bin", "sidekeeper");
  if (!existsSync(built)) {
    execFileSync("go", ["build", "-o", "bin/", "./cmd/sidekeeper"], { cwd: ROOT });
  }
  return built;
}

/** Returns when something has happened, within so many seconds. */
export async function until(what: string, within: number, happened: () => boolean | Promise<boolean>): Promise<number> {
  const began = performance.now();
  const took = (): number => (performance.now() - began) / 1000;
  while (!(await happened())) {
    if (took() > within) {
      throw new Error(`${what}: not within ${within} s`);
    }
    await sleep(0.005);
  }
  return took();
}

/** Schedules of a sidecar, and what became of their runs. */
export class Schedules {
  private readonly stub: Stub<typeof ScheduleServiceService>;

  constructor(channel: Channel) {
    this.stub = stubOf(channel, ScheduleServiceService);
  }

  /** Makes a schedule whose next tick is far away. */
  async put(name: string): Promise<void> {
    const usual = { misfire: Misfire.UNSPECIFIED, startWithin: undefined, onLoss: Policy.UNSPECIFIED, paused: undefined };
    await call(this.stub.put, { name, cron: "0 0 29 2 *", timeZone: "", ...usual });
  }

  /** Asks for a run. */
  async run(name: string, id: string): Promise<void> {
    await call(this.stub.run, { name, id });
  }

  /** What became of runs, the newest first. */
  async history(name: string): Promise<string[]> {
    const { outcomes } = await call(this.stub.history, { name });
    return outcomes.map(({ runId, state, attempt, note }) => {
      const ended = `${runId} ${State[state].toLowerCase()} ${attempt}`;
      return note === "" ? ended : `${ended}: ${note}`;
    });
  }
}

/** Returns when a process has ended. */
async function killed(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  await new Promise((resolve) => {
    child.once("exit", resolve);
    child.kill("SIGKILL");
  });
}

/** A sidecar that can be frozen, killed, and started again at the same address. Its ensemble ends with it. */
export class Sidecar {
  readonly address: string;
  /** Where it listens over TCP, with the certificates. */
  secureAddress = "";
  /** Where programs of ZooKeeper connect, and no gRPC is spoken. */
  ensembleAddress = "";
  /** Where the sidecar listens that was served last at this ensemble. */
  servedAddress = "";
  private readonly served: ChildProcess[] = [];
  /** Where its socket and its certificates are. */
  readonly folder = mkdtempSync(path.join(os.tmpdir(), "sk")); // short, since the path of a Unix socket is
  private readonly channel: Channel;
  private readonly dev: Stub<typeof DevServiceService>;
  private readonly locks: Stub<typeof LockServiceService>;
  private readonly sets: Stub<typeof AssignmentServiceService>;
  readonly schedules: Schedules;
  private child: ChildProcess | undefined;

  private constructor(private readonly sessionTimeout: string) {
    this.address = `unix://${this.folder}/s.sock`;
    this.channel = new Channel(this.address, credentials.createInsecure());
    this.dev = stubOf(this.channel, DevServiceService);
    this.locks = stubOf(this.channel, LockServiceService);
    this.sets = stubOf(this.channel, AssignmentServiceService);
    this.schedules = new Schedules(this.channel);
  }

  static async start(sessionTimeout = "4s"): Promise<Sidecar> {
    const sidecar = new Sidecar(sessionTimeout);
    await sidecar.start();
    return sidecar;
  }

  async start(): Promise<void> {
    const listen = ["--listen", "127.0.0.1:0", "--listen", this.address, "--tls-folder", this.folder];
    const flags = [...listen, "--log-level", "error", "--session-timeout", this.sessionTimeout];
    const env = { ...process.env, TMPDIR: this.folder }; // for what it leaves when it is killed
    const child = spawn(program(), ["dev", ...flags], { env, stdio: ["ignore", "pipe", "inherit"] });
    this.child = child;
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
    await until("the sidecar starts", PATIENT, () => {
      if (child.exitCode !== null) {
        throw new Error(`the sidecar ended with ${child.exitCode}`);
      }
      return said.includes("Ctrl-C here stops it");
    });
    this.secureAddress = /callers: .* (127\.0\.0\.1:\d+)/.exec(said)?.[1] ?? "";
    this.ensembleAddress = /ensemble: +(127\.0\.0\.1:\d+)/.exec(said)?.[1] ?? "";
  }

  /** Starts a sidecar as in production, in the folder of the certificates and at the same ensemble. */
  async serve(given: string, policy: string): Promise<void> {
    const usual = ["--zookeeper", this.ensembleAddress, "--tick-time", "1s", "--listen", "127.0.0.1:0"];
    const flags = [...usual, "--operator-listen", "", "--audit-log", "off", "--log-level", "error"];
    flags.push(...given.split(" ").filter((flag) => flag !== ""));
    if (policy !== "") {
      writeFileSync(path.join(this.folder, "policy.yaml"), policy);
      flags.push("--policy", "policy.yaml");
    }
    // Traces are of a sidecar that has an ensemble of its own.
    const env = { ...process.env, SIDEKEEPER_TEST_TRACES: "" };
    const child = spawn(program(), ["serve", ...flags], { cwd: this.folder, env, stdio: ["ignore", "pipe", "inherit"] });
    this.served.push(child);
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
    await until("the sidecar serves", PATIENT, () => said.includes("\n"));
    this.servedAddress = /listening on (127\.0\.0\.1:\d+)/.exec(said)?.[1] ?? "";
  }

  /** A certificate or key that it has made. */
  pem(name: "ca" | "client" | "client-key" | "expired" | "expired-key"): Buffer {
    return readFileSync(path.join(this.folder, `${name}.pem`));
  }

  /** Sends a signal. A sidecar that is frozen stands still when this returns, or has ended. */
  send(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
    const state = `/proc/${this.child?.pid}/stat`;
    while (signal === "SIGSTOP" && existsSync(state) && !/\) [TZ] /.test(readFileSync(state, "utf8"))) {
      // a moment
    }
  }

  async kill(): Promise<void> {
    const { child } = this;
    this.child = undefined;
    await Promise.all([child, ...this.served.splice(0)].map(killed));
  }

  async end(): Promise<void> {
    await this.kill();
    this.channel.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Has the lease of a lock's holder expire, or all leases. */
  async expire(lock?: string): Promise<void> {
    const leases = lock === undefined ? ({ $case: "all", value: true } as const) : ({ $case: "lock", value: lock } as const);
    await call(this.dev.expireLease, { leases });
  }

  /** Ends the hold of a lock's holder as an operator does, and sees that its place is gone in time. */
  async break(lock: string, within: number): Promise<void> {
    const { view } = await call(this.locks.get, { name: lock });
    const fencingToken = view?.holders[0]?.token ?? 0n;
    await call(this.locks.break, { name: lock, fencingToken, reason: "stuck", forceAfter: undefined }, within);
  }

  /** Makes a set of items, or gives it others. */
  async define(set: string, ...items: string[]): Promise<void> {
    await call(this.sets.define, { set, items, count: 0, drop: true });
  }

  /** Whether it has ended, by itself or because it was told to. */
  hasExited(): boolean {
    return this.child?.exitCode !== null || this.child.signalCode !== null;
  }

  /** Silences the ensemble for so many seconds. */
  async suspend(seconds: number): Promise<void> {
    await call(this.dev.suspend, { duration: { seconds: BigInt(seconds), nanos: 0 } });
  }
}

/** A sidecar of a test's own, and a client of it. */
export async function connected(t: TestContext): Promise<{ sidecar: Sidecar; client: Client }> {
  const sidecar = await Sidecar.start();
  const client = new Client({ address: sidecar.address });
  t.after(async () => {
    client.close();
    await sidecar.end();
  });
  return { sidecar, client };
}
