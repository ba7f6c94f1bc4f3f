package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The clocks of sidecar and ensemble are too far apart, and nothing has begun. Comes with {@code
 * FAILED_PRECONDITION}.
 */
public final class ClocksDisagreeException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public ClocksDisagreeException(Status.Code code, Told told) {
    super(code, "CLOCKS_DISAGREE", told);
  }
}
