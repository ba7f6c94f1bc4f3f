package io.sidekeeper;

/** An item of a set that its handler works on, while the item's lock is held. */
public final class Item {
  private final String set;
  private final String name;
  private final Lock lock;
  private final Thread thread;
  private boolean over;
  private volatile boolean told;

  Item(String set, String name, Lock lock, Thread thread) {
    this.set = set;
    this.name = name;
    this.lock = lock;
    this.thread = thread;
  }

  /** Tells the handler to stop, unless it has ended. */
  synchronized void stop() {
    told = true;
    if (!over) {
      thread.interrupt();
    }
  }

  /** Ends the danger of an interrupt. */
  synchronized void end() {
    over = true;
  }

  boolean isTold() {
    return told;
  }

  /**
   * Says which set it is of.
   *
   * @return the set's name
   */
  public String set() {
    return set;
  }

  /**
   * Says which item it is.
   *
   * @return the item's name
   */
  public String name() {
    return name;
  }

  /**
   * Gives the hold of the item's lock. It is released when the handler has ended.
   *
   * @return the lock, with its fencing token, ticket and validity
   */
  public Lock lock() {
    return lock;
  }

  /**
   * Says whether the handler must end: the item moves to another member, its lock is lost, or its
   * release is asked for, or the share ends. Until the lock is lost, the handler may finish what it
   * does.
   *
   * @return true from then on
   */
  public boolean shouldStop() {
    return told || !lock.isValid();
  }
}
