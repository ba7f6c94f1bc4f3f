/** What calls take and give. */

import { createHash } from "node:crypto";

import type { Duration } from "./gen/google/protobuf/duration.js";
import type { Entry as WireEntry } from "./gen/sidekeeper/config/v1/config.js";
import { Mode as WireMode, type Contender as WireContender, type RevocationRequested } from "./gen/sidekeeper/hold/v1/hold.js";
import type { View } from "./gen/sidekeeper/lock/v1/lock.js";
import { OnConflict as WireOnConflict, type View as WireGroup } from "./gen/sidekeeper/membership/v1/membership.js";

/** Where a client logs what it does in the background, such as `console` or the logger of most libraries. */
export interface Logger {
  /** A check of validity failed: what is not confirmed in time ends. Or what a body held was lost, and the body has failed. */
  debug(message: string, error: unknown): void;
  /** A callback has thrown. Or a body has failed, and what it held could not be given up, or its attempt not be recorded as failed. */
  error(message: string, error: unknown): void;
}

/** How a lock is held. A name is used either with `exclusive` or with `read` and `write`. */
export type Mode = "exclusive" | "read" | "write";

export const modes: Readonly<Record<Mode, WireMode>> = {
  exclusive: WireMode.EXCLUSIVE,
  read: WireMode.READ,
  write: WireMode.WRITE,
};

/**
 * What to do when a group has a member of the name already: fail, wait (for a program that was started again before its last lease has
 * expired), or end the member that is there.
 */
export type OnConflict = "reject" | "wait" | "replace";

export const conflicts: Readonly<Record<OnConflict, WireOnConflict>> = {
  reject: WireOnConflict.REJECT,
  wait: WireOnConflict.WAIT,
  replace: WireOnConflict.REPLACE,
};

/** More about a caller or a member, for people: at most 1 KiB in all. */
export type Labels = Readonly<Record<string, string>>;

/** What a claim says of itself, for people. */
export interface Reservation {
  readonly reason: string;
  /** By the clock of the sidecar that has granted or extended it; undefined while it waits. */
  readonly until: Date | undefined;
}

/** A holder or waiter of a lock. */
export interface Contender {
  readonly mode: Mode;
  /** Of its caller, as the sidecar that made it verified it; empty where callers are not told apart. */
  readonly identity: string;
  readonly owner: string;
  readonly metadata: Labels;
  readonly fencingToken: bigint;
  /** Seconds since it entered the queue, by the ensemble's clock. */
  readonly age: number;
  /** Whether it was made by another client of the ensemble, not by Sidekeeper. */
  readonly foreign: boolean;
  /** Of a claim, which has no process; undefined of others. */
  readonly claim: Reservation | undefined;
  /** Whether another caller has asked it to release the lock. */
  readonly revocationRequested: boolean;
}

/** The caller's place in the queue of a lock. */
export interface Queued {
  /** How many contenders are ahead, at least 1. */
  readonly position: number;
  readonly holders: readonly Contender[];
}

/** A request that the holder release the lock soon. */
export interface Revocation {
  readonly requestedBy: string;
  readonly reason: string;
  /** Seconds until the hold is ended by force; undefined if it is not ended. */
  readonly grace: number | undefined;
}

/** The holders and waiters of a lock, in the order of its queue. The first holder is the leader of an election. */
export interface LockView {
  readonly name: string;
  readonly holders: readonly Contender[];
  readonly waiters: readonly Contender[];
  /** How many more wait that are not shown, because there are too many for one message. */
  readonly waitersOmitted: number;
  /** From a watch: whether contact with the ensemble or the sidecar is lost, so that this may be out of date. */
  readonly stale: boolean;
}

/** All numbers from first to last, both included. */
export interface Numbers {
  readonly first: bigint;
  readonly last: bigint;
  /** The incarnation of the sequence, within which numbers are unique. */
  readonly incarnation: bigint;
}

/** How far one incarnation of a sequence has come. */
export interface SequenceState {
  /** The last number that was handed out or reserved. */
  readonly lastIssued: bigint;
  /** Differs if the sequence was deleted and created again. */
  readonly incarnation: bigint;
}

/** A member of a group. */
export interface GroupMember {
  readonly member: string;
  /** Distinguishes it from all members that have or had its name. */
  readonly incarnation: bigint;
  /** Of its caller, as the sidecar that made it verified it; empty where callers are not told apart. */
  readonly identity: string;
  readonly owner: string;
  readonly metadata: Labels;
  /** Seconds since it joined, by the ensemble's clock. */
  readonly age: number;
  /** Whether it was made by another client of the ensemble, not by Sidekeeper. */
  readonly foreign: boolean;
  /** With foreign: what the other client wrote, if it is UTF-8; otherwise empty. */
  readonly text: string;
}

/** The members of a group. */
export interface GroupView {
  readonly group: string;
  readonly members: ReadonlyMap<string, GroupMember>;
  /** From a watch: whether contact with the ensemble or the sidecar is lost, so that this may be out of date. */
  readonly stale: boolean;
}

/** A key of the configuration with its value. */
export interface Entry {
  readonly key: string;
  /** Empty in what put and commit return. */
  readonly value: Buffer;
  /** For preconditions. */
  readonly version: number;
  /** Of the last write of the key; larger than that of any earlier write of any key. */
  readonly revision: bigint;
  /** Of the write that created the key; differs if the key was deleted and created again. */
  readonly createdRevision: bigint;
}

/** The change of one key. */
export interface ConfigChange {
  /** With deleted, only its key is set. */
  readonly entry: Entry;
  readonly deleted: boolean;
  /** The key had other values in between, which were skipped. */
  readonly coalesced: boolean;
  /** The key was deleted and created again in between. */
  readonly recreated: boolean;
}

/**
 * One event of a watch of the configuration: `state` is the complete current state, so that everything reported before
 * is out of date, also after the sidecar was away; `changed`, something has changed; `stale`, the ensemble or the sidecar is out of
 * contact, so that what was reported may be out of date; `fresh`, contact is back, and what happened meanwhile has been reported.
 */
export interface ConfigEvent {
  readonly kind: "state" | "changed" | "stale" | "fresh";
  readonly changes: readonly ConfigChange[];
  /** With `stale`, for how many seconds the sidecar had not been heard when that was noticed; 0 if that is unknown. */
  readonly age: number;
}

/** A duration as a number of seconds. */
export function seconds(duration: Duration | undefined): number {
  return duration === undefined ? 0 : Number(duration.seconds) + duration.nanos / 1e9;
}

/** A number of seconds as a duration. */
export function duration(value: number | undefined): Duration | undefined {
  if (value === undefined) {
    return undefined;
  }
  const whole = Math.trunc(value);
  return { seconds: BigInt(whole), nanos: Math.round((value - whole) * 1e9) };
}

export function revocationFrom({ requestedBy, reason, grace }: RevocationRequested): Revocation {
  return { requestedBy, reason, grace: grace === undefined ? undefined : seconds(grace) };
}

export function contenderFrom(wire: WireContender): Contender {
  const mode = (Object.keys(modes) as Mode[]).find((name) => modes[name] === wire.mode);
  return {
    mode: mode ?? "exclusive",
    identity: wire.identity,
    owner: wire.owner,
    metadata: wire.metadata,
    fencingToken: wire.token,
    age: seconds(wire.age),
    foreign: wire.foreign,
    claim: wire.claim,
    revocationRequested: wire.revocationRequested,
  };
}

export function lockViewFrom(wire: View | undefined, stale = false): LockView {
  return {
    name: wire?.name ?? "",
    holders: (wire?.holders ?? []).map(contenderFrom),
    waiters: (wire?.waiters ?? []).map(contenderFrom),
    waitersOmitted: wire?.waitersOmitted ?? 0,
    stale,
  };
}

/**
 * The member that a key belongs to, by rendezvous hashing (Thaler and Ravishankar, 1998): everyone who sees the same members picks the same
 * one, in every language, and when a member comes or goes, only keys of its own change hands. It is the member for whom SHA-256 of its
 * name, a zero byte and the key is largest, read as a number; undefined if there is no member.
 */
export function pick(view: GroupView, key: string): GroupMember | undefined {
  const weighed = [...view.members.values()].map((member) => ({
    member,
    weight: createHash("sha256").update(`${member.member}\0${key}`).digest(),
  }));
  return weighed.sort((a, b) => Buffer.compare(b.weight, a.weight))[0]?.member;
}

export function groupViewFrom(wire: WireGroup | undefined, stale: boolean): GroupView {
  const members = (wire?.members ?? []).map((m): [string, GroupMember] => [
    m.member,
    {
      member: m.member,
      incarnation: m.incarnation,
      identity: m.identity,
      owner: m.owner,
      metadata: m.metadata,
      age: seconds(m.age),
      foreign: m.foreign,
      text: m.text,
    },
  ]);
  return { group: wire?.group ?? "", members: new Map(members), stale };
}

export function entryFrom(wire: WireEntry | undefined): Entry {
  return {
    key: wire?.key ?? "",
    value: wire?.content?.$case === "value" ? wire.content.value : Buffer.alloc(0),
    version: wire?.version ?? 0,
    revision: wire?.revision ?? 0n,
    createdRevision: wire?.createdRevision ?? 0n,
  };
}
