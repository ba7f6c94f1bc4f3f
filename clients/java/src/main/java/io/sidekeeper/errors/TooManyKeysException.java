package io.sidekeeper.errors;

import io.grpc.Status;

/** The name has as many records as it may have. Comes with {@code RESOURCE_EXHAUSTED}. */
public final class TooManyKeysException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public TooManyKeysException(Status.Code code, Told told) {
    super(code, "TOO_MANY_KEYS", told);
  }
}
