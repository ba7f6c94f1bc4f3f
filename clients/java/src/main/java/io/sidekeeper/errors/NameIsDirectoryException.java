package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * The name is a directory of other things than contenders. Comes with {@code FAILED_PRECONDITION}.
 */
public final class NameIsDirectoryException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public NameIsDirectoryException(Status.Code code, Told told) {
    super(code, "NAME_IS_DIRECTORY", told);
  }
}
