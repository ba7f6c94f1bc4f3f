package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The sidecar met something it has no name for; its log has the details. Comes with {@code
 * INTERNAL}.
 */
public final class InternalException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public InternalException(Status.Code code, Told told) {
    super(code, "INTERNAL", told);
  }
}
