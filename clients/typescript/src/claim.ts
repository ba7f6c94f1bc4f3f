/** What a caller has for as long as a stream lives and its validity runs, and who keeps the deadlines. */

import { LONGEST_NAP, before, now } from "./clock.js";
import { LostError, SidekeeperError, closed, named } from "./errors.js";

/** A hold, a lease or a membership. It ends once, with the first cause given to end, or found by who looks: its validity has run out. */
export class Claim {
  suspended = false;
  asked: number | undefined;
  until = 0;
  private cause: LostError | undefined;
  over = false;
  /** Ends its stream. */
  cut: () => void = () => undefined;
  /** Settled when it has ended. */
  readonly ended: Promise<void>;
  private settle: () => void = () => undefined;
  private readonly listeners: (() => void)[] = [];
  private readonly falls = new Map<Claim, () => void>();

  constructor(readonly what: string) {
    this.ended = new Promise((resolve) => {
      this.settle = resolve;
    });
  }

  /** For how many seconds it is certainly the caller's; 0 if it is not, and from then on. */
  validFor(): number {
    if (this.over || this.cause !== undefined) {
      return 0;
    }
    const left = this.until - now();
    if (left <= 0 && this.asked !== undefined) {
      this.cause = new LostError(this.what, outlived());
    }
    return Math.max(left, 0);
  }

  /** Why it was lost; undefined as long as it is not, and if it was given up. */
  get lost(): LostError | undefined {
    this.validFor();
    return this.cause;
  }

  /**
   * Takes in an answer. One that came slowly may tell of an earlier end than one before; both are true. One that came too late changes
   * nothing.
   */
  prove(asked: number, validFor: number): void {
    if (this.lost === undefined) {
      this.asked = Math.max(this.asked ?? asked, asked);
      this.until = Math.max(this.until, asked + validFor);
    }
  }

  /** When to ask for it again. */
  due(): number {
    return this.asked === undefined ? Infinity : this.asked + patience(this.until - this.asked);
  }

  /** Has listener called at its end, before the sidecar learns of it; at once if it is over. */
  whenOver(listener: () => void): void {
    if (this.over) {
      listener();
    } else {
      this.listeners.push(listener);
    }
  }

  /** Has fall called as soon as another claim ends, before that one's stream does. */
  standOn(ground: Claim, fall: () => void): void {
    ground.falls.set(this, fall);
    this.whenOver(() => ground.falls.delete(this));
    if (ground.over) {
      fall();
    }
  }

  lose(cause: SidekeeperError): void {
    this.abandon(new LostError(this.what, cause));
  }

  /** Ends it and its stream. */
  abandon(lost?: LostError): void {
    this.end(lost);
    this.cut();
  }

  /**
   * Ends it and what stands on it, before it returns: whoever ends the stream next tells the sidecar, which gives all of it to
   * others.
   */
  end(lost?: LostError): void {
    if (this.over) {
      return;
    }
    this.cause = this.lost ?? lost;
    this.over = true;
    const calls = [...this.falls.values(), ...this.listeners];
    this.falls.clear();
    for (const call of calls) {
      call();
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

/** Asks about claims, for at most so many seconds. */
export type Ask = (ids: string[], patience: number) => Promise<ReadonlyMap<string, Answer>>;

const PAUSE_AFTER_FAILURE = 0.25;
const SHORTEST_PATIENCE = 0.1;
const FIRST_PATIENCE = 5;

/** Asks the sidecar regularly for how long claims are valid, and ends those that were not confirmed in time. */
export class Keeper {
  private readonly claims = new Map<string, Claim>();
  private closed = false;
  private asking = false;
  private resting = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly ask: Ask,
    private readonly logger?: { debug(message: string, error: unknown): void },
  ) {}

  /** Asks for the first validity, and keeps the deadline from then on. Rejects with the cause of the claim's end, or the want of an answer. */
  async begin(id: string, claim: Claim): Promise<void> {
    const sent = before();
    this.take(new Map([[id, claim]]), sent, await this.ask([id], FIRST_PATIENCE));
    if (!claim.over && claim.validFor() === 0) {
      claim.lose(outlived());
    } else if (this.closed) {
      claim.lose(closed());
    } else if (!claim.over) {
      this.claims.set(id, claim);
      claim.whenOver(() => this.claims.delete(id));
      this.plan();
    }
    if (claim.lost !== undefined) {
      throw claim.lost.cause;
    }
  }

  /** Ends all claims, and those that begin. */
  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const claim of [...this.claims.values()]) {
      claim.lose(closed());
    }
  }

  /** Does what is due, and comes back for what is due next. */
  private plan(): void {
    clearTimeout(this.timer);
    for (const claim of [...this.claims.values()]) {
      if (claim.validFor() === 0) {
        claim.lose(outlived());
      }
    }
    const claims = [...this.claims.values()];
    if (this.closed || claims.length === 0) {
      return;
    }
    const due = Math.max(Math.min(...claims.map((claim) => claim.due())), this.resting);
    if (due <= before() && !this.asking) {
      void this.question();
    }
    const next = Math.min(...claims.map((claim) => claim.until), this.asking ? Infinity : due) - before();
    this.timer = setTimeout(() => this.plan(), Math.max(0, Math.min(next, LONGEST_NAP)) * 1000 + 1);
  }

  /**
   * Asks for all claims at once. An answer is waited for while half of the shortest validity passes: then a new question is worth
   * more.
   */
  private async question(): Promise<void> {
    this.asking = true;
    const claims = new Map(this.claims);
    const shortest = Math.min(...[...claims.values()].map((claim) => claim.validFor()));
    const sent = before();
    try {
      this.take(claims, sent, await this.ask([...claims.keys()], Math.max(shortest / 2, SHORTEST_PATIENCE)));
    } catch (error) {
      this.logger?.debug("the sidecar does not say for how long something is valid", error);
      this.resting = before() + PAUSE_AFTER_FAILURE; // what is not confirmed in time ends, whatever the reason
    }
    this.asking = false;
    this.plan();
  }

  private take(claims: ReadonlyMap<string, Claim>, sent: number, answers: ReadonlyMap<string, Answer>): void {
    for (const [id, answer] of answers) {
      const claim = claims.get(id);
      if (answer.givenUp === true) {
        claim?.abandon();
      } else if (answer.end !== undefined) {
        claim?.lose(answer.end);
      } else {
        claim?.prove(sent, answer.validFor);
      }
    }
  }
}

/** How long to let pass between two questions: a quarter of the validity told, and a second at least where that leaves half of it. */
function patience(validity: number): number {
  return Math.max(validity / 4, Math.min(1, validity / 2));
}

function outlived(): SidekeeperError {
  const unreadable = now() === Infinity;
  const why = unreadable
    ? "the clock on which its validity is counted cannot be read"
    : "the sidecar has not confirmed it in time and its validity has run out";
  return named("LEASE_LOST", why);
}
