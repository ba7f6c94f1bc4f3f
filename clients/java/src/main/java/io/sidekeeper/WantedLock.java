package io.sidekeeper;

/**
 * One of several locks that are acquired at once.
 *
 * @param name of the lock
 * @param mode how to hold it
 */
public record WantedLock(String name, Mode mode) {
  /**
   * Says which lock, and how to hold it.
   *
   * @param name as described above
   * @param mode as described above
   */
  public WantedLock {
    Rules.given("name", name);
    Rules.given("mode", mode);
  }

  /**
   * Wants it as a mutex.
   *
   * @param name of the lock
   */
  public WantedLock(String name) {
    this(name, Mode.EXCLUSIVE);
  }
}
