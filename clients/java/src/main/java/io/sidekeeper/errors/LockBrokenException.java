package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * An operator ended exactly this hold, or somebody removed the caller's place from the queue by
 * hand. Comes with {@code ABORTED}.
 */
public final class LockBrokenException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public LockBrokenException(Status.Code code, Told told) {
    super(code, "LOCK_BROKEN", told);
  }
}
