/** Errors, made from the domain and the reason of a status and never from its text. */

import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { type ServiceError, status } from "@grpc/grpc-js";

import type { Ended } from "./gen/sidekeeper/lease/v1/lease.js";

/** A field of the request and the rule that it breaks. */
export interface FieldError {
  readonly field: string;
  readonly rule: string;
}

/** What a status carries besides its code. */
export interface Told {
  readonly message: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly fields?: readonly FieldError[];
}

/**
 * A status that the sidecar, or gRPC on the way to it, ended a call with.
 *
 * One class stands for each reason, a name of `sidekeeper.errors.v1.Reason` without its prefix; each is documented there. A status
 * without a reason is a SidekeeperError itself.
 */
export class SidekeeperError extends Error {
  /** The name of the reason; empty if there is none. */
  readonly reason: string = "";
  /** More about the reason. */
  readonly metadata: Readonly<Record<string, string>>;
  /** With InvalidFieldError: which fields, and why. */
  readonly fields: readonly FieldError[];

  constructor(
    readonly code: status,
    told: Told,
  ) {
    super(told.message);
    this.name = new.target.name;
    this.metadata = told.metadata ?? {};
    this.fields = told.fields ?? [];
  }
}

export class LeaseLostError extends SidekeeperError {
  override readonly reason = "LEASE_LOST";
}

export class LeaseClosedError extends SidekeeperError {
  override readonly reason = "LEASE_CLOSED";
}

export class LockBrokenError extends SidekeeperError {
  override readonly reason = "LOCK_BROKEN";
}

export class LockRevokedError extends SidekeeperError {
  override readonly reason = "LOCK_REVOKED";
}

export class SidecarStoppingError extends SidekeeperError {
  override readonly reason = "SIDECAR_STOPPING";
}

export class EnsembleUnreachableError extends SidekeeperError {
  override readonly reason = "ENSEMBLE_UNREACHABLE";
}

export class NotRecordedError extends SidekeeperError {
  override readonly reason = "NOT_RECORDED";
}

export class OutcomeUnknownError extends SidekeeperError {
  override readonly reason = "OUTCOME_UNKNOWN";
}

export class EnsembleDeniedError extends SidekeeperError {
  override readonly reason = "ENSEMBLE_DENIED";
}

export class EnsembleDemandsAuthError extends SidekeeperError {
  override readonly reason = "ENSEMBLE_DEMANDS_AUTH";
}

export class WaitTimeoutError extends SidekeeperError {
  override readonly reason = "WAIT_TIMEOUT";
}

export class LockHeldError extends SidekeeperError {
  override readonly reason = "LOCK_HELD";
}

export class DeadlockError extends SidekeeperError {
  override readonly reason = "DEADLOCK";
}

export class LockKindMismatchError extends SidekeeperError {
  override readonly reason = "LOCK_KIND_MISMATCH";
}

export class AlreadyContendingError extends SidekeeperError {
  override readonly reason = "ALREADY_CONTENDING";
}

export class FencingTokenMismatchError extends SidekeeperError {
  override readonly reason = "FENCING_TOKEN_MISMATCH";
}

export class NameIsDirectoryError extends SidekeeperError {
  override readonly reason = "NAME_IS_DIRECTORY";
}

export class LeaseNotFoundError extends SidekeeperError {
  override readonly reason = "LEASE_NOT_FOUND";
}

export class HoldNotFoundError extends SidekeeperError {
  override readonly reason = "HOLD_NOT_FOUND";
}

export class OperatorOnlyError extends SidekeeperError {
  override readonly reason = "OPERATOR_ONLY";
}

export class InvalidFieldError extends SidekeeperError {
  override readonly reason = "INVALID_FIELD";
}

export class LeaseLimitError extends SidekeeperError {
  override readonly reason = "LEASE_LIMIT";
}

export class WaiterLimitError extends SidekeeperError {
  override readonly reason = "WAITER_LIMIT";
}

export class StreamLimitError extends SidekeeperError {
  override readonly reason = "STREAM_LIMIT";
}

export class ConnectionLimitError extends SidekeeperError {
  override readonly reason = "CONNECTION_LIMIT";
}

export class EphemeralBytesLimitError extends SidekeeperError {
  override readonly reason = "EPHEMERAL_BYTES_LIMIT";
}

export class SlowReaderError extends SidekeeperError {
  override readonly reason = "SLOW_READER";
}

export class InternalError extends SidekeeperError {
  override readonly reason = "INTERNAL";
}

export class SequenceNotFoundError extends SidekeeperError {
  override readonly reason = "SEQUENCE_NOT_FOUND";
}

export class SequenceExistsError extends SidekeeperError {
  override readonly reason = "SEQUENCE_EXISTS";
}

export class SequenceExhaustedError extends SidekeeperError {
  override readonly reason = "SEQUENCE_EXHAUSTED";
}

export class SequenceMalformedError extends SidekeeperError {
  override readonly reason = "SEQUENCE_MALFORMED";
}

export class MemberExistsError extends SidekeeperError {
  override readonly reason = "MEMBER_EXISTS";
}

export class MemberReplacedError extends SidekeeperError {
  override readonly reason = "MEMBER_REPLACED";
}

export class MemberRemovedError extends SidekeeperError {
  override readonly reason = "MEMBER_REMOVED";
}

export class MemberNotFoundError extends SidekeeperError {
  override readonly reason = "MEMBER_NOT_FOUND";
}

export class GroupNotFoundError extends SidekeeperError {
  override readonly reason = "GROUP_NOT_FOUND";
}

export class GroupNotEmptyError extends SidekeeperError {
  override readonly reason = "GROUP_NOT_EMPTY";
}

export class KeyNotFoundError extends SidekeeperError {
  override readonly reason = "KEY_NOT_FOUND";
}

export class PreconditionFailedError extends SidekeeperError {
  override readonly reason = "PRECONDITION_FAILED";
}

export class KeyHasChildrenError extends SidekeeperError {
  override readonly reason = "KEY_HAS_CHILDREN";
}

export class WatchLimitError extends SidekeeperError {
  override readonly reason = "WATCH_LIMIT";
}

export class MemoryLimitError extends SidekeeperError {
  override readonly reason = "MEMORY_LIMIT";
}

export class PolicyDeniedError extends SidekeeperError {
  override readonly reason = "POLICY_DENIED";
}

export class QuotaExceededError extends SidekeeperError {
  override readonly reason = "QUOTA_EXCEEDED";
}

export class DirectoryTooLargeError extends SidekeeperError {
  override readonly reason = "DIRECTORY_TOO_LARGE";
}

export class GuardLostError extends SidekeeperError {
  override readonly reason = "GUARD_LOST";
}

export class SemaphoreExistsError extends SidekeeperError {
  override readonly reason = "SEMAPHORE_EXISTS";
}

export class SemaphoreNotFoundError extends SidekeeperError {
  override readonly reason = "SEMAPHORE_NOT_FOUND";
}

export class SemaphoreMalformedError extends SidekeeperError {
  override readonly reason = "SEMAPHORE_MALFORMED";
}

export class SemaphoreFullError extends SidekeeperError {
  override readonly reason = "SEMAPHORE_FULL";
}

export class QueueFullError extends SidekeeperError {
  override readonly reason = "QUEUE_FULL";
}

export class QueueEmptyError extends SidekeeperError {
  override readonly reason = "QUEUE_EMPTY";
}

export class DeliveryReturnedError extends SidekeeperError {
  override readonly reason = "DELIVERY_RETURNED";
}

export class AgreementNotFoundError extends SidekeeperError {
  override readonly reason = "AGREEMENT_NOT_FOUND";
}

export class AlreadyDoneError extends SidekeeperError {
  override readonly reason = "ALREADY_DONE";
}

export class NotRepeatedError extends SidekeeperError {
  override readonly reason = "NOT_REPEATED";
}

export class SupersededError extends SidekeeperError {
  override readonly reason = "SUPERSEDED";
}

export class TooManyKeysError extends SidekeeperError {
  override readonly reason = "TOO_MANY_KEYS";
}

export class KeyRunningError extends SidekeeperError {
  override readonly reason = "KEY_RUNNING";
}

export class RecordNotFoundError extends SidekeeperError {
  override readonly reason = "RECORD_NOT_FOUND";
}

export class RecordMalformedError extends SidekeeperError {
  override readonly reason = "RECORD_MALFORMED";
}

export class ScheduleNotFoundError extends SidekeeperError {
  override readonly reason = "SCHEDULE_NOT_FOUND";
}

export class ClocksDisagreeError extends SidekeeperError {
  override readonly reason = "CLOCKS_DISAGREE";
}

export class AssignmentNotFoundError extends SidekeeperError {
  override readonly reason = "ASSIGNMENT_NOT_FOUND";
}

export class ItemsAssignedError extends SidekeeperError {
  override readonly reason = "ITEMS_ASSIGNED";
}

export class AssignmentInUseError extends SidekeeperError {
  override readonly reason = "ASSIGNMENT_IN_USE";
}

export class ClaimNotFoundError extends SidekeeperError {
  override readonly reason = "CLAIM_NOT_FOUND";
}

export class ClaimEndedError extends SidekeeperError {
  override readonly reason = "CLAIM_ENDED";
}

export class ClaimLimitError extends SidekeeperError {
  override readonly reason = "CLAIM_LIMIT";
}

export class NoProcessError extends SidekeeperError {
  override readonly reason = "NO_PROCESS";
}

export class TooManyPermitsError extends SidekeeperError {
  override readonly reason = "TOO_MANY_PERMITS";
}

export class CandidateNotFoundError extends SidekeeperError {
  override readonly reason = "CANDIDATE_NOT_FOUND";
}

export class ForeignCandidateError extends SidekeeperError {
  override readonly reason = "FOREIGN_CANDIDATE";
}

/**
 * The caller gave up what it held, and the sidecar has not confirmed that. The work under it has ended: do not repeat it. The client makes this
 * error of whatever goes wrong while it gives up.
 */
export class ReleaseUnconfirmedError extends SidekeeperError {
  override readonly reason = "RELEASE_UNCONFIRMED";
  /** What the body has returned, if the client ran it, as withLock does. */
  result?: unknown;
}

type Kind = new (code: status, told: Told) => SidekeeperError;

/** The class of each reason. */
export const byReason: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ["LEASE_LOST", LeaseLostError],
  ["LEASE_CLOSED", LeaseClosedError],
  ["LOCK_BROKEN", LockBrokenError],
  ["LOCK_REVOKED", LockRevokedError],
  ["SIDECAR_STOPPING", SidecarStoppingError],
  ["ENSEMBLE_UNREACHABLE", EnsembleUnreachableError],
  ["NOT_RECORDED", NotRecordedError],
  ["OUTCOME_UNKNOWN", OutcomeUnknownError],
  ["ENSEMBLE_DENIED", EnsembleDeniedError],
  ["ENSEMBLE_DEMANDS_AUTH", EnsembleDemandsAuthError],
  ["WAIT_TIMEOUT", WaitTimeoutError],
  ["LOCK_HELD", LockHeldError],
  ["DEADLOCK", DeadlockError],
  ["LOCK_KIND_MISMATCH", LockKindMismatchError],
  ["ALREADY_CONTENDING", AlreadyContendingError],
  ["FENCING_TOKEN_MISMATCH", FencingTokenMismatchError],
  ["NAME_IS_DIRECTORY", NameIsDirectoryError],
  ["LEASE_NOT_FOUND", LeaseNotFoundError],
  ["HOLD_NOT_FOUND", HoldNotFoundError],
  ["OPERATOR_ONLY", OperatorOnlyError],
  ["INVALID_FIELD", InvalidFieldError],
  ["LEASE_LIMIT", LeaseLimitError],
  ["WAITER_LIMIT", WaiterLimitError],
  ["STREAM_LIMIT", StreamLimitError],
  ["CONNECTION_LIMIT", ConnectionLimitError],
  ["EPHEMERAL_BYTES_LIMIT", EphemeralBytesLimitError],
  ["SLOW_READER", SlowReaderError],
  ["INTERNAL", InternalError],
  ["SEQUENCE_NOT_FOUND", SequenceNotFoundError],
  ["SEQUENCE_EXISTS", SequenceExistsError],
  ["SEQUENCE_EXHAUSTED", SequenceExhaustedError],
  ["SEQUENCE_MALFORMED", SequenceMalformedError],
  ["MEMBER_EXISTS", MemberExistsError],
  ["MEMBER_REPLACED", MemberReplacedError],
  ["MEMBER_REMOVED", MemberRemovedError],
  ["MEMBER_NOT_FOUND", MemberNotFoundError],
  ["GROUP_NOT_FOUND", GroupNotFoundError],
  ["GROUP_NOT_EMPTY", GroupNotEmptyError],
  ["KEY_NOT_FOUND", KeyNotFoundError],
  ["PRECONDITION_FAILED", PreconditionFailedError],
  ["KEY_HAS_CHILDREN", KeyHasChildrenError],
  ["WATCH_LIMIT", WatchLimitError],
  ["MEMORY_LIMIT", MemoryLimitError],
  ["POLICY_DENIED", PolicyDeniedError],
  ["QUOTA_EXCEEDED", QuotaExceededError],
  ["DIRECTORY_TOO_LARGE", DirectoryTooLargeError],
  ["GUARD_LOST", GuardLostError],
  ["SEMAPHORE_EXISTS", SemaphoreExistsError],
  ["SEMAPHORE_NOT_FOUND", SemaphoreNotFoundError],
  ["SEMAPHORE_MALFORMED", SemaphoreMalformedError],
  ["SEMAPHORE_FULL", SemaphoreFullError],
  ["QUEUE_FULL", QueueFullError],
  ["QUEUE_EMPTY", QueueEmptyError],
  ["DELIVERY_RETURNED", DeliveryReturnedError],
  ["AGREEMENT_NOT_FOUND", AgreementNotFoundError],
  ["ALREADY_DONE", AlreadyDoneError],
  ["NOT_REPEATED", NotRepeatedError],
  ["SUPERSEDED", SupersededError],
  ["TOO_MANY_KEYS", TooManyKeysError],
  ["KEY_RUNNING", KeyRunningError],
  ["RECORD_NOT_FOUND", RecordNotFoundError],
  ["RECORD_MALFORMED", RecordMalformedError],
  ["SCHEDULE_NOT_FOUND", ScheduleNotFoundError],
  ["CLOCKS_DISAGREE", ClocksDisagreeError],
  ["ASSIGNMENT_NOT_FOUND", AssignmentNotFoundError],
  ["ITEMS_ASSIGNED", ItemsAssignedError],
  ["ASSIGNMENT_IN_USE", AssignmentInUseError],
  ["CLAIM_NOT_FOUND", ClaimNotFoundError],
  ["CLAIM_ENDED", ClaimEndedError],
  ["CLAIM_LIMIT", ClaimLimitError],
  ["NO_PROCESS", NoProcessError],
  ["TOO_MANY_PERMITS", TooManyPermitsError],
  ["CANDIDATE_NOT_FOUND", CandidateNotFoundError],
  ["FOREIGN_CANDIDATE", ForeignCandidateError],
  ["RELEASE_UNCONFIRMED", ReleaseUnconfirmedError],
]);

/** Something that the caller held has ended without the caller giving it up; `cause` is the reason. */
export class LostError extends Error {
  override readonly name = "LostError";

  constructor(
    /** Such as `lock orders`. */
    readonly what: string,
    override readonly cause: SidekeeperError,
  ) {
    super(`${what} lost: ${cause.message}`);
  }
}

/** The lock has been suspended for longer than the caller's suspension grace. It is not lost. */
export class SuspendedError extends Error {
  override readonly name = "SuspendedError";
}

/** The error of a reason that came without a status. */
export function named(reason: string, message: string, code: status = status.ABORTED): SidekeeperError {
  return new (byReason.get(reason) ?? SidekeeperError)(code, { message });
}

/** The error of whatever a client is asked for, or has, that is closed. */
export function closed(): SidekeeperError {
  return new SidekeeperError(status.CANCELLED, { message: "the client is closed" });
}

const LOOK =
  "see that it runs, that SIDEKEEPER_ADDRESS is its address, " +
  "and that both use TLS, with trusted certificates that have not expired, or neither does";

/** The error that gRPC's stands for. */
export function fromStatus(error: ServiceError): SidekeeperError {
  const details = error.metadata.get("grpc-status-details-bin")[0];
  const { reason: prefix, message } = split(error.details);
  const found = details instanceof Buffer ? readDetails(details) : {};
  const reason = found.reason ?? prefix;
  const told = message.replace(/\. Resolution note: $/, ""); // which gRPC begins and does not end
  const away = error.code === status.UNAVAILABLE && reason === "";
  return new (byReason.get(reason) ?? SidekeeperError)(error.code, {
    ...found,
    message: away ? `the sidecar is not reachable (${told}): ${LOOK}` : told,
  });
}

/** The error that a request on a lease's stream has ended with; undefined if it was given up. */
export function fromEnded({ code, reason, message, metadata }: Ended): SidekeeperError | undefined {
  const known = status[(status[code] ?? "UNKNOWN") as keyof typeof status];
  if (known === status.OK) {
    return undefined;
  }
  const { field, rule = "" } = metadata;
  return new (byReason.get(reason) ?? SidekeeperError)(known, {
    message: split(message).message,
    metadata,
    fields: field === undefined ? [] : [{ field, rule }],
  });
}

/** Takes the reason off a message that begins with one: what a proxy that drops details leaves. */
function split(details: string): { reason: string; message: string } {
  const at = details.indexOf(": ");
  const reason = details.slice(0, Math.max(at, 0));
  return byReason.has(reason) ? { reason, message: details.slice(at + 2) } : { reason: "", message: details };
}

interface Details {
  reason?: string;
  metadata?: Record<string, string>;
  fields?: FieldError[];
}

/** Reads google.rpc.Status with the details that a sidecar gives: ErrorInfo and BadRequest. What cannot be read is left out. */
function readDetails(bytes: Uint8Array): Details {
  const found: Details = {};
  try {
    for (const detail of messages(bytes).get(3) ?? []) {
      const any = messages(detail);
      const value = messages(any.get(2)?.[0] ?? new Uint8Array());
      const type = text(any.get(1)?.[0]);
      if (type.endsWith("/google.rpc.ErrorInfo") && text(value.get(2)?.[0]) === "sidekeeper") {
        found.reason = text(value.get(1)?.[0]);
        found.metadata = Object.fromEntries((value.get(3) ?? []).map(pair));
      } else if (type.endsWith("/google.rpc.BadRequest")) {
        found.fields = (value.get(1) ?? []).map(pair).map(([field, rule]) => ({ field, rule }));
      }
    }
  } catch {
    return {};
  }
  return found;
}

/** The fields of a message that have a length, by their numbers. */
function messages(bytes: Uint8Array): Map<number, Uint8Array[]> {
  const fields = new Map<number, Uint8Array[]>();
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (type === WireType.LengthDelimited) {
      fields.set(number, [...(fields.get(number) ?? []), reader.bytes()]);
    } else {
      reader.skip(type);
    }
  }
  return fields;
}

/** A message whose fields 1 and 2 are texts. */
function pair(bytes: Uint8Array): [string, string] {
  const fields = messages(bytes);
  return [text(fields.get(1)?.[0]), text(fields.get(2)?.[0])];
}

function text(bytes: Uint8Array | undefined): string {
  return new TextDecoder().decode(bytes);
}
