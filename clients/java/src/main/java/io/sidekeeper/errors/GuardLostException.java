package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * A hold that guards the write has ended; nothing was written. The metadata tell its {@code
 * fencing_token}. Comes with {@code FAILED_PRECONDITION}.
 */
public final class GuardLostException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public GuardLostException(Status.Code code, Told told) {
    super(code, "GUARD_LOST", told);
  }
}
