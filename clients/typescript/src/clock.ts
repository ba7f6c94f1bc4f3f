/** The clock on which validity is counted, in seconds. */

import fs from "node:fs";
import os from "node:os";

/** A clock that includes the time of suspension, where the system has one; it may be behind by `coarse`. Throws if it cannot be read. */
export interface Source {
  readonly coarse: number;
  read(): number;
}

/** Elsewhere than on Linux: macOS and Windows count the time of sleep in it. */
const monotonic: Source = { coarse: 0, read: () => performance.now() / 1000 };

/** What libuv reads if it cannot read /proc/uptime: CLOCK_BOOTTIME in whole seconds. */
const whole: Source = { coarse: 1, read: () => os.uptime() };

/**
 * Linux shows CLOCK_BOOTTIME in a file, with two decimals. What stands in for that file in some containers shows whole seconds, with zeros
 * behind the dot: so it is taken to be as coarse as the finest that it has shown. It is kept open, so that a process without free
 * descriptors has its clock.
 */
class Uptime implements Source {
  coarse = 1;
  private readonly line = Buffer.alloc(64);

  constructor(private readonly file: number) {}

  read(): number {
    const length = fs.readSync(this.file, this.line, 0, this.line.length, 0);
    const match = /^(\d+\.(\d)(\d)?) /.exec(this.line.toString("latin1", 0, length));
    if (match === null) {
      throw new RangeError("/proc/uptime does not show the time");
    }
    const [, time, tenths, hundredths = "0"] = match;
    if (hundredths !== "0") {
      this.coarse = 0.01;
    } else if (tenths !== "0") {
      this.coarse = Math.min(this.coarse, 0.1);
    }
    return Number(time);
  }
}

/** Errors that pass: with another clock instead, two moments might be of clocks that count from different instants. */
const PASSING = new Set(["EMFILE", "ENFILE", "ENOMEM", "EINTR", "EAGAIN"]);

/** The clock of the system with this file; throws if that is not to be said now. */
export function find(file = "/proc/uptime", platform: NodeJS.Platform = process.platform): Source {
  if (platform !== "linux") {
    return monotonic;
  }
  let opened: number | undefined;
  try {
    opened = fs.openSync(file, "r");
    const uptime = new Uptime(opened);
    uptime.read();
    return uptime;
  } catch (error) {
    if (opened !== undefined) {
      fs.closeSync(opened);
    }
    if (PASSING.has((error as NodeJS.ErrnoException).code ?? "")) {
      throw error;
    }
    return whole;
  }
}

let source: Source | undefined;

/** Has another clock used; undefined, the system's. For tests. */
export function use(other: Source | undefined): void {
  source = other;
}

/** The earliest time that it can be now. If the clock cannot be read, validity counted from it has run out. */
export function before(): number {
  try {
    source ??= find();
    return source.read();
  } catch {
    return -Infinity;
  }
}

/** The latest time that it can be now. If the clock cannot be read, nothing is valid. */
export function now(): number {
  try {
    source ??= find();
    return source.read() + source.coarse;
  } catch {
    return Infinity;
  }
}

/** By how many seconds a deadline may be noticed late after the machine was suspended: timers stand still meanwhile. */
export const LONGEST_NAP = 0.25;

/** Returns after so many seconds, or rejects with the reason of the signal. The process need not wait for it. */
export async function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/**
 * What a body has failed with that had a signal: the signal's reason, if the body has failed since that was aborted. Node's own functions, and
 * those of most libraries, make an error of their own of it.
 */
export function failureOf(error: unknown, { aborted, reason }: AbortSignal): unknown {
  for (let cause = error; aborted && typeof cause === "object" && cause !== null; cause = (cause as Error).cause) {
    if (cause === reason || /^(Abort|Canceled)Error$/.test((cause as Error).name)) {
      return reason;
    }
  }
  return error;
}

/** Settles as the promise does, or rejects with the reason of the signal when that is aborted first. */
export async function unlessAborted<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  let abort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal?.reason as Error);
  });
  signal?.addEventListener("abort", abort, { once: true });
  return Promise.race([promise, aborted]).finally(() => signal?.removeEventListener("abort", abort));
}
