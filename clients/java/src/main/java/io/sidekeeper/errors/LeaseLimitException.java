package io.sidekeeper.errors;

import io.grpc.Status;

/** The sidecar has as many leases as it may have. Comes with {@code RESOURCE_EXHAUSTED}. */
public final class LeaseLimitException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public LeaseLimitException(Status.Code code, Told told) {
    super(code, "LEASE_LIMIT", told);
  }
}
