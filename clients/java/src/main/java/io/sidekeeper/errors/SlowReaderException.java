package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The caller did not read its stream, so the stream was ended. Comes with {@code
 * RESOURCE_EXHAUSTED}.
 */
public final class SlowReaderException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public SlowReaderException(Status.Code code, Told told) {
    super(code, "SLOW_READER", told);
  }
}
