package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The ensemble ended the lease's session, or the session can no longer be proved alive. Nothing
 * that the lease owned is the caller's any more. Comes with {@code ABORTED}.
 */
public final class LeaseLostException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public LeaseLostException(Status.Code code, Told told) {
    super(code, "LEASE_LOST", told);
  }
}
