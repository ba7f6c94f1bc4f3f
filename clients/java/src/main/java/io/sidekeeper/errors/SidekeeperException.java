package io.sidekeeper.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A status that the sidecar, or gRPC on the way to it, ended a call with.
 *
 * <p>Its reason is a name of {@code sidekeeper.errors.v1.Reason} without its prefix, where all of
 * them are documented. Those that callers catch have a class of their own, such as {@link
 * LockHeldException}; tell the others apart by {@link #reason}. It is made from the domain and the
 * reason of the status, and never from its text.
 */
public class SidekeeperException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final Status.Code code;
  private final String reason;
  private final Told told;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param reason the name of the reason; empty if there is none
   * @param told what came with it
   */
  public SidekeeperException(Status.Code code, String reason, Told told) {
    super(told.message());
    this.code = code;
    this.reason = reason;
    this.told = told;
  }

  /**
   * Says what a status means.
   *
   * @param status of a call that failed
   * @param trailers that came with it, or null
   * @return an exception of the class of its reason, if that has one
   */
  public static SidekeeperException of(Status status, @Nullable Metadata trailers) {
    return Details.read(status, trailers);
  }

  /**
   * Stands for a reason that came without a status.
   *
   * @param reason a name of {@code sidekeeper.errors.v1.Reason} without its prefix
   * @param message for people
   * @return an exception of its class, if it has one, with the code ABORTED
   */
  public static SidekeeperException named(String reason, String message) {
    return Reasons.make(reason, Status.Code.ABORTED, new Told(message));
  }

  /**
   * Says how gRPC classes it.
   *
   * @return the code of the status
   */
  public final Status.Code code() {
    return code;
  }

  /**
   * Says why the call failed.
   *
   * @return the name of the reason; empty if there is none
   */
  public final String reason() {
    return reason;
  }

  /**
   * Tells more about the reason; which names there are is said by the API.
   *
   * @return texts by their names
   */
  public final Map<String, String> metadata() {
    return told.metadata();
  }

  /**
   * Tells with the reason INVALID_FIELD which fields break a rule.
   *
   * @return the fields in no certain order
   */
  public final List<FieldError> fields() {
    return told.fields();
  }

  final Told told() {
    return told;
  }

  /**
   * Makes the same once more, for another thread to throw: with its own stack, and this one as its
   * cause.
   *
   * @return an exception of the same class
   */
  public final SidekeeperException again() {
    SidekeeperException same = Reasons.make(reason, code, told);
    same.initCause(this);
    return same;
  }

  /**
   * Says whether the same call may well be answered in a moment, and nothing was done.
   *
   * @return true for the code UNAVAILABLE
   */
  public final boolean isTransient() {
    return code == Status.Code.UNAVAILABLE;
  }

  /** Says the class, the code, the reason if there is one, and the message. */
  @SuppressWarnings("OverrideThrowableToString") // getMessage is for people, without the reason
  @Override
  public final String toString() {
    String why = reason.isEmpty() ? "" : " (" + reason + ")";
    return getClass().getName() + ": " + code + why + ": " + getMessage();
  }
}
