package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * An earlier attempt at the work was lost or has failed, and the options allow no other. Comes with
 * {@code FAILED_PRECONDITION}.
 */
public final class NotRepeatedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public NotRepeatedException(Status.Code code, Told told) {
    super(code, "NOT_REPEATED", told);
  }
}
