package io.sidekeeper.errors;

import io.grpc.Status;

/** No lease with this id, or it is not the caller's. Comes with {@code NOT_FOUND}. */
public final class LeaseNotFoundException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public LeaseNotFoundException(Status.Code code, Told told) {
    super(code, "LEASE_NOT_FOUND", told);
  }
}
