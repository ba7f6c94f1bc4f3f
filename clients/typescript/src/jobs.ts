/** Jobs that a timer begins in each process of a fleet, and that one process runs. */

import os from "node:os";

import type { Client } from "./client.js";
import { failureOf, sleep, unlessAborted } from "./clock.js";
import type { Leadership } from "./election.js";
import { AlreadyDoneError, LockHeldError, ReleaseUnconfirmedError, WaitTimeoutError } from "./errors.js";
import { type Lock, runHolding } from "./lock.js";
import { type Attempt, ONCE_OPTIONS, type OnceOptions } from "./once.js";
import { type Rules, callback, checkArguments, checkOptions, oneOf, text, timespan } from "./options.js";
import { CALL_TIMEOUT, LONGEST_TIMER } from "./transport.js";

/** Seconds that jobs get to end when they are closed, before their signals are aborted. */
const CLOSE_GRACE = 10;

/** What is run. Its signal is aborted when the lock or the leadership is lost, and at shutdown. */
export type Job = (signal: AbortSignal) => Promise<void> | void;

/**
 * What a timer calls. It settles with whether the job was run here. It may be given when the tick was due, as a Date or as an object with a
 * `date`, which node-schedule and node-cron do; otherwise that is now.
 */
export type JobTick = (due?: unknown) => Promise<boolean>;

/**
 * What makes the key of a tick: its minute, hour or day in UTC, or a function of when the tick was due. A timer of another time zone may have two
 * ticks on one day in UTC when its clocks change: use a function that returns the day there.
 */
export type TickKey = "minute" | "hour" | "day" | ((due: Date) => string);

/** How much of a time in UTC makes each key. */
const KEY_LENGTHS = { minute: 16, hour: 13, day: 10 };

/** Milliseconds by which a timer may be early, as those of Node are by one, without being taken for the tick before. */
const EARLY = 500;

/** How jobs are run. */
export interface JobsOptions {
  /** What this process calls itself, for people and as a candidate: at most 128 bytes. By default its host's name and its process id. */
  readonly owner?: string;
  /**
   * Is called with what a job has thrown, with LostError, with ReleaseUnconfirmedError, whose job was run, and with the SidekeeperError of a
   * tick that could not ask for the lock, or whose job was run and its success not recorded; by default `console.error` is. What it throws,
   * the tick rejects with; otherwise none does.
   */
  readonly onError?: (error: unknown, name: string) => void;
}

export const JOBS_OPTIONS: Rules<JobsOptions> = { owner: text, onError: callback };

/** How a job is run under a lock. */
export interface LockedOptions {
  /**
   * Seconds for which the lock stays held from the grant on, however quick the job is, so that no process whose clock is behind runs it again
   * for the same tick. Choose more than clocks differ by, and less than the interval; by default 0.
   */
  readonly holdAtLeast?: number;
  /** For how many seconds the lock may be suspended before the signal is aborted; by default until it is lost. */
  readonly suspensionGrace?: number;
}

export const LOCKED_OPTIONS: Rules<LockedOptions> = { holdAtLeast: timespan, suspensionGrace: timespan };

/**
 * How a job is done once for each tick; see OnceOptions. In contrast to those, `perName` is true unless it is set: the job is not run for two
 * ticks at once, and a holder of the lock of its name excludes it.
 */
export type TickOptions = Pick<OnceOptions, "perName" | "keep" | "skipLost" | "skipFailed" | "maxAttempts" | "wait">;

const { perName, keep, skipLost, skipFailed, maxAttempts, wait } = ONCE_OPTIONS;
export const TICK_OPTIONS: Rules<TickOptions> = { perName, keep, skipLost, skipFailed, maxAttempts, wait };

/**
 * Runs jobs in one process at a time. It belongs to no framework: each job becomes a function without arguments, for setInterval, node-cron,
 * cron, node-schedule or whatever else keeps the time. A job is not run beside itself: a tick that comes while it runs is skipped.
 */
export class Jobs implements AsyncDisposable {
  private readonly owner: string;
  private readonly onError: (error: unknown, name: string) => void;
  /** Aborted when no job begins any more. */
  private readonly closing = new AbortController();
  /** Aborted when jobs are to end. */
  private readonly stopping = new AbortController();
  private readonly running = new Set<Promise<unknown>>();
  private readonly candidacies = new Map<string, Candidacy>();

  constructor(
    private readonly client: Client,
    options: JobsOptions = {},
  ) {
    checkOptions(options, JOBS_OPTIONS);
    this.owner = options.owner ?? `${os.hostname().slice(0, 100)}-${process.pid}`;
    this.onError = options.onError ?? ((error, name) => console.error(`job ${name}:`, error));
  }

  /**
   * Returns a function that runs the job if the lock is free, and skips it otherwise. What the job writes with the client is guarded by the
   * lock, as in withLock. The function settles when the lock is released.
   */
  locked(name: string, options: LockedOptions, job: Job): JobTick {
    checkArguments({ name, job });
    checkOptions(options, LOCKED_OPTIONS);
    return this.tick(name, async () => this.runLocked(name, options, job));
  }

  /**
   * Returns a function that runs the job once for each tick in the whole fleet, whatever the clocks and however quick the job. The processes
   * wait for the one that runs it, without a limit unless the options have a `wait`. If it has succeeded, they skip the tick. If it has
   * failed or was lost, the next one runs the job again, up to three times in all unless the options say otherwise. What the job writes with the
   * client is guarded by its attempt. A tick whose job may not be run again is reported with NotRepeatedError. A tick whose job has run settles
   * with true. If its success could not be recorded, the error is reported, too: another process may run the job again.
   */
  once(name: string, key: TickKey, options: TickOptions, job: Job): JobTick {
    checkArguments({ name, job });
    checkOptions(options, TICK_OPTIONS);
    if (typeof key !== "function") {
      oneOf(KEY_LENGTHS)("key", key);
    }
    return this.tick(name, async (due, ran) => this.runOnce(name, keyOf(key, timeOf(due)), options, job, ran));
  }

  /**
   * Returns a function that runs the job while this process leads the election, and skips it otherwise. The first call makes the process a
   * candidate, which it remains until it is closed. What the job writes with the client is guarded by the term.
   */
  led(election: string, job: Job): JobTick {
    checkArguments({ election, job });
    return this.tick(election, async () => this.runLed(election, job));
  }

  /**
   * Skips each later tick, and settles when jobs that run have ended, their locks are released and their elections resigned. After so many
   * seconds, by default 10, the signals of jobs that still run are aborted.
   */
  async close(grace = CLOSE_GRACE): Promise<void> {
    checkArguments({ grace });
    this.closing.abort(new Error("the jobs are closed"));
    const stop = (): void => this.stopping.abort(new Error("the jobs are closed, and are to end"));
    const timer = setTimeout(stop, Math.min(grace * 1000, LONGEST_TIMER));
    await Promise.allSettled([...this.running, ...[...this.candidacies.values()].map(async (candidacy) => candidacy.ended)]);
    clearTimeout(timer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** `run` calls `ran` when the job has ended without an error, if that counts whatever comes after it. */
  private tick(name: string, run: (due: unknown, ran: () => void) => Promise<boolean>): JobTick {
    let busy = false;
    return async (due) => {
      if (busy || this.closing.signal.aborted) {
        return false;
      }
      busy = true;
      const done = { hasRun: false };
      const running = run(due, () => {
        done.hasRun = true;
      });
      this.running.add(running);
      try {
        return await running;
      } catch (error) {
        this.onError(error, name);
        return done.hasRun || (error instanceof ReleaseUnconfirmedError && error.result === true);
      } finally {
        this.running.delete(running);
        busy = false;
      }
    };
  }

  private async runLocked(name: string, { holdAtLeast = 0, suspensionGrace }: LockedOptions, job: Job): Promise<boolean> {
    const lock = await this.take(name);
    if (lock === undefined) {
      return false;
    }
    const least = linked([lock.signal, this.stopping.signal], async (signal) => sleep(holdAtLeast, signal)).catch(
      () => undefined,
    );
    const limits = { signal: this.stopping.signal, ...(suspensionGrace !== undefined && { suspensionGrace }) };
    return runHolding(lock, limits, async (_, signal) => {
      try {
        await job(signal);
      } finally {
        await least;
      }
      return true;
    });
  }

  /** The lock, if it is free. A sidecar that does not answer is not waited for. */
  private async take(name: string): Promise<Lock | undefined> {
    try {
      return await linked([this.closing.signal, AbortSignal.timeout(CALL_TIMEOUT * 1000)], async (signal) =>
        this.client.acquire(name, { wait: 0, owner: this.owner, signal }),
      );
    } catch (error) {
      if (error instanceof LockHeldError || this.closing.signal.aborted) {
        return undefined;
      }
      throw error;
    }
  }

  private async runOnce(name: string, key: string, options: TickOptions, job: Job, ran: () => void): Promise<boolean> {
    const attempt = await this.begin(name, key, options);
    if (attempt !== undefined) {
      await runHolding(attempt, { signal: this.stopping.signal }, async (_, signal) => {
        await job(signal);
        ran();
      });
    }
    return attempt !== undefined;
  }

  /** The attempt, if there is something to do. */
  private async begin(name: string, key: string, options: TickOptions): Promise<Attempt | undefined> {
    try {
      return await this.client.begin(name, key, {
        perName: true,
        ...options,
        owner: this.owner,
        signal: this.closing.signal,
      });
    } catch (error) {
      const skipped = [AlreadyDoneError, LockHeldError, WaitTimeoutError].some((kind) => error instanceof kind);
      if (skipped || this.closing.signal.aborted) {
        return undefined;
      }
      throw error;
    }
  }

  private async runLed(election: string, job: Job): Promise<boolean> {
    const candidacy = this.candidacyIn(election);
    try {
      await candidacy.known;
    } catch (error) {
      if (this.closing.signal.aborted) {
        return false;
      }
      throw error;
    }
    return candidacy.run(this.stopping.signal, job);
  }

  private candidacyIn(election: string): Candidacy {
    let candidacy = this.candidacies.get(election);
    if (candidacy === undefined) {
      candidacy = new Candidacy(this.client, election, this.owner, this.closing.signal);
      this.candidacies.set(election, candidacy);
      void candidacy.ended.then(() => this.candidacies.delete(election));
    }
    return candidacy;
  }
}

/** This process as a candidate: until the signal is aborted, or until a campaign fails. */
class Candidacy {
  /** Settles when it is first known who leads; rejects if the campaign has failed before. */
  readonly known: Promise<void>;
  /** Settled when it is over, and nothing of it runs or leads. */
  readonly ended: Promise<void>;
  private leadership: Leadership | undefined;
  private readonly running = new Set<Promise<void>>();

  constructor(
    private readonly client: Client,
    private readonly election: string,
    private readonly owner: string,
    private readonly signal: AbortSignal,
  ) {
    let ended: Promise<void> = Promise.resolve();
    this.known = new Promise((resolve, reject) => {
      ended = this.stand(resolve).catch(reject);
    });
    this.known.catch(() => undefined); // perhaps no tick asks for it
    this.ended = ended;
  }

  /** Leads again and again, until a campaign fails. */
  private async stand(known: () => void): Promise<never> {
    for (;;) {
      let asked: () => void = () => undefined;
      const yielding = new Promise<void>((resolve) => {
        asked = resolve;
      });
      const options = { signal: this.signal, onCandidate: known, onYieldRequested: asked };
      const leadership = await this.client.campaign(this.election, this.owner, options);
      this.leadership = leadership;
      known();
      await unlessAborted(Promise.race([leadership.ended, yielding]), this.signal).catch(() => undefined);
      this.leadership = undefined;
      await Promise.race([leadership.ended, Promise.allSettled(this.running)]);
      await leadership.resign().catch(() => undefined); // it is over all the same
    }
  }

  /** Runs a job if this process leads, and says whether it does. Rejects with LostError if the leadership was lost meanwhile. */
  async run(stopping: AbortSignal, job: Job): Promise<boolean> {
    const { leadership } = this;
    if (leadership?.valid !== true) {
      return false;
    }
    const running = linked([leadership.signal, stopping], async (signal) => leadership.guard(async () => job(signal)));
    this.running.add(running);
    try {
      await running;
    } finally {
      this.running.delete(running);
    }
    if (leadership.error !== undefined) {
      throw leadership.error;
    }
    return true;
  }
}

/** When a tick was due, by what its timer gives. */
function timeOf(due: unknown): Date {
  const given = due instanceof Date ? due : (due as { readonly date?: unknown } | undefined)?.date;
  return given instanceof Date ? given : new Date(Date.now() + EARLY);
}

function keyOf(key: TickKey, due: Date): string {
  return typeof key === "function" ? key(due) : due.toISOString().slice(0, KEY_LENGTHS[key]).replace(":", ".");
}

/** Runs body with a signal that is aborted when one of others is, on which nothing is left. */
async function linked<T>(signals: readonly AbortSignal[], body: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const one = new AbortController();
  const abort = (): void => one.abort(signals.find(({ aborted }) => aborted)?.reason);
  for (const signal of signals) {
    signal.addEventListener("abort", abort, { once: true });
  }
  if (signals.some(({ aborted }) => aborted)) {
    abort();
  }
  try {
    return await body(one.signal);
  } catch (error) {
    throw failureOf(error, one.signal);
  } finally {
    for (const signal of signals) {
      signal.removeEventListener("abort", abort);
    }
  }
}
