package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * What is stored under the name is not a number of 8 bytes. Comes with {@code FAILED_PRECONDITION}.
 */
public final class SequenceMalformedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public SequenceMalformedException(Status.Code code, Told told) {
    super(code, "SEQUENCE_MALFORMED", told);
  }
}
