/** Sequences. */

import { Ordering, type SequenceServiceService } from "./gen/sidekeeper/sequence/v1/sequence.js";
import { guardsOf } from "./guard.js";
import { type Rules, checkArguments, checkOptions, flag } from "./options.js";
import { type Stub, callIdempotent, callNonIdempotent } from "./transport.js";
import type { Numbers, SequenceState } from "./types.js";

/** How numbers are handed out: relaxed ones are only unique, not ordered, and faster. */
export interface NumberOptions {
  readonly relaxed?: boolean;
}

const NUMBER_OPTIONS: Rules<NumberOptions> = { relaxed: flag };

/** Hands out numbers, each once. Creating this object makes no call. */
export class Sequence {
  /** @internal */
  constructor(
    private readonly stub: Stub<typeof SequenceServiceService>,
    private readonly client: object,
    readonly name: string,
  ) {}

  /**
   * Hands out a number that is larger than every number handed out, through any sidecar, before this call. Rejects with
   * SequenceNotFoundError, SequenceExhaustedError, SequenceMalformedError. After an error another attempt is safe: at worst it
   * skips numbers.
   *
   * In the body of Client.withLock it is handed out only while the lock is held (see Lock.guard); otherwise it is GuardLostError. Relaxed
   * numbers are not guarded.
   */
  async next(options: NumberOptions = {}): Promise<bigint> {
    return (await this.nextRange(1, options)).first;
  }

  /** Hands out count numbers at once, 1 to 1,000,000. Errors are those of next. */
  async nextRange(count: number, options: NumberOptions = {}): Promise<Numbers> {
    checkArguments({ count });
    checkOptions(options, NUMBER_OPTIONS);
    const relaxed = options.relaxed === true;
    const ordering = relaxed ? Ordering.RELAXED : Ordering.STRICT;
    const guards = relaxed ? [] : guardsOf(this.client);
    const reply = await callIdempotent(this.stub.next, { name: this.name, count, ordering, guards });
    return { first: reply.first, last: reply.last, incarnation: reply.incarnation };
  }

  /**
   * An endless stream of numbers, unique and in no particular order, reserved `ahead` at a time. Those reserved and not used are never
   * handed out again.
   */
  async *numbers(ahead = 100): AsyncGenerator<bigint, never> {
    for (;;) {
      const { first, last } = await this.nextRange(ahead, { relaxed: true });
      for (let number = first; number <= last; number++) {
        yield number;
      }
    }
  }

  /**
   * Creates the sequence, whose first number will be first, and returns its incarnation. Rejects with SequenceExistsError; with
   * OutcomeUnknownError it may have been created.
   */
  async create(first: bigint | number): Promise<bigint> {
    checkArguments({ first });
    const reply = await callNonIdempotent(this.stub.create, { name: this.name, first: BigInt(first) });
    return reply.incarnation;
  }

  /** Returns how far the sequence has come. Rejects with SequenceNotFoundError, SequenceMalformedError. */
  async get(): Promise<SequenceState> {
    const reply = await callIdempotent(this.stub.get, { name: this.name });
    return { lastIssued: reply.lastIssued, incarnation: reply.incarnation };
  }

  /** Removes the sequence. Rejects with SequenceNotFoundError; after OutcomeUnknownError it may be gone. */
  async delete(): Promise<void> {
    await callNonIdempotent(this.stub.delete, { name: this.name });
  }
}
