/** Barriers, and entries of double barriers. */

import { status } from "@grpc/grpc-js";

import { HoldNotFoundError, LostError, SidekeeperError } from "./errors.js";
import type {
  BarrierServiceService,
  EnterRequest,
  EnterResponse,
  Entered,
  WaitResponse,
} from "./gen/sidekeeper/barrier/v1/barrier.js";
import type { Attempt, Carrier, Streams } from "./held.js";
import { type Lease, Leased } from "./lease.js";
import type { Multiplex } from "./multiplex.js";
import { HELD_OPTIONS, type Rules, abortSignal, callback, checkArguments, text } from "./options.js";
import { ABSENCE_TIMEOUT, KEEPALIVES, type Stub, begin, isTransient, listen, mayHeal, repeated, start } from "./transport.js";
import { type Labels, duration, seconds } from "./types.js";

type BarrierStub = Stub<typeof BarrierServiceService>;

/** How to wait at a barrier. */
export interface AwaitBarrierOptions {
  /** Stops the waiting. */
  readonly signal?: AbortSignal;
  /** Called when it is known that the barrier is set; again after the sidecar or the ensemble was away. */
  readonly onWaiting?: () => void;
}

export const AWAIT_BARRIER_OPTIONS: Rules<AwaitBarrierOptions> = { signal: abortSignal, onWaiting: callback };

/** Settles when the barrier is not set, or was not. */
export async function awaitBarrier(
  streams: Streams,
  stub: BarrierStub,
  name: string,
  { signal, onWaiting }: AwaitBarrierOptions,
): Promise<void> {
  let heard = false;
  const once = async (): Promise<void> =>
    streams.during(signal, (resolve, reject) => {
      const stream = start(stub.wait, { name, keepalive: KEEPALIVES });
      const waits = ({ keepalive }: WaitResponse): void => {
        heard = true;
        if (keepalive === undefined) {
          streams.notify(`barrier ${name}`, onWaiting, undefined);
        }
      };
      listen(stream, waits, (error) => (error === undefined ? resolve() : reject(error)));
      return stream;
    });
  await repeated(once, (error) => mayHeal(error, heard), Infinity, signal);
}

/** How to enter a double barrier. The callbacks are called one at a time, as events arrive. */
export interface BarrierOptions {
  /** The lease to stand at the barrier with, of the same client; by default one of its own that ends with the entry. */
  readonly lease?: Lease;
  /**
   * Seconds to wait for the others, and for a sidecar or an ensemble that is away: more than 0. By default the others are waited for without
   * a limit, and a sidecar or an ensemble that is away for 10 seconds each time.
   */
  readonly wait?: number;
  /** Who the caller is, for people: at most 128 bytes. */
  readonly owner?: string;
  readonly metadata?: Labels;
  /** Stops the waiting; it does not end an entry that was returned. */
  readonly signal?: AbortSignal;
  /** Called with how many stand at the barrier, this one among them, as long as that is not enough; and whenever that changes. */
  readonly onWaiting?: (present: number) => void;
  /** Called about once a second while contact with the ensemble is lost and the entry is not, with its validity in seconds. */
  readonly onSuspended?: (remaining: number) => void;
  readonly onResumed?: () => void;
}

export const BARRIER_OPTIONS: Rules<BarrierOptions> = { ...HELD_OPTIONS, owner: text, onWaiting: callback };

type Event = NonNullable<EnterResponse["event"]>;

/** The caller's time inside a double barrier. Leave it, or release it, even after it was lost. */
export class BarrierEntry extends Leased<EnterRequest, Event, "entered"> {
  /** The same for all who are inside together, and larger than that of all who were inside before. */
  round = 0n;
  private holdId = "";
  private inside = true;
  private readonly lostMeanwhile = new AbortController();

  /** @internal */
  constructor(
    streams: Streams,
    private readonly stub: BarrierStub,
    multiplex: Multiplex,
    readonly barrier: string,
    own: Lease | undefined,
    private readonly options: BarrierOptions,
  ) {
    const open = (value: EnterRequest): Carrier<Event> =>
      multiplex.start({ $case: "enter", value }, (event) => (event.$case === "enter" ? event.value.event : undefined));
    const giveUp = async (): Promise<never> => Promise.reject(unconfirmed());
    super({ streams, open, granted: "entered", giveUp, acknowledged: true }, `entry of barrier ${barrier}`, options.lease, own);
  }

  /** @internal */
  async enter(size: number, attempt: Attempt): Promise<this> {
    const { owner = "", metadata = {}, signal } = this.options;
    const request = {
      name: this.barrier,
      size,
      leaseId: "",
      waitTimeout: duration(attempt.wait),
      owner,
      metadata,
      keepalive: undefined,
    };
    return this.open(request, signal, attempt);
  }

  protected grant({ value }: { value: Entered }): string {
    this.round = value.round;
    this.holdId = value.holdId;
    return value.holdId;
  }

  protected override notice(event: Event | undefined): void {
    const notify = <News>(callback: ((news: News) => void) | undefined, news: News): void =>
      this.kind.streams.notify(`entry of barrier ${this.barrier}`, callback, news);
    switch (event?.$case) {
      case "waiting":
        notify(this.options.onWaiting, event.value.present);
        break;
      case "suspended":
        notify(this.options.onSuspended, seconds(event.value.remaining));
        break;
      case "resumed":
        notify(this.options.onResumed, undefined);
    }
  }

  /**
   * Leaves together with the others. For the caller the entry ends at once; when this settles, all who entered with it have left or have lost
   * their leases. While the sidecar or the ensemble is away, it asks again.
   *
   * Rejects with LostError if the entry was lost before or meanwhile. With ReleaseUnconfirmedError, or with the signal's reason, the entry has ended
   * for the caller and the others all the same, but others may be inside. Calling it again has the same outcome.
   */
  async leave(signal?: AbortSignal): Promise<void> {
    checkArguments({ signal });
    await this.giveUp(async () => this.leaveWithOthers(signal));
  }

  /** A sidecar that is frozen says nothing, but the end of the lease does. */
  private async leaveWithOthers(signal: AbortSignal | undefined): Promise<void> {
    const { holdId, stub } = this;
    const stop = AbortSignal.any([this.lostMeanwhile.signal, ...(signal === undefined ? [] : [signal])]);
    let began = 0;
    const once = async (): Promise<unknown> => {
      began = performance.now();
      return this.kind.streams.during(stop, (resolve, reject) => begin(stub.leave, { holdId }, Infinity, resolve, reject));
    };
    let until = 0;
    const mayHeal = (error: unknown): boolean => {
      if (began > until) {
        until = performance.now() + ABSENCE_TIMEOUT * 1000;
      }
      // A sidecar that was started again knows the entry only some time later.
      return this.inside
        ? isTransient(error) || error instanceof HoldNotFoundError
        : isTransient(error) && performance.now() < until;
    };
    await repeated(once, mayHeal, Infinity, stop);
  }

  protected override streamEnded(error: SidekeeperError | undefined): void {
    this.inside = false;
    if (error !== undefined) {
      this.lostMeanwhile.abort(new LostError(this.claim.what, error));
    }
  }

  /** Leaves without waiting for the others. After leave it does nothing, and the other way around. Errors as of Lock.release. */
  async release(): Promise<void> {
    await this.giveUp();
  }
}

/** Nothing but the lease's stream can tell that a place is gone. */
function unconfirmed(): SidekeeperError {
  return new SidekeeperError(status.UNAVAILABLE, { message: "the stream of the lease has ended" });
}
