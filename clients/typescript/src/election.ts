/** Elections. */

import type { LostError } from "./errors.js";
import {
  type CampaignRequest,
  type CampaignResponse,
  type Elected,
  type ElectionServiceService,
  type GetResponse,
  type WatchResponse,
  type Candidate as WireCandidate,
  type Leader as WireLeader,
} from "./gen/sidekeeper/election/v1/election.js";
import { Ticket, guardedByHold } from "./guard.js";
import { type Attempt, type Carrier, GIVE_UP_TIMEOUT, type Streams } from "./held.js";
import { type Lease, Leased } from "./lease.js";
import type { Multiplex } from "./multiplex.js";
import { HELD_OPTIONS, type Rules, callback, checkArguments, text } from "./options.js";
import { type Stub, call, callIdempotent } from "./transport.js";
import { type Labels, duration, seconds } from "./types.js";

/** The leader of an election. */
export interface Leader {
  readonly candidate: string;
  /** As given to campaign, or to the latest proclaim. */
  readonly value: string;
  /** Its fencing token numbers the term. */
  readonly term: Ticket;
  readonly metadata: Labels;
  /** Of its caller, as the sidecar that made it verified it; empty where callers are not told apart. */
  readonly identity: string;
  /** Whether it was made by another client of the ensemble, not by Sidekeeper. */
  readonly foreign: boolean;
  /** Whether it was asked to yield. */
  readonly yieldRequested: boolean;
}

/** A candidate that waits to lead. Its fields are as a leader's. */
export interface Candidate {
  readonly candidate: string;
  readonly value: string;
  readonly metadata: Labels;
  readonly identity: string;
  readonly foreign: boolean;
  /** Seconds for which it has waited, by the ensemble's clock. */
  readonly age: number;
}

/** The leader of an election, and its candidates. */
export interface ElectionView {
  /** undefined if the election has no leader. */
  readonly leader: Leader | undefined;
  /** In the order of their turn. */
  readonly candidates: readonly Candidate[];
}

/** What is known of an election. */
export interface Observation {
  /** undefined if the election has no leader. */
  readonly leader: Leader | undefined;
  /** Whether another candidate may lead: contact with the ensemble, or with the sidecar, is lost. */
  readonly stale: boolean;
}

/** A request that the leader resign soon. */
export interface YieldRequest {
  /** The candidate that shall lead next; empty if the request names none. */
  readonly to: string;
  readonly requestedBy: string;
  readonly reason: string;
  /** Seconds until the term is ended by force; undefined if it is not ended. */
  readonly grace: number | undefined;
}

/** How to campaign. The callbacks are called one at a time, as events arrive. */
export interface CampaignOptions {
  /** What the leader shows, such as its address: at most 1 KiB of UTF-8. */
  readonly value?: string;
  /** The lease to campaign with, of the same client; by default one of its own that ends with the term. */
  readonly lease?: Lease;
  /** As in LockOptions. */
  readonly wait?: number;
  readonly metadata?: Labels;
  /** Stops the campaign; it does not end a term that was returned. */
  readonly signal?: AbortSignal;
  /** Called with how many are ahead, and who leads, as it was first seen; and whenever that changes. */
  readonly onCandidate?: (position: number, leader: Leader | undefined) => void;
  /** Called about once a second while contact with the ensemble is lost and leadership is not, with its validity in seconds. */
  readonly onSuspended?: (remaining: number) => void;
  readonly onResumed?: () => void;
  readonly onYieldRequested?: (request: YieldRequest) => void;
}

export const CAMPAIGN_OPTIONS: Rules<CampaignOptions> = {
  value: text,
  ...HELD_OPTIONS,
  onCandidate: callback,
  onYieldRequested: callback,
};

/** How to lead while a function runs. */
export interface WithLeadershipOptions extends CampaignOptions {
  /** For how many seconds leadership may be suspended before the signal is aborted; by default until it is lost. */
  readonly suspensionGrace?: number;
}

type Event = NonNullable<CampaignResponse["event"]>;

/** A term: the time for which the caller leads an election. Resign, even after it was lost. */
export class Leadership extends Leased<CampaignRequest, Event, "elected"> {
  /**
   * Names the term for others, who guard with it what they write for the leader. Its fencing token is larger than that of every earlier
   * term.
   */
  term: Ticket;
  /** The latest request to resign; undefined if there was none. */
  yieldRequest: YieldRequest | undefined;
  private holdId = "";

  /** @internal */
  constructor(
    streams: Streams,
    private readonly stub: Stub<typeof ElectionServiceService>,
    multiplex: Multiplex,
    readonly election: string,
    readonly candidate: string,
    own: Lease | undefined,
    private readonly options: CampaignOptions,
  ) {
    const open = (value: CampaignRequest): Carrier<Event> =>
      multiplex.start({ $case: "campaign", value }, (event) => (event.$case === "campaign" ? event.value.event : undefined));
    const giveUp = async (holdId: string): Promise<unknown> => call(stub.resign, { holdId }, GIVE_UP_TIMEOUT);
    super({ streams, open, granted: "elected", giveUp, acknowledged: true }, `leadership of ${election}`, options.lease, own);
    this.term = new Ticket(election, 0n);
  }

  /** @internal */
  async campaign(attempt: Attempt): Promise<this> {
    const { value = "", metadata = {}, signal } = this.options;
    const waitTimeout = duration(attempt.wait);
    const request = {
      name: this.election,
      candidate: this.candidate,
      value,
      leaseId: "",
      waitTimeout,
      metadata,
      keepalive: undefined,
    };
    return this.open(request, signal, attempt);
  }

  protected grant({ value }: { value: Elected }): string {
    this.term = ticketFrom(value.ticket);
    this.holdId = value.holdId;
    return value.holdId;
  }

  protected override notice(event: Event | undefined): void {
    const notify = (callback: (() => void) | undefined): void =>
      this.kind.streams.notify(`leadership of ${this.election}`, callback, undefined);
    const { onCandidate, onSuspended, onResumed, onYieldRequested } = this.options;
    switch (event?.$case) {
      case "candidate": {
        const { position, leader } = event.value;
        notify(() => onCandidate?.(position, leader === undefined ? undefined : leaderFrom(leader)));
        break;
      }
      case "suspended":
        notify(() => onSuspended?.(seconds(event.value.remaining)));
        break;
      case "resumed":
        notify(onResumed);
        break;
      case "yieldRequested": {
        const { to, requestedBy, reason, grace } = event.value;
        const request = { to, requestedBy, reason, grace: grace === undefined ? undefined : seconds(grace) };
        this.yieldRequest = request;
        notify(() => onYieldRequested?.(request));
      }
    }
  }

  /** Runs body and returns its result. What it writes with the client is guarded with the term, as with Lock.guard. */
  guard<T>(body: () => T): T {
    return guardedByHold(this.holdId, this.kind.streams, [this.term], body);
  }

  /**
   * The loss that an error of the body tells of, unless the body has resigned: a write may meet the loss first.
   *
   * @internal
   */
  lossIn(error: unknown): LostError | undefined {
    return this.lossOf(this.term.fencingToken, error);
  }

  /** Changes the value that the leader shows. Rejects with GuardLostError if it does not lead any more. */
  async proclaim(value: string): Promise<void> {
    checkArguments({ value });
    const { lock, fencingToken } = this.term;
    await callIdempotent(this.stub.proclaim, { ticket: { lock, fencingToken }, value });
  }

  /** Ends the term. For the caller it ends at once; when this settles, another candidate can be elected. Errors as of Lock.release. */
  async resign(): Promise<void> {
    await this.giveUp();
  }

  /** Resigns. */
  async release(): Promise<void> {
    await this.resign();
  }
}

function ticketFrom(wire: { lock: string; fencingToken: bigint } | undefined): Ticket {
  return new Ticket(wire?.lock ?? "", wire?.fencingToken ?? 0n);
}

function leaderFrom({ candidate, value, ticket, metadata, identity, foreign, yieldRequested }: WireLeader): Leader {
  return { candidate, value, term: ticketFrom(ticket), metadata, identity, foreign, yieldRequested };
}

function candidateFrom({ candidate, value, metadata, identity, foreign, age }: WireCandidate): Candidate {
  return { candidate, value, metadata, identity, foreign, age: seconds(age) };
}

export function electionViewFrom({ leader, candidates }: GetResponse): ElectionView {
  return { leader: leader === undefined ? undefined : leaderFrom(leader), candidates: candidates.map(candidateFrom) };
}

/** What is known of an election, message by message. */
export class Observer {
  private last: Observation | undefined;
  private newest = 0n;

  /**
   * What to tell of a message, or of the end of the stream, for which it is undefined; undefined if nothing. An earlier term than one that was
   * seen says nothing but that it is out of date.
   */
  learn(message: WatchResponse | undefined): Observation | undefined {
    const event = message === undefined ? ({ $case: "stale" } as const) : message.event;
    if (event === undefined || (message === undefined && this.last?.stale !== false)) {
      return undefined;
    }
    const leader = event.$case === "leader" ? leaderFrom(event.value) : undefined;
    const term = leader?.term.fencingToken ?? this.newest;
    const stale = event.$case === "stale" || term < this.newest;
    this.newest = stale ? this.newest : term;
    this.last = { leader: stale ? this.last?.leader : leader, stale };
    return this.last;
  }
}
