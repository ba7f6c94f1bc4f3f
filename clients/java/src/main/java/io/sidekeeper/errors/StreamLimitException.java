package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The caller's connection carries as many long-lived streams as it may carry. Comes with {@code
 * RESOURCE_EXHAUSTED}.
 */
public final class StreamLimitException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public StreamLimitException(Status.Code code, Told told) {
    super(code, "STREAM_LIMIT", told);
  }
}
