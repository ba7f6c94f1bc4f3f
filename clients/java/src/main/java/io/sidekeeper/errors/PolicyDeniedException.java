package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * No rule of the sidecar's policy allows this caller this call, about this name. Nothing was done,
 * and nothing is told about the name. Comes with {@code PERMISSION_DENIED}.
 */
public final class PolicyDeniedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public PolicyDeniedException(Status.Code code, Told told) {
    super(code, "POLICY_DENIED", told);
  }
}
