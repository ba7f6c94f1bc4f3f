package io.sidekeeper.errors;

import io.grpc.Status;

/** No such group. Comes with {@code NOT_FOUND}. */
public final class GroupNotFoundException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public GroupNotFoundException(Status.Code code, Told told) {
    super(code, "GROUP_NOT_FOUND", told);
  }
}
