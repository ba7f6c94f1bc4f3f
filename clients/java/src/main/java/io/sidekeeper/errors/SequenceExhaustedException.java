package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The sequence has come to the end of 64-bit numbers, or would; nothing was handed out. Comes with
 * {@code OUT_OF_RANGE}.
 */
public final class SequenceExhaustedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public SequenceExhaustedException(Status.Code code, Told told) {
    super(code, "SEQUENCE_EXHAUSTED", told);
  }
}
