/** Leases. */

import { LostError, SidekeeperError, named } from "./errors.js";
import type { LeaseServiceService, MultiplexResponse, OpenRequest, Opened } from "./gen/sidekeeper/lease/v1/lease.js";
import { GIVE_UP_TIMEOUT, HeldStream, type Kind, type Streams } from "./held.js";
import { Multiplex } from "./multiplex.js";
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

type Event = NonNullable<MultiplexResponse["response"]>;

/** Owns what is acquired with it: when the lease ends, all of that ends at once. Close it, even after it was lost. */
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
    if (value.resumable) {
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
}

/** All leases of one client. */
export interface Leases extends Kind<OpenRequest, Event, "opened"> {
  /** The streams of those that are open, by their ids. */
  readonly streamOf: Map<string, Multiplex>;
}

export function leaseKind(streams: Streams, stub: Stub<typeof LeaseServiceService>): Leases {
  const streamOf = new Map<string, Multiplex>();
  return {
    streams,
    streamOf,
    open: (request) => new Multiplex(() => start(stub.multiplex, undefined), request),
    granted: "opened",
    giveUp: async (leaseId) => call(stub.close, { leaseId }, GIVE_UP_TIMEOUT),
    checker: streams.checker(async (ids, timeout) => {
      const answers = ids.map(async (id) => [id, (await streamOf.get(id)?.check(timeout)) ?? { validFor: 0 }] as const);
      return new Map(await Promise.all(answers));
    }),
  };
}

/** Gives a hold up, and its lease with it if that is the hold's own. */
export async function endWithLease(own: Lease | undefined, giveUp: () => Promise<void>): Promise<void> {
  try {
    await giveUp();
  } catch (error) {
    if (error instanceof LostError || error instanceof SidekeeperError) {
      await own?.abandon();
    }
    throw error;
  }
  await own?.close();
}
