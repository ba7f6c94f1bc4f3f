package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * More is watched, or would be, than the sidecar may watch. Comes with {@code RESOURCE_EXHAUSTED}.
 */
public final class WatchLimitException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public WatchLimitException(Status.Code code, Told told) {
    super(code, "WATCH_LIMIT", told);
  }
}
