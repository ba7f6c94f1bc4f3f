package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The work of the key has succeeded, or the attempt was finished with another outcome. The metadata
 * tell its {@code state}, {@code at}, {@code owner} and {@code note}. Comes with {@code
 * FAILED_PRECONDITION}.
 */
public final class AlreadyDoneException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public AlreadyDoneException(Status.Code code, Told told) {
    super(code, "ALREADY_DONE", told);
  }
}
