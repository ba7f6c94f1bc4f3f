package io.sidekeeper;

/** How an attempt at work that is done once has ended. */
public enum Outcome {
  /** The work is done. */
  SUCCEEDED,
  /** The work is not done, and its caller knows that. */
  FAILED
}
