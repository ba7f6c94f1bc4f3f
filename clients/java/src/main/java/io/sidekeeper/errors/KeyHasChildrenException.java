package io.sidekeeper.errors;

import io.grpc.Status;

/** Other keys lie below the key. Comes with {@code FAILED_PRECONDITION}. */
public final class KeyHasChildrenException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public KeyHasChildrenException(Status.Code code, Told told) {
    super(code, "KEY_HAS_CHILDREN", told);
  }
}
