/** Leases. */

import { status } from "@grpc/grpc-js";

import type { Answer } from "./claim.js";
import { SidekeeperError } from "./errors.js";
import { type LeaseServiceService, type OpenRequest, type OpenResponse, type Opened } from "./gen/sidekeeper/lease/v1/lease.js";
import { GIVE_UP_TIMEOUT, HeldStream, type Kind, type Streams } from "./held.js";
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

type Event = NonNullable<OpenResponse["event"]>;

/** Owns what is acquired with it: when the lease ends, all of that ends at once. Close it, even after it was lost. */
export class Lease extends HeldStream<OpenRequest, Event, "opened"> {
  /** Names the lease in calls made without this package: 32 hexadecimal digits. It is a secret. */
  id = "";
  /** The session timeout in seconds that the ensemble granted. */
  ttl = 0;

  protected grant({ value }: { value: Opened }): string {
    this.id = value.leaseId;
    this.ttl = seconds(value.ttl);
    return this.id;
  }

  /**
   * Ends the lease; for the caller, it and everything acquired with it end at once. When this settles, all of that is gone from the
   * ensemble. Rejects with LostError if the lease was lost before. Calling it again has the same outcome.
   */
  async close(): Promise<void> {
    await this.giveUp();
  }
}

export function leaseKind(streams: Streams, stub: Stub<typeof LeaseServiceService>): Kind<OpenRequest, Event, "opened"> {
  return {
    streams,
    open: (request) => start(stub.open, request),
    granted: "opened",
    giveUp: async (leaseId) => call(stub.close, { leaseId }, GIVE_UP_TIMEOUT),
    checker: streams.checker(async (ids, timeout) => {
      const answers = new Map<string, Answer>();
      for (const id of ids) {
        answers.set(id, await check(stub, id, timeout));
      }
      return answers;
    }),
  };
}

async function check(stub: Stub<typeof LeaseServiceService>, leaseId: string, timeout: number): Promise<Answer> {
  try {
    return { validFor: seconds((await call(stub.check, { leaseId }, timeout)).validFor) };
  } catch (error) {
    if (error instanceof SidekeeperError && [status.ABORTED, status.NOT_FOUND].includes(error.code)) {
      return { validFor: 0, end: error };
    }
    throw error;
  }
}
