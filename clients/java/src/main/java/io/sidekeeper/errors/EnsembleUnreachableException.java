package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The ensemble does not answer. Nothing was sent or nothing is held: a retry is safe. Comes with
 * {@code UNAVAILABLE}.
 */
public final class EnsembleUnreachableException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public EnsembleUnreachableException(Status.Code code, Told told) {
    super(code, "ENSEMBLE_UNREACHABLE", told);
  }
}
