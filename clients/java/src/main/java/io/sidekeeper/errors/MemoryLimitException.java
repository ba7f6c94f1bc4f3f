package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The answer is large, and the sidecar has no memory to spare for it: others are not being read.
 * The call has done what it does. Comes with {@code RESOURCE_EXHAUSTED}.
 */
public final class MemoryLimitException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public MemoryLimitException(Status.Code code, Told told) {
    super(code, "MEMORY_LIMIT", told);
  }
}
