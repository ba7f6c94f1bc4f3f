package io.sidekeeper.errors;

/** The lock has been suspended for longer than the caller allows. Nothing was lost by that. */
public final class SuspendedException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /**
   * Says which lock.
   *
   * @param message for people
   */
  public SuspendedException(String message) {
    super(message);
  }
}
