package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The sidecar is going down. Comes with {@code ABORTED} after a grant and with {@code UNAVAILABLE}
 * before one.
 */
public final class SidecarStoppingException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public SidecarStoppingException(Status.Code code, Told told) {
    super(code, "SIDECAR_STOPPING", told);
  }
}
