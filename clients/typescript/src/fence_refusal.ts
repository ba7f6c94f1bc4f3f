/** Calls that do not pass a gate. */

import { status } from "@grpc/grpc-js";

import type { Ticket } from "./guard.js";

/**
 * Why a call does not pass, with what its caller gets in gRPC and HTTP.
 *
 * - `malformed`: the header breaks its grammar: INVALID_ARGUMENT, 400.
 * - `missing`: there is no ticket, or none of a lock that is wanted: FAILED_PRECONDITION, 428.
 * - `stale`: a larger token of the lock has been seen: FAILED_PRECONDITION, 412.
 * - `not held`: the sidecar says that the hold does not last: FAILED_PRECONDITION, 412.
 * - `undecided`: the marks cannot be read or written, or the sidecar not be asked: UNAVAILABLE, 503.
 */
export type Reason = "malformed" | "missing" | "stale" | "not held" | "undecided";

const answers: Readonly<Record<Reason, readonly [code: status, httpStatus: number]>> = {
  malformed: [status.INVALID_ARGUMENT, 400],
  missing: [status.FAILED_PRECONDITION, 428],
  stale: [status.FAILED_PRECONDITION, 412],
  "not held": [status.FAILED_PRECONDITION, 412],
  undecided: [status.UNAVAILABLE, 503],
};

/** What a call has of its refusal. */
interface About {
  readonly ticket?: Ticket;
  readonly largest?: bigint;
  readonly cause?: unknown;
}

/** A call does not pass. Nothing of it has been carried out. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
  /** What a caller in gRPC gets. */
  readonly code: status;
  /** What a caller in HTTP gets. */
  readonly httpStatus: number;
  /** That of the call, if it is stale or not held. */
  readonly ticket: Ticket | undefined;
  /** The token that the gate has seen, if the call's is stale; that the lock is held with, if not held; 0 if the lock has no holder. */
  readonly largest: bigint;

  constructor(
    readonly reason: Reason,
    message: string,
    { ticket, largest = 0n, cause }: About = {},
  ) {
    super(message, { cause });
    [this.code, this.httpStatus] = answers[reason];
    this.ticket = ticket;
    this.largest = largest;
  }
}

/**
 * Compares a ticket with the mark of its lock. Throws RefusedError if a larger token has been seen.
 *
 * @internal
 */
export function compare(ticket: Ticket, largest: bigint): void {
  if (largest > ticket.fencingToken) {
    const message =
      `lock ${ticket.lock}: fencing token ${ticket.fencingToken} is stale, since ${largest} has been seen: ` +
      "the lock was granted to another holder";
    throw new RefusedError("stale", message, { ticket, largest });
  }
}
