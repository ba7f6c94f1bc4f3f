/** Claims: locks that are held without a process, until a time or until they are released. */

import { randomBytes } from "node:crypto";

import { before, now } from "./clock.js";
import { OutcomeUnknownError, SidekeeperError, named } from "./errors.js";
import type { ClaimRequest, ClaimResponse, LockServiceService } from "./gen/sidekeeper/lock/v1/lock.js";
import { Ticket } from "./guard.js";
import { GIVE_UP_TIMEOUT, type Streams } from "./held.js";
import { type Rules, abortSignal, checkArguments, labels, oneOf, text, timespan } from "./options.js";
import { type Stub, begin, call, callIdempotent, isTransient, repeated } from "./transport.js";
import { type Labels, type Mode, duration, modes, seconds } from "./types.js";

type LockStub = Stub<typeof LockServiceService>;

/** How to claim a lock. */
export interface ClaimOptions {
  /**
   * 32 hexadecimal digits, 128 random bits: a secret, for a caller that knows it owns the claim. A caller that stores it before the call can ask
   * again, or release the claim, whatever became of the call. By default a new one.
   */
  readonly claimId?: string;
  readonly mode?: Mode;
  /** Seconds to wait for the grant, and for a sidecar or an ensemble that is away: 0 tries once. By default there is no limit. */
  readonly wait?: number;
  /** The holder's own name for itself, for people: at most 128 bytes. */
  readonly owner?: string;
  readonly metadata?: Labels;
  /** Stops the waiting; it does not end a claim that was returned. */
  readonly signal?: AbortSignal;
}

export const CLAIM_OPTIONS: Rules<ClaimOptions> = {
  claimId: text,
  mode: oneOf(modes),
  wait: timespan,
  owner: text,
  metadata: labels,
  signal: abortSignal,
};

/** A lock that is held without a process. It outlives its client: only `release`, its time or an operator ends it. */
export class Claim {
  /** Orders the grants of this lock; of a claim by its id, 0 until `check` has asked. */
  fencingToken = 0n;
  /** When the claim ends, by the ensemble's clock; of a claim by its id, undefined until `check` or `extend` has asked. */
  until: Date | undefined;

  readonly #id: string;

  /** @internal */
  constructor(
    private readonly stub: LockStub,
    id: string,
    private readonly name = "",
  ) {
    this.#id = id;
  }

  /** Names the claim for every client. It is a secret: a caller that knows it owns the claim. No log that prints the claim has it. */
  get id(): string {
    return this.#id;
  }

  /** What others guard with what they write for the claim. Throws for a claim by its id, whose lock is not known. */
  ticket(): Ticket {
    if (this.name === "") {
      throw new TypeError("a claim that is known by its id alone has no ticket: its lock is not known");
    }
    return new Ticket(this.name, this.fencingToken);
  }

  /** Has the claim end no earlier than so many seconds from now, 60 to 30 days. Rejects with ClaimEndedError, ClaimNotFoundError. */
  async extend(reserveFor: number): Promise<void> {
    checkArguments({ reserveFor });
    const request = { claimId: this.id, reserveFor: duration(reserveFor) };
    this.until = (await callIdempotent(this.stub.extend, request, isUnanswered)).until;
  }

  /**
   * For how many seconds the claim counts from now, whatever operators do: at most 58, and 0 while it waits. Rejects with ClaimEndedError,
   * ClaimNotFoundError.
   */
  async check(): Promise<number> {
    const asked = before();
    const { claims } = await callIdempotent(this.stub.check, { holdIds: [], claimIds: [this.id] }, isUnanswered);
    const { reason = "", until, fencingToken = 0n, validFor } = claims[0] ?? {};
    if (reason !== "") {
      throw named(reason, "the sidecar says that the claim is not held");
    }
    if (until !== undefined) {
      Object.assign(this, { until, fencingToken });
    }
    return Math.max(asked + seconds(validFor) - now(), 0);
  }

  /** Ends the claim. Releasing it again does nothing for a day. Rejects with ClaimEndedError if it has ended otherwise, ClaimNotFoundError. */
  async release(): Promise<void> {
    await callIdempotent(this.stub.release, { holdId: "", claimId: this.id }, isUnanswered);
  }
}

function isUnanswered(error: unknown): boolean {
  return isTransient(error) || error instanceof OutcomeUnknownError;
}

/**
 * Asks for a claim until there is an answer, or the time to wait is over. Without an answer, it releases a claim whose id its caller does not
 * know.
 */
export async function claim(
  streams: Streams,
  stub: LockStub,
  request: Pick<ClaimRequest, "name" | "reserveFor" | "reason">,
  { claimId, mode = "exclusive", wait, owner = "", metadata = {}, signal }: ClaimOptions,
): Promise<Claim> {
  const made = new Claim(stub, claimId ?? randomBytes(16).toString("hex"), request.name);
  const until = wait === undefined ? Infinity : performance.now() / 1000 + wait;
  let attempts = 0;
  const once = async (): Promise<ClaimResponse> => {
    const left = attempts++ === 0 ? wait : wait && Math.max(until - performance.now() / 1000, 0.001); // 0 would be an attempt that does not wait
    const asked = { ...request, claimId: made.id, mode: modes[mode], waitTimeout: duration(left), owner, metadata };
    return streams.during(signal, (resolve, reject) => begin(stub.claim, asked, Infinity, resolve, reject));
  };
  try {
    return Object.assign(made, await repeated(once, isUnanswered, until, signal));
  } catch (error) {
    if (claimId === undefined && (!(error instanceof SidekeeperError) || error.reason === "" || isUnanswered(error))) {
      streams.acknowledge(async () => call(stub.release, { holdId: "", claimId: made.id }, GIVE_UP_TIMEOUT));
    }
    throw error;
  }
}
