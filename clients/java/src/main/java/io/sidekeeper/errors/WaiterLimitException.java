package io.sidekeeper.errors;

import io.grpc.Status;

/** The lock has as many waiters as it may have. Comes with {@code RESOURCE_EXHAUSTED}. */
public final class WaiterLimitException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public WaiterLimitException(Status.Code code, Told told) {
    super(code, "WAITER_LIMIT", told);
  }
}
