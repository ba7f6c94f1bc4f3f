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
      Map.ofEntries(
          entry("LOCK_HELD", LockHeldException::new),
          entry("WAIT_TIMEOUT", WaitTimeoutException::new),
          entry("RELEASE_UNCONFIRMED", ReleaseUnconfirmedException::new),
          entry("ENSEMBLE_UNREACHABLE", EnsembleUnreachableException::new),
          entry("OUTCOME_UNKNOWN", OutcomeUnknownException::new),
          entry("MEMBER_EXISTS", MemberExistsException::new),
          entry("SEQUENCE_NOT_FOUND", SequenceNotFoundException::new),
          entry("SEQUENCE_EXISTS", SequenceExistsException::new),
          entry("KEY_NOT_FOUND", KeyNotFoundException::new),
          entry("PRECONDITION_FAILED", PreconditionFailedException::new),
          entry("GUARD_LOST", GuardLostException::new),
          entry("ALREADY_DONE", AlreadyDoneException::new),
          entry("NOT_REPEATED", NotRepeatedException::new),
          entry("SUPERSEDED", SupersededException::new),
          entry("TOO_MANY_KEYS", TooManyKeysException::new),
          entry("SCHEDULE_NOT_FOUND", ScheduleNotFoundException::new),
          entry("CLOCKS_DISAGREE", ClocksDisagreeException::new),
          entry("ASSIGNMENT_NOT_FOUND", AssignmentNotFoundException::new),
          entry("ITEMS_ASSIGNED", ItemsAssignedException::new),
          entry("ASSIGNMENT_IN_USE", AssignmentInUseException::new));

  private Reasons() {}

  private static Map.Entry<String, Kind> entry(String reason, Kind kind) {
    return Map.entry(reason, kind);
  }

  static boolean isKnown(String reason) {
    return Reason.getDescriptor().findValueByName("REASON_" + reason) != null;
  }

  static SidekeeperException make(String reason, Status.Code code, Told told) {
    @Nullable Kind kind = KINDS.get(reason);
    return kind == null ? new SidekeeperException(code, reason, told) : kind.make(code, told);
  }
}
