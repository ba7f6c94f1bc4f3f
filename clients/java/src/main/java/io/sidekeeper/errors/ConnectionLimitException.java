package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The ensemble refuses further connections from this address (its maxClientCnxns). Comes with
 * {@code RESOURCE_EXHAUSTED}.
 */
public final class ConnectionLimitException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public ConnectionLimitException(Status.Code code, Told told) {
    super(code, "CONNECTION_LIMIT", told);
  }
}
