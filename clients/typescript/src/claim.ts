/** What a caller holds while a stream lives and its validity has not run out, and the checks that keep its deadline. */

import { AsyncResource } from "node:async_hooks";

import { LONGEST_NAP, before, now } from "./clock.js";
import { LostError, SidekeeperError, closed, named } from "./errors.js";
import type { Logger } from "./types.js";

/**
 * Ends once, with the first cause that is given to `end` or found by a reader: its validity has run out. A claim that borrows the
 * validity of another is valid for as long as that one is.
 */
export class Claim {
  suspended = false;
  asked: number | undefined;
  until = 0;
  over = false;
  /** Of a lease, whether anything is on its stream, or that is broken. */
  carries: (() => boolean) | undefined;
  /** Cancels its stream. */
  cancel: () => void = () => undefined;
  /** Settled when it has ended. */
  readonly ended: Promise<void>;
  private cause: LostError | undefined;
  private settle: () => void = () => undefined;
  private readonly listeners: (() => void)[] = [];
  private readonly dependents = new Set<Claim>();

  constructor(
    readonly what: string,
    private readonly borrowed?: Claim,
    private readonly logger?: Logger,
  ) {
    this.ended = new Promise((resolve) => {
      this.settle = resolve;
    });
  }

  /**
   * For how many seconds it is proven to be the caller's; 0 if it is not. Then it is lost, unless it is a lease on which nothing
   * stands: no claim depends on that, and it may be valid again.
   */
  validFor(): number {
    if (this.over || this.cause !== undefined) {
      return 0;
    }
    const left = this.borrowed?.validFor() ?? Math.max(this.until - now(), 0);
    if (left === 0) {
      const counted = this.carries === undefined || this.carries() || this.dependents.size > 0;
      const cause = this.borrowed?.lost?.cause ?? (this.asked === undefined || !counted ? undefined : expired());
      this.cause = cause && new LostError(this.what, cause);
    }
    return left;
  }

  /** Why it was lost; undefined as long as it is not, and if it was given up. */
  get lost(): LostError | undefined {
    this.validFor();
    return this.cause;
  }

  get wasGivenUp(): boolean {
    return this.over && this.cause === undefined;
  }

  /**
   * Applies an answer to a question sent at `asked`. A slow answer may prove less than an earlier one; both are true. One that arrives
   * after the end changes nothing.
   */
  extend(asked: number, validFor: number): void {
    if (this.lost === undefined) {
      this.asked = Math.max(this.asked ?? asked, asked);
      this.until = Math.max(this.until, asked + validFor);
    }
  }

  /** When to ask for its validity again. */
  nextCheck(): number {
    return this.asked === undefined ? Infinity : this.asked + checkInterval(this.until - this.asked);
  }

  /** Calls listener, in the async context of this call, when it ends, before the sidecar learns of it; at once if it has ended. */
  onEnd(listener: () => void): void {
    if (this.over) {
      this.call(listener);
    } else {
      this.listeners.push(AsyncResource.bind(listener));
    }
  }

  /** What a listener throws must not end what others are told. */
  private call(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.logger?.error(`a listener to the end of ${this.what} failed`, error);
    }
  }

  /** Logs why it could not be given up after its body had failed. For the caller it is over all the same. */
  logFailure(error: unknown): void {
    const told = `${this.what} could not be given up as its body has ended`;
    if (error instanceof LostError) {
      this.logger?.debug(told, error);
    } else {
      this.logger?.error(told, error);
    }
  }

  /** Ends it as soon as the other claim ends, before the other one's stream does. */
  dependsOn(other: Claim): void {
    other.dependents.add(this);
    this.onEnd(() => other.dependents.delete(this));
    if (other.over) {
      this.loseWith(other);
    }
  }

  private loseWith(other: Claim): void {
    this.lose(other.lost?.cause ?? named("LEASE_CLOSED", "the lease is closed"));
  }

  lose(cause: SidekeeperError): void {
    this.abandon(new LostError(this.what, cause));
  }

  /** Ends it and its stream. */
  abandon(lost?: LostError): void {
    this.end(lost);
    this.cancel();
  }

  /** Ends it and what depends on it before it returns: when its stream ends, the sidecar grants all of that to others. */
  end(lost?: LostError): void {
    if (this.over) {
      return;
    }
    this.cause = this.lost ?? lost;
    this.over = true;
    for (const dependent of [...this.dependents]) {
      dependent.loseWith(this);
    }
    for (const listener of this.listeners) {
      this.call(listener);
    }
    this.settle();
  }
}

/** What the sidecar says about one claim. */
export interface Answer {
  readonly validFor: number;
  readonly end?: SidekeeperError;
  readonly givenUp?: boolean;
}

/** Asks about the claims of some ids, within a timeout in seconds. */
export type Ask = (ids: string[], timeout: number) => Promise<ReadonlyMap<string, Answer>>;

const PAUSE_AFTER_FAILURE = 0.25;
const SHORTEST_TIMEOUT = 0.1;
export const SHORTEST_PAUSE = 0.05;
const FIRST_TIMEOUT = 5;

/** Asks the sidecar regularly how long claims are valid, and ends those that it does not confirm in time. */
export class Checker {
  private readonly claims = new Map<string, Claim>();
  private closed = false;
  private asking = false;
  private notBefore = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly ask: Ask,
    private readonly logger?: Logger,
  ) {}

  /** Asks for the first validity, and keeps the deadline from then on. Rejects with the cause of its end, or the question's error. */
  async begin(id: string, claim: Claim): Promise<void> {
    const sent = before();
    this.apply(new Map([[id, claim]]), sent, await this.ask([id], FIRST_TIMEOUT));
    if (!claim.over && claim.validFor() === 0) {
      claim.lose(expired());
    } else if (this.closed) {
      claim.lose(closed());
    } else if (!claim.over) {
      this.claims.set(id, claim);
      claim.onEnd(() => this.claims.delete(id));
      this.plan();
    }
    if (claim.lost !== undefined) {
      throw claim.lost.cause;
    }
  }

  /** Ends all claims, and those that begin later. */
  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const claim of [...this.claims.values()]) {
      claim.lose(closed());
    }
  }

  /** Does what is due, and sets the timer for what is due next. */
  private plan(): void {
    clearTimeout(this.timer);
    for (const claim of [...this.claims.values()]) {
      if (claim.lost !== undefined) {
        claim.abandon(claim.lost);
      }
    }
    const claims = [...this.claims.values()];
    if (this.closed || claims.length === 0) {
      return;
    }
    const due = Math.max(Math.min(...claims.map((claim) => claim.nextCheck())), this.notBefore);
    if (due <= before() && !this.asking) {
      void this.check();
    }
    const ends = claims.map(({ until }) => until).filter((until) => until > before());
    const next = Math.min(...ends, this.asking ? Infinity : due) - before();
    this.timer = setTimeout(() => this.plan(), Math.max(0, Math.min(next, LONGEST_NAP)) * 1000 + 1);
  }

  /**
   * Asks about all claims at once. The timeout is half of the shortest validity, or of a second if nothing is valid: after that a new
   * question proves more.
   */
  private async check(): Promise<void> {
    this.asking = true;
    const claims = new Map(this.claims);
    const valid = [...claims.values()].map((claim) => claim.validFor()).filter((left) => left > 0);
    const shortest = valid.length > 0 ? Math.min(...valid) : 1;
    const sent = before();
    try {
      this.apply(claims, sent, await this.ask([...claims.keys()], Math.max(shortest / 2, SHORTEST_TIMEOUT)));
    } catch (error) {
      this.logger?.debug("the sidecar did not answer how long something is valid", error);
      this.notBefore = before() + PAUSE_AFTER_FAILURE; // what is not confirmed in time ends, whatever the reason
    }
    this.asking = false;
    this.plan();
  }

  private apply(claims: ReadonlyMap<string, Claim>, sent: number, answers: ReadonlyMap<string, Answer>): void {
    for (const [id, answer] of answers) {
      const claim = claims.get(id);
      if (answer.givenUp === true) {
        claim?.abandon();
      } else if (answer.end !== undefined) {
        claim?.lose(answer.end);
      } else {
        claim?.extend(sent, answer.validFor);
      }
    }
  }
}

/**
 * A quarter of the validity in seconds, or one second if that leaves at least half of it. A lease whose validity has run out is asked about
 * all the same.
 */
function checkInterval(validity: number): number {
  return validity > 0 ? Math.max(validity / 4, Math.min(1, validity / 2), SHORTEST_PAUSE) : PAUSE_AFTER_FAILURE;
}

function expired(): SidekeeperError {
  const unreadable = now() === Infinity;
  const why = unreadable
    ? "the clock on which its validity is counted cannot be read"
    : "the sidecar has not confirmed it in time and its validity has run out";
  return named("LEASE_LOST", why);
}
