package io.sidekeeper;

/** How a lock is held. A name is used either with EXCLUSIVE or with READ and WRITE. */
public enum Mode {
  /** A mutex: one holder at a time. */
  EXCLUSIVE,
  /** Any number of readers at a time, while no writer holds. */
  READ,
  /** Alone, among readers and writers. */
  WRITE
}
