package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * Somebody else joined under the member's name and asked for its place. Comes with {@code ABORTED}.
 */
public final class MemberReplacedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public MemberReplacedException(Status.Code code, Told told) {
    super(code, "MEMBER_REPLACED", told);
  }
}
