package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The name is in use as a mutex and was asked for as a read/write lock, or the reverse. Comes with
 * {@code FAILED_PRECONDITION}.
 */
public final class LockKindMismatchException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public LockKindMismatchException(Status.Code code, Told told) {
    super(code, "LOCK_KIND_MISMATCH", told);
  }
}
