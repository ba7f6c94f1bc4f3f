package io.sidekeeper.errors;

/** A lock that was held was lost. */
public final class LockLostException extends LostException {
  private static final long serialVersionUID = 1;

  /**
   * Says that a lock was lost.
   *
   * @param what such as {@code lock orders}
   * @param why what ended it
   */
  public LockLostException(String what, SidekeeperException why) {
    super(what, why);
  }

  @Override
  public LostException again() {
    return new LockLostException(what(), why());
  }
}
