package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * This lease already waits for or holds this name; it would wait for itself. Comes with {@code
 * FAILED_PRECONDITION}.
 */
public final class AlreadyContendingException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public AlreadyContendingException(Status.Code code, Told told) {
    super(code, "ALREADY_CONTENDING", told);
  }
}
