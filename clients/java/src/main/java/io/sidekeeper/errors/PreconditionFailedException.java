package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The key does not meet the precondition; nothing was written. Comes with {@code
 * FAILED_PRECONDITION}.
 */
public final class PreconditionFailedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public PreconditionFailedException(Status.Code code, Told told) {
    super(code, "PRECONDITION_FAILED", told);
  }
}
