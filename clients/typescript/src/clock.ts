/** The clock on which validity is counted, in seconds. */

import os from "node:os";

/** By how much Linux's uptime, which has two digits, may be behind. */
const COARSE = 0.01;

const counts = process.platform === "linux";

/** A moment that has passed certainly; it goes on while the machine is suspended, where the system can tell. */
export function before(): number {
  return counts ? os.uptime() : performance.now() / 1000;
}

/** A moment that is not over yet. */
export function now(): number {
  return counts ? os.uptime() + COARSE : performance.now() / 1000;
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
