/** Leases. */

import { status } from "@grpc/grpc-js";

import { GuardLostError, LeaseLostError, LostError, SidekeeperError, named } from "./errors.js";
import type { LeaseServiceService, MultiplexResponse, OpenRequest, Opened } from "./gen/sidekeeper/lease/v1/lease.js";
import { type Attempt, type Carrier, GIVE_UP_TIMEOUT, HeldStream, type Kind, type Streams, type Tagged } from "./held.js";
import { Multiplex } from "./multiplex.js";
import { type Rules, abortSignal, labels, text, timespan } from "./options.js";
import { type Stub, call, start } from "./transport.js";
import { type Labels, seconds } from "./types.js";

/** How to open a lease. */
export interface LeaseOptions {
  /** Session timeout in seconds, after which the ensemble expires the lease if it hears nothing; by default the sidecar's. */
  readonly ttl?: number;
  /** Who the caller is, for people: at most 128 bytes. */
  readonly owner?: string;
  readonly metadata?: Labels;
  /** Seconds to wait for a sidecar or an ensemble that is away, by default 10: 0 tries once. */
  readonly wait?: number;
  /** Stops the waiting; it does not end a lease that was returned. */
  readonly signal?: AbortSignal;
}

export const LEASE_OPTIONS: Rules<LeaseOptions> = {
  ttl: timespan,
  owner: text,
  metadata: labels,
  wait: timespan,
  signal: abortSignal,
};

type Event = NonNullable<MultiplexResponse["response"]>;

/**
 * Owns what is acquired with it: when the lease ends, all of that ends at once. Close it, even after it was lost.
 *
 * While nothing stands on it, it is not lost when its validity runs out, as after a pause of the process. It is not valid until the sidecar
 * answers again, and `error` is undefined.
 */
export class Lease extends HeldStream<OpenRequest, Event, "opened"> {
  /** Names the lease in calls made without this package: 32 hexadecimal digits. It is a secret. */
  id = "";
  /** The session timeout in seconds that the ensemble granted. */
  ttl = 0;

  /** @internal */
  constructor(private readonly leases: Leases) {
    super(leases, "lease");
  }

  protected grant({ value }: { value: Opened }): string {
    this.id = value.leaseId;
    this.ttl = seconds(value.ttl);
    const multiplex = this.carrier as Multiplex;
    this.leases.streamOf.set(this.id, multiplex);
    this.claim.carries = () => multiplex.carriesAnything;
    if (value.resumable && this.leases.onSocket) {
      multiplex.outlives = { leaseId: this.id, validFor: () => this.validFor };
    }
    this.claim.onEnd(() => {
      multiplex.why = this.error?.cause ?? named("LEASE_CLOSED", "the lease is closed");
      this.leases.streamOf.delete(this.id);
    });
    return this.id;
  }

  /** @internal The lease's stream, which carries what the same client starts on it; undefined for another one. */
  multiplexOf(streams: Streams): Multiplex | undefined {
    return streams === this.kind.streams ? (this.carrier as Multiplex) : undefined;
  }

  /**
   * Ends the lease; for the caller, it and everything acquired with it end at once. When this settles, all of that is gone from the
   * ensemble. Rejects with LostError if the lease was lost before. Calling it again has the same outcome.
   */
  async close(): Promise<void> {
    await this.giveUp();
  }

  /** @internal Closes a lease that was opened for one thing alone. Where that is gone, nothing is waited for. */
  async closeUsed(released: boolean): Promise<void> {
    this.claim.end();
    if (released) {
      (this.carrier as Multiplex).close();
    } else {
      await this.abandon();
    }
  }
}

/** Something held on a lease, which may be its alone, or by a call of its own. */
export abstract class Leased<Request, Event extends Tagged, Granted extends string> extends HeldStream<Request, Event, Granted> {
  /** @internal */
  constructor(
    kind: Kind<Request, Event, Granted>,
    what: string,
    lease: Lease | undefined,
    private readonly own: Lease | undefined,
  ) {
    super(kind, what, own ?? lease);
  }

  /** The loss that an error of a body tells of, unless the body has given up the hold with this token: a write may meet the loss first. */
  protected lossOf(fencingToken: bigint | undefined, error: unknown): LostError | undefined {
    if (!(error instanceof GuardLostError) || error.metadata["fencing_token"] !== String(fencingToken)) {
      return undefined;
    }
    return this.claim.lost ?? (this.claim.over ? undefined : new LostError(this.claim.what, error));
  }

  protected override async giveUpOnce(ask?: () => Promise<void>): Promise<void> {
    let released = false;
    try {
      await super.giveUpOnce(ask);
      released = true;
    } finally {
      await this.leaveOwn(released);
    }
  }

  /** Closes the lease that is its alone, if there is one. */
  protected async leaveOwn(released: boolean): Promise<void> {
    await this.own?.closeUsed(released);
  }
}

/**
 * Begins something on a lease that is opened for it alone, and takes from the attempt's wait what that took. If the lease was lost first,
 * the error says that another attempt may succeed: nothing was the caller's yet. The sidecar says of the thing that the lease is lost before
 * it ends the lease's stream.
 */
export async function onOwn<T>(
  leases: Leases,
  { owner = "", metadata = {}, signal }: Pick<LeaseOptions, "owner" | "metadata" | "signal">,
  attempt: Attempt,
  begin: (lease: Lease) => Promise<T>,
): Promise<T> {
  const began = performance.now();
  const lease = await new Lease(leases).open({ ttl: undefined, owner, metadata, keepalive: undefined }, signal, attempt);
  if (attempt.wait !== undefined && attempt.wait > 0) {
    attempt.wait = Math.max(attempt.wait - (performance.now() - began) / 1000, 0.001); // 0 would be an attempt that does not wait
  }
  try {
    return await begin(lease);
  } catch (error) {
    const lost = lease.error?.cause;
    await lease.abandon();
    const ended = error instanceof SidekeeperError && error.code === status.ABORTED;
    if (ended && (error instanceof LeaseLostError || error === lost)) {
      throw named("ENSEMBLE_UNREACHABLE", `nothing is held: ${error.message}`, status.UNAVAILABLE);
    }
    throw error;
  }
}

/** All leases of one client. */
export interface Leases extends Kind<OpenRequest, Event, "opened"> {
  /** The streams of those that are open, by their ids. */
  readonly streamOf: Map<string, Multiplex>;
  /** Whether they may outlive the sidecar's process: over anything else than a Unix socket they do not, whatever the sidecar says. */
  readonly onSocket: boolean;
}

/** How something is held on a lease whose stream carries it: it is valid for as long as the lease. A lease of another client carries nothing. */
export function carried<Request, Event extends Tagged, Granted extends string>(
  kind: Kind<Request, Event, Granted>,
  lease: Lease | undefined,
  start: (multiplex: Multiplex) => (request: Request) => Carrier<Event>,
): Kind<Request, Event, Granted> {
  const multiplex = lease?.multiplexOf(kind.streams);
  return multiplex === undefined ? kind : { ...kind, open: start(multiplex), checker: undefined };
}

export function leaseKind(streams: Streams, stub: Stub<typeof LeaseServiceService>, onSocket: boolean): Leases {
  const streamOf = new Map<string, Multiplex>();
  return {
    streams,
    streamOf,
    onSocket,
    open: (request) => new Multiplex(() => start(stub.multiplex, undefined), request),
    granted: "opened",
    giveUp: async (leaseId) => call(stub.close, { leaseId }, GIVE_UP_TIMEOUT),
    checker: streams.checker(async (ids, timeout) => {
      const asked = ids.map(async (id) => [id, (await streamOf.get(id)?.check(timeout)) ?? { validFor: 0 }] as const);
      const settled = await Promise.allSettled(asked); // one that is silent keeps the others from nothing
      const answers = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      const failed = settled.find((one) => one.status === "rejected");
      if (failed !== undefined && answers.length === 0) {
        throw failed.reason as Error;
      }
      return new Map(answers);
    }),
  };
}
