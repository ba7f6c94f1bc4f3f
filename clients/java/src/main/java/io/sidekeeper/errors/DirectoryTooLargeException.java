package io.sidekeeper.errors;

import io.grpc.Status;

/**
 * There are too many names side by side for their list to be read. Comes with {@code RESOURCE_EXHAUSTED}.
 */
public final class DirectoryTooLargeException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public DirectoryTooLargeException(Status.Code code, Told told) {
    super(code, "DIRECTORY_TOO_LARGE", told);
  }
}
