package io.sidekeeper.errors;

import io.grpc.Status;

/** The hold was asked for by Revoke and its grace is over. Comes with {@code ABORTED}. */
public final class LockRevokedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public LockRevokedException(Status.Code code, Told told) {
    super(code, "LOCK_REVOKED", told);
  }
}
