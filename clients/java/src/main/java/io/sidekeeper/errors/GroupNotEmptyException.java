package io.sidekeeper.errors;

import io.grpc.Status;

/** The group has members. Comes with {@code FAILED_PRECONDITION}. */
public final class GroupNotEmptyException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public GroupNotEmptyException(Status.Code code, Told told) {
    super(code, "GROUP_NOT_EMPTY", told);
  }
}
