/** Work at the ticks of a schedule. */

import type { LockServiceService } from "./gen/sidekeeper/lock/v1/lock.js";
import type { FinishRequest } from "./gen/sidekeeper/once/v1/once.js";
import type { Fire, ScheduleServiceService, WorkRequest, WorkResponse } from "./gen/sidekeeper/schedule/v1/schedule.js";
import type { Attempt as Try, Carrier, Streams } from "./held.js";
import type { Lease } from "./lease.js";
import type { Multiplex } from "./multiplex.js";
import { type OnceOptions, Recorded, mayNotBeRecorded } from "./once.js";
import { HELD_OPTIONS, type Rules, callback, text } from "./options.js";
import { type Stub, callIdempotent } from "./transport.js";
import { duration } from "./types.js";

/**
 * How to work for a schedule; `wait` is for a tick, and what has no comment is as in LockOptions. The callbacks are called one at a time, as
 * events arrive.
 */
export interface WorkOptions extends Pick<
  OnceOptions,
  "wait" | "owner" | "metadata" | "signal" | "onQueued" | "onSuspended" | "onResumed" | "onRevocation"
> {
  /** The lease to hold the lock with, of the same client; by default one of its own that ends with the attempt. */
  readonly lease?: Lease;
}

export const WORK_OPTIONS: Rules<WorkOptions> = { ...HELD_OPTIONS, owner: text, onQueued: callback, onRevocation: callback };

type Event = NonNullable<WorkResponse["event"]>;

/** The caller's attempt at a tick of a schedule, or at a run. Finish it, or release it: then it counts as lost. */
export class Tick extends Recorded<WorkRequest, Event, "fire"> {
  /** When the tick was due: the same for all attempts. Of a run, when it was asked for. */
  at = new Date(0);
  /** Of a run, its id. Empty for a tick. */
  runId = "";

  /** @internal */
  constructor(
    streams: Streams,
    locks: Stub<typeof LockServiceService>,
    private readonly stub: Stub<typeof ScheduleServiceService>,
    multiplex: Multiplex,
    /** Of the schedule. */
    readonly name: string,
    own: Lease | undefined,
    private readonly options: WorkOptions,
  ) {
    const open = (value: WorkRequest): Carrier<Event> =>
      multiplex.start({ $case: "work", value }, (event) => (event.$case === "work" ? event.value.event : undefined));
    super({ streams, open, granted: "fire" }, locks, `schedule ${name}`, name, own, options);
  }

  /** @internal */
  async start(attempt: Try): Promise<this> {
    const { owner = "", metadata = {}, signal } = this.options;
    const waitTimeout = duration(attempt.wait);
    return this.open({ name: this.name, leaseId: "", waitTimeout, owner, metadata, keepalive: undefined }, signal, attempt);
  }

  protected grant({ value }: { value: Fire }): string {
    this.at = value.tick ?? this.at;
    this.runId = value.runId;
    return this.begun(value);
  }

  protected override async sendFinish(request: FinishRequest): Promise<unknown> {
    return callIdempotent(this.stub.finish, request, mayNotBeRecorded);
  }
}
