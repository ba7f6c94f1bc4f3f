package io.sidekeeper.errors;

import io.grpc.Status;

/** The lock was not granted within wait_timeout. Comes with {@code DEADLINE_EXCEEDED}. */
public final class WaitTimeoutException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public WaitTimeoutException(Status.Code code, Told told) {
    super(code, "WAIT_TIMEOUT", told);
  }
}
