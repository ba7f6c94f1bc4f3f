/** The scenarios that every client passes: ../../conformance/scenarios.yaml, where the steps are explained. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";

import { credentials, status } from "@grpc/grpc-js";
import { parse } from "yaml";

import { sleep, use } from "../src/clock.js";
import {
  type AllOptions,
  Attempt,
  BarrierEntry,
  type Claim,
  Client,
  type ConfigEvent,
  type Leader,
  Leadership,
  Lease,
  Lock,
  type LockOptions,
  Locks,
  LostError,
  Membership,
  type Mode,
  Permits,
  type OnConflict,
  type OnceOptions,
  type Outcome,
  type Precondition,
  type Revocation,
  SidekeeperError,
  SuspendedError,
  Tick,
  type WithLockOptions,
  nameOf,
  pick,
  segmentOf,
} from "../src/index.js";
import { ROOT, Sidecar, until } from "./sidecar.js";

interface Step {
  readonly do?: string;
  readonly expect?: string;
  readonly as?: string;
  readonly of?: string;
  readonly than?: string;
  readonly client?: string;
  readonly error?: string;
  readonly code?: string;
  readonly field?: string;
  readonly certificate?: string;
  readonly authority?: string;
  readonly address?: string;
  readonly says?: string;
  readonly flags?: string;
  readonly policy?: string;
  readonly reason?: string;
  readonly later?: boolean;
  readonly all?: boolean;
  readonly within?: number | bigint;
  readonly after?: number | bigint;
  readonly for?: number | bigint;
  readonly wait?: number | bigint;
  readonly grace?: number | bigint;
  readonly ttl?: number | bigint;
  readonly "suspension grace"?: number | bigint;
  readonly "detect deadlock"?: boolean;
  readonly lock?: string;
  readonly lease?: string;
  readonly mode?: Mode;
  readonly owner?: string;
  readonly sequence?: string;
  readonly barrier?: string;
  readonly first?: bigint;
  readonly last?: bigint;
  readonly count?: bigint;
  readonly ahead?: bigint;
  readonly group?: string;
  readonly member?: string;
  readonly locks?: readonly string[];
  readonly election?: string;
  readonly candidate?: string;
  readonly to?: string;
  readonly "on conflict"?: OnConflict;
  readonly semaphore?: string;
  readonly numbered?: boolean;
  readonly quarantine?: number | bigint;
  readonly key?: string;
  readonly value?: string;
  readonly if?: "missing" | "exists";
  readonly prefix?: string;
  readonly work?: string;
  readonly per?: "name";
  readonly outcome?: Outcome;
  readonly "on loss"?: "skip";
  readonly "on failure"?: "skip";
  readonly attempts?: bigint;
  readonly schedule?: string;
  readonly run?: string;
  readonly note?: string;
  readonly set?: string;
  readonly size?: bigint;
  readonly position?: bigint;
  readonly number?: bigint;
  readonly times?: bigint;
  readonly is?: unknown;
  readonly are?: readonly string[];
}

interface Scenario {
  readonly name: string;
  readonly only?: readonly string[];
  readonly leases?: bigint;
  readonly steps: readonly Step[];
}

const scenarios = parse(readFileSync(path.join(ROOT, "clients/conformance/scenarios.yaml"), "utf8"), {
  intAsBigInt: true,
}) as Scenario[];
const situations = parse(readFileSync(path.join(ROOT, "clients/conformance/situations.yaml"), "utf8")) as Record<
  string,
  { readonly clients: string } | undefined
>;
const played = scenarios.filter(({ only }) => only?.includes("typescript") ?? true);

/** Something that is waited for in the background. */
interface Pending {
  readonly controller: AbortController;
  readonly result: Promise<Thing>;
  position: number | undefined;
  ahead: ReadonlyMap<string, number>;
  settled: boolean;
}

function waiting({ wait }: Step): { readonly wait?: number } {
  return wait === undefined ? {} : { wait: Number(wait) };
}

type Held = Pick<Lock, "valid" | "error">;

/** Something that runs in the background: a body, a leader, a member that stays. */
interface Job {
  times: number;
  why: unknown;
  held: Held | undefined;
  settled: boolean;
  result: Promise<unknown>;
  finish: () => void;
}

/** What a watch has told so far. */
interface Watch {
  state: Record<string, string> | undefined;
  stale: boolean;
  leader: string | undefined;
}

type Thing = Lock | Locks | Leadership | Lease | Membership | BarrierEntry | Attempt | Tick | Permits;

/** Plays one scenario. */
class Stage {
  private readonly clients = new Map<string, Client>();
  private readonly things = new Map<string, Thing>();
  private readonly claims = new Map<string, Claim>();
  private readonly pending = new Map<string, Pending>();
  private readonly jobs = new Map<string, Job>();
  private readonly watches = new Map<string, Watch>();
  private readonly revocations = new Map<string, Revocation>();
  private readonly present = new Map<string, number>();
  /** Which share works on each item. */
  private readonly worksOn = new Map<string, string | undefined>();
  private readonly stop = new AbortController();

  constructor(private readonly sidecar: Sidecar) {}

  close(): void {
    use(undefined);
    this.stop.abort();
    for (const client of this.clients.values()) {
      client.close();
    }
  }

  async play(step: Step): Promise<void> {
    const verb = step.do ?? step.expect ?? "";
    const play = (step.do === undefined ? this.expecting : this.doing)[verb];
    assert.ok(play, `nobody knows what ${verb} is`);
    await play(step);
  }

  private client(step: Step): Client {
    const name = step.client ?? "one";
    const client = this.clients.get(name) ?? new Client({ address: this.sidecar.address });
    this.clients.set(name, client);
    return client;
  }

  /** Makes a client over TCP. */
  private async connect(step: Step): Promise<void> {
    if (step.authority === undefined) {
      this.connectPlainly(step);
      return;
    }
    const foreign = await Sidecar.start();
    try {
      const of = (whose?: string): Sidecar => (whose === "foreign" ? foreign : this.sidecar);
      const name = step.certificate === "expired" ? "expired" : "client";
      const [key, chain] =
        step.certificate === undefined ? [] : [of(step.certificate).pem(`${name}-key`), of(step.certificate).pem(name)];
      const secure = credentials.createSsl(of(step.authority).pem("ca"), key, chain);
      this.clients.set(step.client ?? "one", new Client({ address: this.at(step), credentials: secure }));
    } finally {
      await foreign.end();
    }
  }

  /** The address that a step names. */
  private at({ address = "the secure one" }: Step): string {
    const special = new Map([
      ["the secure one", this.sidecar.secureAddress],
      ["the ensemble's", this.sidecar.ensembleAddress],
      ["the served one", this.sidecar.servedAddress],
    ]);
    return special.get(address) ?? address;
  }

  private connectPlainly(step: Step): void {
    delete process.env["SIDEKEEPER_ADDRESS"];
    try {
      this.clients.set(step.client ?? "one", new Client({ address: this.at(step) }));
    } catch (error) {
      assert.ok(error instanceof RangeError && step.says !== undefined, String(error));
      this.checkText(step, error.message);
      return;
    }
    assert.equal(step.says, undefined);
  }

  /** Does it, and sees that it fails as it must. */
  private async attempt<T>(step: Step, work: Promise<T>): Promise<T | undefined> {
    if (step.error === undefined) {
      return work;
    }
    try {
      await work;
    } catch (error) {
      this.checkError({ ...step, reason: step.error }, error);
      return undefined;
    }
    throw new Error(`${step.do} does not fail with ${step.error}`);
  }

  private checkError(step: Step, error: unknown): void {
    if (step.reason === "SUSPENDED") {
      assert.ok(error instanceof SuspendedError, String(error));
      return;
    }
    const cause = error instanceof LostError ? error.cause : error;
    assert.ok(cause instanceof SidekeeperError, String(error));
    assert.equal(cause.reason, step.reason ?? "", String(cause));
    assert.equal(status[cause.code], step.code ?? status[cause.code], String(cause));
    if (step.field !== undefined) {
      assert.deepEqual(
        cause.fields.map(({ field }) => field),
        [step.field],
      );
    }
    this.checkText(step, cause.message);
  }

  private checkText(step: Step, text: string): void {
    if (step.says !== undefined && process.env["SIDEKEEPER_SKEW"] === undefined) {
      const parts = situations[step.says]?.clients.split("…") ?? [];
      assert.match(text, new RegExp(`^${parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`, "s"));
    }
  }

  private async until(step: Step, happened: () => boolean | Promise<boolean>): Promise<void> {
    const took = await until(`${step.expect} ${step.of}`, Number(step.within ?? 10), happened);
    assert.ok(took >= Number(step.after ?? 0), `${step.expect} ${step.of}: after ${took} s already`);
  }

  private thing(name: string | undefined): Thing {
    const found = this.things.get(name ?? "");
    assert.ok(found, `there is no ${name}`);
    return found;
  }

  private claim(name: string | undefined): Claim {
    const found = this.claims.get(name ?? "");
    assert.ok(found, `there is no claim ${name}`);
    return found;
  }

  private leadership(name: string | undefined): Leadership {
    const found = this.thing(name);
    assert.ok(found instanceof Leadership);
    return found;
  }

  private entry(name: string | undefined): BarrierEntry {
    const found = this.thing(name);
    assert.ok(found instanceof BarrierEntry);
    return found;
  }

  private made(name: string | undefined): Attempt | Tick {
    const found = this.thing(name);
    assert.ok(found instanceof Attempt || found instanceof Tick);
    return found;
  }

  private permit(name: string | undefined): Permits {
    const found = this.thing(name);
    assert.ok(found instanceof Permits);
    return found;
  }

  private token(step: Step, name: string | undefined): bigint {
    const found = this.thing(name);
    if (found instanceof Locks) {
      return found.fencingTokens.get(step.lock ?? "") ?? 0n;
    }
    const numbered = found instanceof Lock || found instanceof Attempt || found instanceof Tick;
    return numbered ? found.fencingToken : this.leadership(name).term.fencingToken;
  }

  private keep(step: Step, thing: Thing | undefined): void {
    if (step.as !== undefined && thing !== undefined) {
      this.things.set(step.as, thing);
    }
  }

  private lockOptions(step: Step): LockOptions {
    const lease = step.lease === undefined ? undefined : this.thing(step.lease);
    return {
      ...(step.mode === undefined ? {} : { mode: step.mode }),
      ...(step.wait === undefined ? {} : { wait: Number(step.wait) }),
      ...(lease instanceof Lease ? { lease } : {}),
      owner: step.owner ?? "",
      detectDeadlock: step["detect deadlock"] ?? false,
      onRevocation: (asked) => this.revocations.set(step.as ?? "", asked),
    };
  }

  private allOptions(step: Step): AllOptions {
    const { wait, lease, owner, onRevocation } = this.lockOptions(step);
    const given = { ...(wait === undefined ? {} : { wait }), ...(lease === undefined ? {} : { lease }) };
    return { ...given, owner: owner ?? "", ...(onRevocation === undefined ? {} : { onRevocation }) };
  }

  private onceOptions(step: Step): OnceOptions {
    const { wait, lease, owner } = this.lockOptions(step);
    const given = { ...(wait === undefined ? {} : { wait }), ...(lease === undefined ? {} : { lease }) };
    return {
      ...given,
      owner: owner ?? "",
      perName: step.per === "name",
      skipLost: step["on loss"] === "skip",
      skipFailed: step["on failure"] === "skip",
      maxAttempts: Number(step.attempts ?? 0),
    };
  }

  private job(step: Step, begin: (body: (held: Held, signal: AbortSignal) => Promise<void>) => Promise<unknown>): void {
    const job: Job = {
      times: 0,
      why: undefined,
      held: undefined,
      settled: false,
      result: Promise.resolve(),
      finish: () => undefined,
    };
    const finished = new Promise<void>((resolve) => {
      job.finish = resolve;
    });
    job.result = begin(async (held, signal) => {
      job.held = held;
      job.times++;
      await Promise.race([
        finished,
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            job.why = signal.reason;
            reject(signal.reason as Error);
          });
        }),
      ]);
    });
    const settle = (): void => {
      job.settled = true;
    };
    job.result.then(settle, settle);
    this.jobs.set(step.as ?? "", job);
  }

  /** Does something, in the background if it is for later. */
  private async carryOut(step: Step, work: () => Promise<void>): Promise<void> {
    if (step.later === true) {
      this.job(step, work);
    } else {
      await this.attempt(step, work());
    }
  }

  private jobOf(step: Step): Job {
    const found = this.jobs.get(step.of ?? "");
    assert.ok(found, `there is no ${step.of}`);
    return found;
  }

  private watch(step: Step): Watch {
    const watch: Watch = { state: undefined, stale: false, leader: undefined };
    this.watches.set(step.as ?? "", watch);
    return watch;
  }

  private watchOf(step: Step): Watch {
    const found = this.watches.get(step.of ?? "");
    assert.ok(found, `there is no ${step.of}`);
    return found;
  }

  /** Asks for something, in the background if it is for later. */
  private async ask(step: Step, work: (client: Client, signal: AbortSignal) => Promise<Thing>): Promise<void> {
    const controller = new AbortController();
    const result = work(this.client(step), controller.signal);
    if (step.later !== true) {
      this.keep(step, await this.attempt(step, result));
      return;
    }
    const pending: Pending = { controller, result, position: undefined, ahead: new Map(), settled: false };
    const settle = (): void => {
      pending.settled = true;
    };
    result.then(settle, settle);
    this.pending.set(step.as ?? "", pending);
  }

  private readonly doing: Record<string, (step: Step) => Promise<void> | void> = {
    acquire: async (step) =>
      this.ask(step, async (client, signal) => {
        const onQueued = ({ position }: { position: number }): void => {
          const pending = this.pending.get(step.as ?? "");
          if (pending !== undefined) {
            pending.position = position;
          }
        };
        return client.acquire(step.lock ?? "", { ...this.lockOptions(step), signal, onQueued });
      }),
    "acquire all": async (step) =>
      this.ask(step, async (client, signal) => {
        const onQueued = (ahead: ReadonlyMap<string, number>): void => {
          const pending = this.pending.get(step.as ?? "");
          if (pending !== undefined) {
            pending.ahead = ahead;
          }
        };
        return client.acquireAll(step.locks ?? [], { ...this.allOptions(step), signal, onQueued });
      }),
    campaign: async (step) =>
      this.ask(step, async (client, signal) => {
        const onCandidate = (position: number): void => {
          const pending = this.pending.get(step.as ?? "");
          if (pending !== undefined) {
            pending.position = position;
          }
        };
        const options = { ...waiting(step), value: step.value ?? "", signal, onCandidate };
        return client.campaign(step.election ?? "", step.candidate ?? "", options);
      }),
    begin: async (step) =>
      this.ask(step, async (client, signal) => {
        const onQueued = ({ position }: { position: number }): void => {
          const pending = this.pending.get(step.as ?? "");
          if (pending !== undefined) {
            pending.position = position;
          }
        };
        return client.begin(step.work ?? "", step.key ?? "", { ...this.onceOptions(step), signal, onQueued });
      }),
    "finish attempt": async (step) => {
      await this.attempt(step, this.made(step.of).finish(step.outcome ?? "failed", step.note));
    },
    "put schedule": async (step) => this.sidecar.schedules.put(step.schedule ?? ""),
    "run schedule": async (step) => this.sidecar.schedules.run(step.schedule ?? "", step.run ?? ""),
    work: async (step) =>
      this.ask(step, async (client, signal) => {
        const onQueued = ({ position }: { position: number }): void => {
          const pending = this.pending.get(step.as ?? "");
          if (pending !== undefined) {
            pending.position = position;
          }
        };
        const { wait, lease, owner } = this.allOptions(step);
        const given = { ...(wait === undefined ? {} : { wait }), ...(lease === undefined ? {} : { lease }), owner: owner ?? "" };
        return client.work(step.schedule ?? "", { ...given, signal, onQueued });
      }),
    "create semaphore": async (step) => {
      await this.attempt(step, this.client(step).createSemaphore(step.semaphore ?? "", Number(step.count)));
    },
    "acquire permit": async (step) =>
      this.ask(step, async (client, signal) => {
        const onQueued = (position: number): void => {
          const pending = this.pending.get(step.as ?? "");
          if (pending !== undefined) {
            pending.position = position;
          }
        };
        const rests = step.quarantine === undefined ? {} : { quarantine: Number(step.quarantine) };
        const options = { ...waiting(step), ...rests, numbered: step.numbered ?? false, signal, onQueued };
        return client.acquirePermits(step.semaphore ?? "", options);
      }),
    claim: async (step) => {
      const known = step.of === undefined ? {} : { claimId: this.claim(step.of).id };
      const options = { ...known, ...waiting(step), owner: step.owner ?? "" };
      const asked = this.client(step).claim(step.lock ?? "", Number(step.for), "a test", options);
      const claim = await this.attempt(step, asked);
      if (claim !== undefined) {
        this.claims.set(step.as ?? "", claim);
      }
    },
    extend: async (step) => {
      await this.attempt(step, this.claim(step.of).extend(Number(step.for)));
    },
    "end claim": async (step) => {
      await this.attempt(step, this.claim(step.of).release());
    },
    resign: async (step) => {
      await this.attempt(step, this.leadership(step.of).resign());
    },
    proclaim: async (step) => {
      await this.attempt(step, this.leadership(step.of).proclaim(step.value ?? ""));
    },
    transfer: async (step) => {
      const reason = step.reason ?? "";
      await this.attempt(step, this.client(step).transferLeadership(step.election ?? "", step.to ?? "", { reason }));
    },
    cancel: async (step) => {
      const pending = this.pending.get(step.of ?? "");
      pending?.controller.abort(new Error("cancelled"));
      await assert.rejects(pending?.result ?? Promise.resolve(), /cancelled/);
    },
    release: async (step) => {
      const held = this.thing(step.of);
      assert.ok(
        held instanceof Lock ||
          held instanceof Locks ||
          held instanceof BarrierEntry ||
          held instanceof Attempt ||
          held instanceof Tick ||
          held instanceof Permits,
      );
      await this.attempt(step, held.release());
    },
    "open lease": async (step) => {
      const ttl = step.ttl === undefined ? {} : { ttl: Number(step.ttl) };
      await this.ask(step, async (client, signal) => client.openLease({ ...ttl, ...waiting(step), signal }));
    },
    "close lease": async (step) => {
      const lease = this.thing(step.of);
      assert.ok(lease instanceof Lease);
      await this.attempt(step, lease.close());
    },
    close: (step) => this.client(step).close(),
    connect: (step) => this.connect(step),
    serve: ({ flags = "", policy = "" }) => this.sidecar.serve(flags, policy),
    expire: async (step) => this.sidecar.expire(step.all === true ? undefined : step.lock),
    suspend: async (step) => this.sidecar.suspend(Number(step.for)),
    freeze: () => this.sidecar.send("SIGSTOP"),
    thaw: () => this.sidecar.send("SIGCONT"),
    kill: async () => this.sidecar.kill(),
    stop: () => this.sidecar.send("SIGTERM"),
    break: async (step) => this.sidecar.break(step.lock ?? "", Number(step.within)),
    blind: () => {
      use({
        coarse: 0,
        read: () => {
          throw new Error("blind");
        },
      });
    },
    sight: () => use(undefined),
    restart: async () => this.sidecar.start(),
    pause: async (step) => sleep(Number(step.for)),
    revoke: async (step) => {
      const grace = step.grace === undefined ? {} : { grace: Number(step.grace) };
      await this.attempt(step, this.client(step).revoke(step.lock ?? "", { reason: step.reason ?? "", ...grace }));
    },
    run: (step) => {
      if (step.locks !== undefined) {
        const locks = step.locks;
        this.job(step, async (body) => this.client(step).withLocks(locks, this.allOptions(step), body));
        return;
      }
      const { work, key = "" } = step;
      if (work !== undefined) {
        this.job(step, async (body) => this.client(step).once(work, key, this.onceOptions(step), body));
        return;
      }
      const grace = step["suspension grace"];
      const options: WithLockOptions = {
        ...this.lockOptions(step),
        ...(grace === undefined ? {} : { suspensionGrace: Number(grace) }),
      };
      this.job(step, async (body) => this.client(step).withLock(step.lock ?? "", options, body));
    },
    lead: (step) => {
      const options = this.lockOptions(step);
      this.job(step, async (body) => this.client(step).runWhileLeader(step.lock ?? "", options, body));
    },
    observe: (step) => {
      const watch = this.watch(step);
      const follow = async (): Promise<void> => {
        if (step.election !== undefined) {
          for await (const { leader } of this.client(step).observe(step.election, this.stop.signal)) {
            watch.leader = leader === undefined ? "" : shown(leader);
          }
          return;
        }
        for await (const leader of this.client(step).watchLeader(step.lock ?? "", this.stop.signal)) {
          watch.leader = leader?.owner ?? "";
        }
      };
      follow().catch(() => undefined);
    },
    "stay joined": async (step) => {
      const stop = new AbortController();
      const job: Job = {
        times: 0,
        why: undefined,
        held: undefined,
        settled: false,
        result: Promise.resolve(),
        finish: () => stop.abort(),
      };
      const onJoined = (): void => {
        job.times++;
      };
      const staying = this.client(step).stayJoined(step.group ?? "", step.member ?? "", { signal: stop.signal, onJoined });
      job.result = staying.catch(() => undefined);
      this.jobs.set(step.as ?? "", job);
      await this.until(step, () => job.times > 0);
    },
    "define set": async (step) => {
      await this.sidecar.define(step.set ?? "", ...Array.from({ length: Number(step.count) }, (_, item) => String(item)));
    },
    share: async (step) => {
      const stop = new AbortController();
      const options = { member: step.member ?? "", signal: stop.signal };
      const sharing = this.client(step).share(step.set ?? "", options, async (item, signal) => {
        assert.ok(!this.worksOn.has(item.name), `two work on ${item.name}`);
        this.worksOn.set(item.name, step.as);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        this.worksOn.delete(item.name);
      });
      if (step.error !== undefined) {
        await this.attempt(step, sharing);
        return;
      }
      const job: Job = { times: 0, why: undefined, held: undefined, settled: false, result: sharing, finish: () => stop.abort() };
      job.result = sharing
        .catch((error: unknown) => {
          if (error !== stop.signal.reason) {
            throw error;
          }
        })
        .finally(() => (job.settled = true));
      job.result.catch(() => undefined);
      this.jobs.set(step.as ?? "", job);
    },
    finish: (step) => this.jobOf(step).finish(),
    create: async (step) => {
      await this.attempt(
        step,
        this.client(step)
          .sequence(step.sequence ?? "")
          .create(step.first ?? 0n),
      );
    },
    next: async (step) => {
      assert.equal(
        await this.attempt(
          step,
          this.client(step)
            .sequence(step.sequence ?? "")
            .next(),
        ),
        step.is,
      );
    },
    range: async (step) => {
      const range = this.client(step)
        .sequence(step.sequence ?? "")
        .nextRange(Number(step.count));
      const numbers = await this.attempt(step, range);
      assert.deepEqual([numbers?.first, numbers?.last], [step.first, step.last]);
    },
    take: async (step) => {
      const taken: bigint[] = [];
      for await (const number of this.client(step)
        .sequence(step.sequence ?? "")
        .numbers(Number(step.ahead))) {
        if (taken.push(number) === Number(step.count)) {
          break;
        }
      }
      assert.equal(new Set(taken).size, Number(step.count));
    },
    join: async (step) => {
      const lease = step.lease === undefined ? {} : { lease: this.thing(step.lease) as Lease };
      const onConflict = step["on conflict"] ?? "reject";
      await this.ask(step, async (client, signal) =>
        client.join(step.group ?? "", step.member ?? "", { ...lease, ...waiting(step), onConflict, signal }),
      );
    },
    leave: async (step) => {
      const inside = this.thing(step.of);
      assert.ok(inside instanceof Membership || inside instanceof BarrierEntry);
      await this.carryOut(step, async () => inside.leave());
    },
    enter: async (step) => {
      const lease = step.lease === undefined ? {} : { lease: this.thing(step.lease) as Lease };
      const onWaiting = (present: number): unknown => this.present.set(step.as ?? "", present);
      await this.ask(step, async (client, signal) =>
        client.enterBarrier(step.barrier ?? "", Number(step.size), { ...lease, ...waiting(step), signal, onWaiting }),
      );
    },
    "set barrier": async (step) => {
      await this.attempt(step, this.client(step).setBarrier(step.barrier ?? ""));
    },
    "remove barrier": async (step) => {
      await this.attempt(step, this.client(step).removeBarrier(step.barrier ?? ""));
    },
    "await barrier": async (step) => {
      const options = { signal: this.stop.signal, onWaiting: () => this.present.set(step.as ?? "", 0) };
      await this.carryOut(step, async () => this.client(step).awaitBarrier(step.barrier ?? "", options));
    },
    put: async (step) => {
      const value = step.size === undefined ? (step.value ?? "") : new Uint8Array(Number(step.size));
      const precondition: Precondition | undefined = step.if;
      await this.attempt(step, this.client(step).config.put(step.key ?? "", value, precondition));
    },
    get: async (step) => {
      const entry = await this.attempt(step, this.client(step).config.get(step.key ?? "", { linearizable: true }));
      assert.equal(entry && new TextDecoder().decode(entry.value), step.is);
    },
    delete: async (step) => {
      await this.attempt(step, this.client(step).config.delete(step.key ?? ""));
    },
    watch: (step) => {
      const watch = this.watch(step);
      const followViews = async (views: AsyncIterable<{ readonly stale: boolean }>): Promise<void> => {
        for await (const { stale } of views) {
          watch.state = {};
          watch.stale = stale;
        }
      };
      const follow = async (): Promise<void> => {
        if (step.lock !== undefined) {
          return followViews(this.client(step).watchLock(step.lock, this.stop.signal));
        }
        if (step.group !== undefined) {
          return followViews(this.client(step).watchGroup(step.group, this.stop.signal));
        }
        for await (const event of this.client(step).config.watchPrefix(step.prefix, this.stop.signal)) {
          apply(watch, event);
        }
      };
      follow().catch(() => undefined);
    },
  };

  private readonly expecting: Record<string, (step: Step) => Promise<void> | void> = {
    valid: (step) => {
      assert.ok(this.thing(step.of).valid);
      assert.equal(this.thing(step.of).error, undefined);
    },
    invalid: (step) => {
      assert.ok(!this.thing(step.of).valid);
      assert.equal(this.thing(step.of).validFor, 0);
    },
    "given up": (step) => {
      assert.ok(!this.thing(step.of).valid);
      assert.equal(this.thing(step.of).error, undefined);
    },
    lost: async (step) => {
      await this.until(step, () => this.thing(step.of).error !== undefined);
      this.checkError(step, this.thing(step.of).error);
      await this.thing(step.of).ended;
      assert.equal(this.thing(step.of).signal.reason, this.thing(step.of).error);
    },
    suspended: async (step) => this.until(step, () => this.thing(step.of).suspended),
    resumed: async (step) => this.until(step, () => !this.thing(step.of).suspended),
    revocation: async (step) => {
      await this.until(step, () => this.revocations.has(step.of ?? ""));
      const asked = this.revocations.get(step.of ?? "");
      assert.equal(asked?.reason, step.reason);
      assert.equal(asked?.grace === undefined, step.grace === undefined);
      assert.ok(asked?.grace === undefined || (asked.grace > 0 && asked.grace <= Number(step.grace)));
    },
    queued: async (step) => this.until(step, () => this.pending.get(step.of ?? "")?.position === Number(step.position)),
    waiting: async (step) => this.until(step, () => this.present.get(step.of ?? "") === Number(step.number ?? 0)),
    "going on": (step) => assert.ok(!this.jobOf(step).settled),
    round: (step) => {
      const [one, other] = [this.entry(step.of).round, this.entry(step.than).round];
      assert.ok(
        other > 0n && (step.is === "larger" ? one > other : one === other),
        `round ${one} is not ${step.is} than ${other}`,
      );
    },
    ahead: async (step) => {
      const expected = Object.entries(step.is as Record<string, bigint>).map(([name, ahead]) => [name, Number(ahead)]);
      await this.until(step, () => {
        const ahead = [...(this.pending.get(step.of ?? "")?.ahead ?? [])].sort();
        return JSON.stringify(ahead) === JSON.stringify(expected.sort());
      });
    },
    "yield request": async (step) => {
      await this.until(step, () => this.leadership(step.of).yieldRequest !== undefined);
      assert.equal(this.leadership(step.of).yieldRequest?.reason, step.reason);
    },
    granted: async (step) => {
      const pending = this.pending.get(step.of ?? "");
      await this.until(step, () => pending?.settled === true);
      this.keep({ as: step.of ?? "" }, await pending?.result);
    },
    failed: async (step) => {
      const pending = this.pending.get(step.of ?? "");
      await this.until(step, () => pending?.settled === true);
      await assert.rejects(pending?.result ?? Promise.resolve(), (error) => {
        this.checkError(step, error);
        return true;
      });
    },
    "larger token": (step) => assert.ok(this.token(step, step.of) > this.token(step, step.than)),
    "same token": (step) => {
      const [one, other] = [this.claim(step.of).fencingToken, this.claim(step.than).fencingToken];
      assert.ok(one === other && one > 0n, `${one} and ${other}`);
    },
    claimed: async (step) => {
      const counts = await this.claim(step.of).check();
      const left = (Number(this.claim(step.of).until) - Date.now()) / 1000;
      assert.ok(counts > 0 && counts <= 58 && Math.abs(left - Number(step.for)) < 30, `${counts} and ${left}`);
    },
    holders: async (step) => {
      const { holders } = await this.client(step).getLock(step.lock ?? "");
      assert.deepEqual(
        holders.map(({ owner }) => owner),
        step.are,
      );
    },
    name: (step) => assert.equal(nameOf(step.of ?? ""), step.is),
    segment: (step) => assert.equal(segmentOf(step.of ?? ""), step.is),
    waiters: async (step) => {
      await this.until(step, async () => {
        const { waiters } = await this.client(step).getLock(step.lock ?? "");
        return waiters.length === Number(step.number);
      });
    },
    running: async (step) => this.until(step, () => this.jobOf(step).times === 1),
    stopped: async (step) => {
      await this.until(step, () => this.jobOf(step).why !== undefined);
      this.checkError(step, this.jobOf(step).why);
      await assert.rejects(this.jobOf(step).result, (error) => {
        this.checkError(step, error);
        return true;
      });
    },
    done: async (step) => {
      await this.until(step, () => this.jobOf(step).settled);
      await this.attempt(step, this.jobOf(step).result);
    },
    releasing: async (step) => {
      await this.until(step, () => {
        const { held } = this.jobOf(step);
        return held?.valid === false && held.error === undefined;
      });
    },
    leading: async (step) => this.until(step, () => this.jobOf(step).times === Number(step.times)),
    joined: async (step) => this.until(step, () => this.jobOf(step).times === Number(step.times)),
    leader: async (step) => this.until(step, () => this.watchOf(step).leader === step.is),
    members: async (step) => {
      await this.until(step, async () => {
        const { members } = await this.client(step).getGroup(step.group ?? "");
        return JSON.stringify([...members.keys()].sort()) === JSON.stringify(step.are);
      });
    },
    picked: async (step) => {
      await this.until(step, async () => {
        const view = await this.client(step).getGroup(step.group ?? "");
        return (pick(view, step.key ?? "")?.member ?? "") === step.is;
      });
    },
    state: async (step) => {
      await this.until(step, () => {
        const { state, stale } = this.watchOf(step);
        return !stale && JSON.stringify(sorted(state)) === JSON.stringify(sorted(step.is as Record<string, string>));
      });
    },
    stale: async (step) => this.until(step, () => this.watchOf(step).stale),
    fresh: async (step) => this.until(step, () => this.watchOf(step).state !== undefined && !this.watchOf(step).stale),
    ran: (step) => assert.equal(this.jobOf(step).times, Number(step.times)),
    attempt: (step) => assert.equal(this.made(step.of).number, Number(step.number)),
    tick: (step) => {
      const found = this.thing(step.of);
      assert.ok(found instanceof Tick);
      assert.equal(found.runId, step.run);
      assert.ok(Math.abs(Date.now() - found.at.getTime()) < 60_000);
    },
    history: async (step) => assert.deepEqual(await this.sidecar.schedules.history(step.schedule ?? ""), step.are),
    number: (step) => assert.equal(this.permit(step.of).number, Number(step.number)),
    "no number": (step) => assert.equal(this.permit(step.of).number, undefined),
    rests: async (step) => {
      const [rests, ...others] = (await this.client(step).getSemaphore(step.semaphore ?? "")).quarantines;
      assert.deepEqual([rests?.number, others], [Number(step.number), []]);
      const left = (Number(rests?.until) - Date.now()) / 1000;
      assert.ok(Math.abs(left - Number(step.for)) < 30, `${left} s`);
    },
    "works on": async (step) =>
      this.until(step, () => [...this.worksOn.values()].filter((of) => of === step.of).length === Number(step.number)),
    exited: async (step) => this.until(step, () => this.sidecar.hasExited()),
  };
}

function shown({ candidate, value }: Leader): string {
  return value === "" ? candidate : `${candidate} at ${value}`;
}

function sorted(state: Record<string, string> | undefined): [string, string][] | undefined {
  return state && Object.entries(state).sort();
}

function apply(watch: Watch, event: ConfigEvent): void {
  const state = event.kind === "state" ? new Map<string, string>() : new Map(Object.entries(watch.state ?? {}));
  for (const { entry, deleted } of event.changes) {
    state.delete(entry.key);
    if (!deleted) {
      state.set(entry.key, new TextDecoder().decode(entry.value));
    }
  }
  watch.state = Object.fromEntries(state);
  watch.stale = event.kind === "stale" || (watch.stale && event.kind === "changed");
}

void test("there are scenarios", () => {
  assert.ok(played.length >= 40);
});

for (const { name, leases, steps } of played) {
  void test(name, async () => {
    const sidecar = await Sidecar.start(`${leases ?? 4}s`);
    const stage = new Stage(sidecar);
    try {
      for (const step of steps) {
        await stage.play(step);
      }
    } finally {
      stage.close();
      await sidecar.end();
    }
  });
}
