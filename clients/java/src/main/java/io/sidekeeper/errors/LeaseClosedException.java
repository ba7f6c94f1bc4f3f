package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The caller closed the lease through LeaseService.Close while this stream still used it. Comes
 * with {@code ABORTED}.
 */
public final class LeaseClosedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public LeaseClosedException(Status.Code code, Told told) {
    super(code, "LEASE_CLOSED", told);
  }
}
