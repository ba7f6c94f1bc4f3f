package io.sidekeeper.errors;

import io.grpc.Status;

/** The caller has no such member in the group. Comes with {@code NOT_FOUND}. */
public final class MemberNotFoundException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public MemberNotFoundException(Status.Code code, Told told) {
    super(code, "MEMBER_NOT_FOUND", told);
  }
}
