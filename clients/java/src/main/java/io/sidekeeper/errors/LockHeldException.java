package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * Wait_timeout was zero, and another caller holds the lock or the delay of an earlier hold is kept.
 * Comes with {@code FAILED_PRECONDITION}.
 */
public final class LockHeldException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public LockHeldException(Status.Code code, Told told) {
    super(code, "LOCK_HELD", told);
  }
}
