package io.sidekeeper.errors;

import io.grpc.Status;

/** No such key. Comes with {@code NOT_FOUND}. */
public final class KeyNotFoundException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public KeyNotFoundException(Status.Code code, Told told) {
    super(code, "KEY_NOT_FOUND", told);
  }
}
