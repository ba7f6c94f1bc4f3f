package io.sidekeeper.errors;

import io.grpc.Status;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The class of each reason. */
final class Reasons {
  /** Makes an exception of one class. */
  interface Kind {
    SidekeeperException make(Status.Code code, Told told);
  }

  static final Map<String, Kind> KINDS =
      Map.ofEntries(
          Map.entry("LEASE_LOST", LeaseLostException::new),
          Map.entry("LEASE_CLOSED", LeaseClosedException::new),
          Map.entry("LOCK_BROKEN", LockBrokenException::new),
          Map.entry("LOCK_REVOKED", LockRevokedException::new),
          Map.entry("SIDECAR_STOPPING", SidecarStoppingException::new),
          Map.entry("ENSEMBLE_UNREACHABLE", EnsembleUnreachableException::new),
          Map.entry("OUTCOME_UNKNOWN", OutcomeUnknownException::new),
          Map.entry("ENSEMBLE_DENIED", EnsembleDeniedException::new),
          Map.entry("WAIT_TIMEOUT", WaitTimeoutException::new),
          Map.entry("LOCK_HELD", LockHeldException::new),
          Map.entry("LOCK_KIND_MISMATCH", LockKindMismatchException::new),
          Map.entry("ALREADY_CONTENDING", AlreadyContendingException::new),
          Map.entry("FENCING_TOKEN_MISMATCH", FencingTokenMismatchException::new),
          Map.entry("NAME_IS_DIRECTORY", NameIsDirectoryException::new),
          Map.entry("LEASE_NOT_FOUND", LeaseNotFoundException::new),
          Map.entry("HOLD_NOT_FOUND", HoldNotFoundException::new),
          Map.entry("OPERATOR_ONLY", OperatorOnlyException::new),
          Map.entry("INVALID_FIELD", InvalidFieldException::new),
          Map.entry("LEASE_LIMIT", LeaseLimitException::new),
          Map.entry("WAITER_LIMIT", WaiterLimitException::new),
          Map.entry("STREAM_LIMIT", StreamLimitException::new),
          Map.entry("CONNECTION_LIMIT", ConnectionLimitException::new),
          Map.entry("EPHEMERAL_BYTES_LIMIT", EphemeralBytesLimitException::new),
          Map.entry("SLOW_READER", SlowReaderException::new),
          Map.entry("INTERNAL", InternalException::new),
          Map.entry("SEQUENCE_NOT_FOUND", SequenceNotFoundException::new),
          Map.entry("SEQUENCE_EXISTS", SequenceExistsException::new),
          Map.entry("SEQUENCE_EXHAUSTED", SequenceExhaustedException::new),
          Map.entry("SEQUENCE_MALFORMED", SequenceMalformedException::new),
          Map.entry("MEMBER_EXISTS", MemberExistsException::new),
          Map.entry("MEMBER_REPLACED", MemberReplacedException::new),
          Map.entry("MEMBER_REMOVED", MemberRemovedException::new),
          Map.entry("MEMBER_NOT_FOUND", MemberNotFoundException::new),
          Map.entry("GROUP_NOT_FOUND", GroupNotFoundException::new),
          Map.entry("GROUP_NOT_EMPTY", GroupNotEmptyException::new),
          Map.entry("KEY_NOT_FOUND", KeyNotFoundException::new),
          Map.entry("PRECONDITION_FAILED", PreconditionFailedException::new),
          Map.entry("KEY_HAS_CHILDREN", KeyHasChildrenException::new),
          Map.entry("WATCH_LIMIT", WatchLimitException::new),
          Map.entry("MEMORY_LIMIT", MemoryLimitException::new),
          Map.entry("POLICY_DENIED", PolicyDeniedException::new),
          Map.entry("QUOTA_EXCEEDED", QuotaExceededException::new),
          Map.entry("DIRECTORY_TOO_LARGE", DirectoryTooLargeException::new));

  private Reasons() {}

  static SidekeeperException make(String reason, Status.Code code, Told told) {
    @Nullable Kind kind = KINDS.get(reason);
    return kind == null ? new SidekeeperException(code, reason, told) : kind.make(code, told);
  }
}
