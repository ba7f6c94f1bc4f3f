package io.sidekeeper.errors;

import io.grpc.Status;

/** No such sequence. Comes with {@code NOT_FOUND}. */
public final class SequenceNotFoundException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public SequenceNotFoundException(Status.Code code, Told told) {
    super(code, "SEQUENCE_NOT_FOUND", told);
  }
}
