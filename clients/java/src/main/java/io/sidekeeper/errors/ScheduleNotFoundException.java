package io.sidekeeper.errors;

import io.grpc.Status;

/** There is no such schedule, or it was deleted. Comes with {@code NOT_FOUND}. */
public final class ScheduleNotFoundException extends SidekeeperException {
  private static final long serialVersionUID = 1;

  /**
   * Makes one as the sidecar does, for tests.
   *
   * @param code the gRPC code it came with
   * @param told what came with it
   */
  public ScheduleNotFoundException(Status.Code code, Told told) {
    super(code, "SCHEDULE_NOT_FOUND", told);
  }
}
