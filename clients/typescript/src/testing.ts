/**
 * Sidecars for tests of applications that use Sidekeeper: `sidekeeper dev`, the program that runs in production, with an ensemble in memory.
 * Each has an ensemble of its own, starts within a fraction of a second, and fails as sidecars and ensembles do in production when a test asks
 * for it. It stands on no framework: start one in a test or in a hook of node:test, Jest or Vitest, and stop it there.
 *
 * The program is what SIDEKEEPER_PROGRAM names, or `sidekeeper` on PATH. It ends with the tests, even if they are killed.
 *
 * @packageDocumentation
 */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";

import { Client as Channel, credentials } from "@grpc/grpc-js";

import { Client } from "./client.js";
import { DevServiceService, type ExpireLeaseRequest } from "./gen/sidekeeper/dev/v1/dev.js";
import { checkOptions, timespan } from "./options.js";
import { type Stub, call, stubOf } from "./transport.js";
import { duration } from "./types.js";

/** The environment variable that names the program. */
export const PROGRAM_VARIABLE = "SIDEKEEPER_PROGRAM";

/** Seconds that a fault may take to be done, and the program to end. */
const PATIENCE = 30;

/** How a sidecar is. */
export interface SidecarOptions {
  /**
   * How many seconds a lease survives without the ensemble unless its caller asks for another time: from 2.2 to 20. By default it is 6: a
   * lease is suspended about a second after the ensemble has fallen silent, and lost after about four.
   */
  readonly sessionTimeout?: number;
}

type Child = ChildProcessByStdio<Writable, Readable, null>;

/**
 * Starts a sidecar and settles when it serves. Rejects with an error that says so if there is no program, or if it does not start; the program
 * has written the reason to standard error then.
 */
export async function startSidecar(options: SidecarOptions = {}): Promise<Sidecar> {
  checkOptions(options, { sessionTimeout: timespan });
  const { sessionTimeout } = options;
  const flags = ["--until-input-ends", "--listen=", "--drain-timeout=0s", "--log-level=error"];
  if (sessionTimeout !== undefined) {
    flags.push(`--session-timeout=${sessionTimeout}s`);
  }
  // It ends when its input does, which nothing is written to: with this process, however that ends.
  const child = spawn(process.env[PROGRAM_VARIABLE] ?? "sidekeeper", ["dev", ...flags], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.on("error", () => undefined); // it has ended already
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return new Sidecar(child, await listening(child), ended);
}

/** Where it listens, as soon as it says so. */
async function listening(child: Child): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const address = /callers: +(unix:\/\/[^\s,]+)[\s,]/.exec(said)?.[1];
      if (address !== undefined) {
        resolve(address);
      }
    });
    child.once("error", (error: NodeJS.ErrnoException) => reject(error.code === "ENOENT" ? missing(child.spawnfile) : error));
    child.once("exit", (code) => reject(new Error(`${child.spawnfile} dev does not start: exit code ${code}`)));
  });
}

function missing(program: string): Error {
  return new Error(
    `no program "${program}" to start a sidecar with: put sidekeeper on PATH, or its path into ${PROGRAM_VARIABLE}. ` +
      "It is one file, from https://github.com/sidekeeper/sidekeeper/releases",
  );
}

/** A running sidecar on a Unix socket; see startSidecar. The methods that are faults reject with SidekeeperError. */
export class Sidecar implements AsyncDisposable {
  private readonly channel: Channel;
  private readonly dev: Stub<typeof DevServiceService>;
  private made: Client | undefined;

  /** @internal */
  constructor(
    private readonly child: Child,
    /** Where it listens: `unix:///…`, as clients and gRPC in other languages understand it. */
    readonly address: string,
    private readonly ended: Promise<void>,
  ) {
    // Tests that do not stop it end all the same. Pipes have unref as sockets have it.
    for (const part of [child, child.stdin, child.stdout] as unknown as { unref: () => void }[]) {
      part.unref();
    }
    this.channel = new Channel(address, credentials.createInsecure());
    this.dev = stubOf(this.channel, DevServiceService);
  }

  /** A client of the sidecar. It is made when it is first asked for, and closed with the sidecar. */
  get client(): Client {
    return (this.made ??= new Client({ address: this.address }));
  }

  /** Closes the client and stops the sidecar. Locks that others hold are lost. Stopping again does nothing. */
  async stop(): Promise<void> {
    this.made?.close();
    this.channel.close();
    this.child.ref();
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill("SIGKILL"), PATIENCE * 1000);
    await this.ended;
    clearTimeout(timer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /**
   * Has the ensemble answer no one for that many seconds, as if the network to it had been cut. What is held is suspended, and lost if the
   * silence outlasts its validity. The newest call counts; 0 ends a silence at once.
   */
  async suspend(seconds: number): Promise<void> {
    await call(this.dev.suspend, { duration: duration(seconds) }, PATIENCE);
  }

  /** Has each lock granted that many seconds later than its turn comes, from now on. Meanwhile its caller waits at the head of the queue. */
  async delayGrants(seconds: number): Promise<void> {
    await call(this.dev.delayGrants, { delay: duration(seconds) }, PATIENCE);
  }

  /**
   * Expires the leases that hold a lock, as the ensemble does with those that it has not heard of for too long. It settles when their callers
   * have been told and the lock is free. Rejects if no one holds it.
   */
  async expireLock(name: string): Promise<void> {
    await this.expire({ $case: "lock", value: name });
  }

  /** Expires a lease by its id, as expireLock does. */
  async expireLease(id: string): Promise<void> {
    await this.expire({ $case: "leaseId", value: id });
  }

  /** Expires every lease of the sidecar, as expireLock does, and returns how many there were. */
  async expireAll(): Promise<number> {
    return this.expire({ $case: "all", value: true });
  }

  private async expire(leases: ExpireLeaseRequest["leases"]): Promise<number> {
    return (await call(this.dev.expireLease, { leases }, PATIENCE)).expired;
  }
}
