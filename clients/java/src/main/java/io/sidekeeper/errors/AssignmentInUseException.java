package io.sidekeeper.errors;

import io.grpc.Status;

/** The set has members. Comes with {@code FAILED_PRECONDITION}. */
public final class AssignmentInUseException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public AssignmentInUseException(Status.Code code, Told told) {
    super(code, "ASSIGNMENT_IN_USE", told);
  }
}
