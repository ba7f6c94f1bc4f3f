package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The lock of the attempt was lost, and another attempt has begun since, or the record was
 * forgotten. The outcome is not recorded. Comes with {@code FAILED_PRECONDITION}.
 */
public final class SupersededException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public SupersededException(Status.Code code, Told told) {
    super(code, "SUPERSEDED", told);
  }
}
