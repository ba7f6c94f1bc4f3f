package io.sidekeeper.errors;

import io.grpc.Status;

/** There is no such set of items, or it was removed. Comes with {@code NOT_FOUND}. */
public final class AssignmentNotFoundException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public AssignmentNotFoundException(Status.Code code, Told told) {
    super(code, "ASSIGNMENT_NOT_FOUND", told);
  }
}
