package io.sidekeeper.errors;

import io.grpc.Status;

/** The ensemble's access control refused the sidecar. Comes with {@code PERMISSION_DENIED}. */
public final class EnsembleDeniedException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public EnsembleDeniedException(Status.Code code, Told told) {
    super(code, "ENSEMBLE_DENIED", told);
  }
}
