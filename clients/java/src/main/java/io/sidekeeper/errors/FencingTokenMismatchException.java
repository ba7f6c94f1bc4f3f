package io.sidekeeper.errors;

import io.grpc.Status;

/** Nobody holds the lock under the given fencing token. Comes with {@code FAILED_PRECONDITION}. */
public final class FencingTokenMismatchException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public FencingTokenMismatchException(Status.Code code, Told told) {
    super(code, "FENCING_TOKEN_MISMATCH", told);
  }
}
