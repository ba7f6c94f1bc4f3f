package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * A reply of the ensemble was lost and what became of the request cannot be found out. Comes with
 * {@code ABORTED}.
 */
public final class OutcomeUnknownException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public OutcomeUnknownException(Status.Code code, Told told) {
    super(code, "OUTCOME_UNKNOWN", told);
  }
}
