package io.sidekeeper;

/** What follows an attempt that did not succeed. */
public enum Policy {
  /** The next caller begins another attempt. */
  RETRY,
  /** No other attempt begins. */
  SKIP
}
