/** Memberships. */

import type { LostError } from "./errors.js";
import {
  type JoinRequest,
  type JoinResponse,
  type Joined,
  type MembershipServiceService,
} from "./gen/sidekeeper/membership/v1/membership.js";
import { guardsOf } from "./guard.js";
import { type Carrier, HeldStream, type Streams, single } from "./held.js";
import type { Lease } from "./lease.js";
import { type Rules, abortSignal, checkArguments, labels, lease, oneOf, text, timespan } from "./options.js";
import { KEEPALIVES, type Stub, callIdempotent, start } from "./transport.js";
import { type Labels, type OnConflict, conflicts } from "./types.js";

/** How to join a group. */
export interface JoinOptions {
  /** The lease of the membership; by default one of its own that ends with it. */
  readonly lease?: Lease;
  readonly owner?: string;
  /** For other members to see, such as an address: at most 1 KiB in all. */
  readonly metadata?: Labels;
  /** By default reject. */
  readonly onConflict?: OnConflict;
  /**
   * Seconds to wait for a sidecar or an ensemble that is away and, with wait and replace, for the name: 0 tries once. By default a sidecar
   * or an ensemble that is away is waited for 10 seconds each time, and the name without a limit.
   */
  readonly wait?: number;
  /** Stops the waiting; it does not end a membership that was returned. */
  readonly signal?: AbortSignal;
}

export const JOIN_OPTIONS: Rules<JoinOptions> = {
  lease,
  owner: text,
  metadata: labels,
  onConflict: oneOf(conflicts),
  wait: timespan,
  signal: abortSignal,
};

type Event = NonNullable<JoinResponse["event"]>;

/** The caller as a member of a group, valid for as long as its lease is. Leave the group, even after the membership was lost. */
export class Membership extends HeldStream<JoinRequest, Event, "joined"> {
  /** Distinguishes this member from all that have or had its name. */
  incarnation = 0n;

  /** @internal */
  constructor(
    private readonly streams: Streams,
    private readonly stub: Stub<typeof MembershipServiceService>,
    readonly group: string,
    readonly member: string,
    private readonly lease: Lease,
    private readonly ownsLease: boolean,
  ) {
    const multiplex = lease.multiplexOf(streams);
    const open = (request: JoinRequest): Carrier<Event> =>
      multiplex === undefined
        ? single(start(stub.join, { ...request, keepalive: KEEPALIVES }))
        : multiplex.start({ $case: "join", value: { ...request, leaseId: "" } }, (event) =>
            event.$case === "join" ? event.value.event : undefined,
          );
    super({ streams, open, granted: "joined" }, `member ${group}/${member}`, lease);
  }

  protected grant({ value }: { value: Joined }): string {
    this.incarnation = value.incarnation;
    return String(this.incarnation);
  }

  /**
   * Replaces the metadata that others see, at most 1 KiB in all; in the body of withLock only while the lock is held (see Lock.guard).
   * Rejects with MemberNotFoundError, GuardLostError and other SidekeeperErrors.
   */
  async update(metadata: Labels): Promise<void> {
    checkArguments({ metadata });
    const guards = guardsOf(this.streams);
    const request = { group: this.group, member: this.member, metadata, leaseId: this.lease.id, guards };
    await callIdempotent(this.stub.update, request);
  }

  /**
   * Leaves the group. If the membership has a lease of its own, that is closed, which the sidecar confirms. Rejects with LostError if
   * the membership was lost before. Calling it again has the same outcome.
   */
  async leave(): Promise<void> {
    await this.giveUp();
  }

  protected override async giveUpOnce(): Promise<void> {
    const lost: LostError | undefined = this.error;
    await this.abandon();
    if (this.ownsLease) {
      await this.lease.close().catch((error: unknown) => {
        throw lost ?? error;
      });
    }
    if (lost !== undefined) {
      throw lost;
    }
  }
}
