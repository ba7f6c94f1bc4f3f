package io.sidekeeper.errors;

import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/**
 * The caller gave up what it held, and the sidecar has not confirmed that. The work under it has
 * ended: do not repeat it. The client makes this of whatever goes wrong while it gives up.
 */
public final class ReleaseUnconfirmedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  private final transient @Nullable Object result;

  /**
   * Makes one as the client does, for tests.
   *
   * @param code the gRPC code it comes with, which is ABORTED
   * @param told what comes with it
   */
  public ReleaseUnconfirmedException(Status.Code code, Told told) {
    this(code, told, null);
  }

  private ReleaseUnconfirmedException(Status.Code code, Told told, @Nullable Object result) {
    super(code, "RELEASE_UNCONFIRMED", told);
    this.result = result;
  }

  /**
   * Gives what the body has returned, if the client ran it, as withLock does.
   *
   * @return the result; null if the body has none
   */
  public @Nullable Object result() {
    return result;
  }

  /**
   * Makes the same with the result of a body, and this one as its cause.
   *
   * @param returned by the body
   * @return an exception of the same class
   */
  public ReleaseUnconfirmedException withResult(@Nullable Object returned) {
    var same = new ReleaseUnconfirmedException(code(), told(), returned);
    same.initCause(this);
    return same;
  }
}
