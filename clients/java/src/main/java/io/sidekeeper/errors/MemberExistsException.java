package io.sidekeeper.errors;

import io.grpc.Status;

/** The group has a member of this name already. Comes with {@code ALREADY_EXISTS}. */
public final class MemberExistsException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public MemberExistsException(Status.Code code, Told told) {
    super(code, "MEMBER_EXISTS", told);
  }
}
