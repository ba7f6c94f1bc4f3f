package io.sidekeeper;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * What to let pass before something is tried again: at random, and twice as long each time, up to
 * two seconds.
 */
final class Pause {
  private static final long FIRST = 50;
  private static final long LONGEST = 2_000;

  private long longest = FIRST;

  synchronized Duration next() {
    longest = Math.min(2 * longest, LONGEST);
    return Duration.ofMillis(ThreadLocalRandom.current().nextLong(longest / 2, longest));
  }

  /** Is for what has succeeded. */
  synchronized void reset() {
    longest = FIRST;
  }
}
