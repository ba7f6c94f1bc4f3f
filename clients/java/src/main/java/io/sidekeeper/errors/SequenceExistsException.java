package io.sidekeeper.errors;

import io.grpc.Status;

/** There is such a sequence already. Comes with {@code ALREADY_EXISTS}. */
public final class SequenceExistsException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public SequenceExistsException(Status.Code code, Told told) {
    super(code, "SEQUENCE_EXISTS", told);
  }
}
