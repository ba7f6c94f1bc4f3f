package io.sidekeeper.fence;

import io.grpc.Status;

/** Why a call does not pass a gate. */
public enum Reason {
  /** The header breaks its grammar: INVALID_ARGUMENT, 400. */
  MALFORMED(Status.INVALID_ARGUMENT, 400),
  /** There is no ticket, or none of a lock that is wanted: FAILED_PRECONDITION, 428. */
  MISSING(Status.FAILED_PRECONDITION, 428),
  /** A larger token of the lock has been seen: FAILED_PRECONDITION, 412. */
  STALE(Status.FAILED_PRECONDITION, 412),
  /** The sidecar says that the hold does not last: FAILED_PRECONDITION, 412. */
  NOT_HELD(Status.FAILED_PRECONDITION, 412),
  /** The marks cannot be read or written, or the sidecar not be asked: UNAVAILABLE, 503. */
  UNDECIDED(Status.UNAVAILABLE, 503);

  @SuppressWarnings("ImmutableEnumChecker") // a status is immutable
  private final Status status;

  private final int httpStatus;

  Reason(Status status, int httpStatus) {
    this.status = status;
    this.httpStatus = httpStatus;
  }

  /**
   * Says what a caller in gRPC gets.
   *
   * @return the status, without a description
   */
  public Status status() {
    return status;
  }

  /**
   * Says what a caller in HTTP gets.
   *
   * @return the status
   */
  public int httpStatus() {
    return httpStatus;
  }
}
