package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * This caller has, or asks for, as much as one caller may. Comes with {@code RESOURCE_EXHAUSTED}.
 */
public final class QuotaExceededException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public QuotaExceededException(Status.Code code, Told told) {
    super(code, "QUOTA_EXCEEDED", told);
  }
}
