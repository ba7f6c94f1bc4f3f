package io.sidekeeper.errors;

import io.grpc.Status;

/** The method is offered on the operators' listener only. Comes with {@code PERMISSION_DENIED}. */
public final class OperatorOnlyException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public OperatorOnlyException(Status.Code code, Told told) {
    super(code, "OPERATOR_ONLY", told);
  }
}
