package io.sidekeeper.errors;

/** What was the caller's is not any more, without the caller having given it up. */
public class LostException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final String what;
  private final SidekeeperException why;

  /**
   * Says that something was lost.
   *
   * @param what such as {@code lock orders}
   * @param why what ended it
   */
  public LostException(String what, SidekeeperException why) {
    super(what + " lost: " + why.getMessage(), why);
    this.what = what;
    this.why = why;
  }

  /**
   * Says what was lost.
   *
   * @return such as {@code lock orders}
   */
  public final String what() {
    return what;
  }

  /**
   * Says why it was lost.
   *
   * @return what ended it; with the reason LEASE_LOST if nothing is known but that it was not
   *     confirmed in time
   */
  public final SidekeeperException why() {
    return why;
  }

  /**
   * Makes the same once more, for another thread to throw with its own stack.
   *
   * @return an exception of the same class
   */
  public LostException again() {
    return new LostException(what, why);
  }
}
