package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * An operator deleted the group, or somebody removed the member by hand. Comes with {@code
 * ABORTED}.
 */
public final class MemberRemovedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public MemberRemovedException(Status.Code code, Told told) {
    super(code, "MEMBER_REMOVED", told);
  }
}
