package io.sidekeeper.errors;

import io.grpc.Status;
import io.sidekeeper.errors.v1.Reason;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The reasons that have a class of their own. */
final class Reasons {
  /** Makes an exception of one class. */
  interface Kind {
    SidekeeperException make(Status.Code code, Told told);
  }

  static final Map<String, Kind> KINDS =
      Map.of(
          "LOCK_HELD", LockHeldException::new,
          "WAIT_TIMEOUT", WaitTimeoutException::new,
          "ENSEMBLE_UNREACHABLE", EnsembleUnreachableException::new,
          "OUTCOME_UNKNOWN", OutcomeUnknownException::new,
          "MEMBER_EXISTS", MemberExistsException::new,
          "SEQUENCE_NOT_FOUND", SequenceNotFoundException::new,
          "SEQUENCE_EXISTS", SequenceExistsException::new,
          "KEY_NOT_FOUND", KeyNotFoundException::new,
          "PRECONDITION_FAILED", PreconditionFailedException::new,
          "GUARD_LOST", GuardLostException::new);

  private Reasons() {}

  static boolean isKnown(String reason) {
    return Reason.getDescriptor().findValueByName("REASON_" + reason) != null;
  }

  static SidekeeperException make(String reason, Status.Code code, Told told) {
    @Nullable Kind kind = KINDS.get(reason);
    return kind == null ? new SidekeeperException(code, reason, told) : kind.make(code, told);
  }
}
