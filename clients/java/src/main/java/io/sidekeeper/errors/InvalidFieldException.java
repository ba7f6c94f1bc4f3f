package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * A field breaks a rule; {@code google.rpc.BadRequest} names the field and the rule. Comes with
 * {@code INVALID_ARGUMENT}.
 */
public final class InvalidFieldException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public InvalidFieldException(Status.Code code, Told told) {
    super(code, "INVALID_FIELD", told);
  }
}
