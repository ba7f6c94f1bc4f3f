package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The lease owns as many bytes of ephemeral paths as one session may own. Comes with {@code
 * RESOURCE_EXHAUSTED}.
 */
public final class EphemeralBytesLimitException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public EphemeralBytesLimitException(Status.Code code, Told told) {
    super(code, "EPHEMERAL_BYTES_LIMIT", told);
  }
}
