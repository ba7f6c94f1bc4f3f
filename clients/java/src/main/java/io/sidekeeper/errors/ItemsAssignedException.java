package io.sidekeeper.errors;

import io.grpc.Status;

/** A member has an item that would leave the set. Comes with {@code FAILED_PRECONDITION}. */
public final class ItemsAssignedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public ItemsAssignedException(Status.Code code, Told told) {
    super(code, "ITEMS_ASSIGNED", told);
  }
}
