package io.sidekeeper;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The clock on which validity is counted, in nanoseconds since some fixed instant.
 *
 * <p>Java has no clock that goes on while the machine is suspended: {@link System#nanoTime} is
 * CLOCK_MONOTONIC on Linux, which stands still. Linux tells its CLOCK_BOOTTIME in {@code
 * /proc/uptime}, with two digits. Elsewhere, and where that file is not to be read when the first
 * client is made, it is the faster of nanoTime and the time of day.
 */
final class Clock {
  /**
   * By how much a deadline may be noticed late after the machine was suspended: timers stand still
   * meanwhile. A caller that looks at the validity itself is not late.
   */
  static final Duration LONGEST_NAP = Duration.ofMillis(250);

  /** Reads a clock that goes on while the machine is suspended. */
  interface Reading {
    Instant read() throws IOException;
  }

  /** What a clock shows, and by how much that may be behind. */
  record Instant(long shown, long behind) {}

  private static final long NEVER = Long.MAX_VALUE / 4;
  private static final Reading SYSTEM = system();

  /** The system's clock, but in tests. */
  private static volatile Reading reading = SYSTEM;

  private Clock() {}

  /** Tells a moment that has passed certainly. */
  static long before() {
    try {
      return reading.read().shown();
    } catch (IOException | NumberFormatException unreadable) {
      return -NEVER; // what is counted from then on is not valid
    }
  }

  /** Tells a moment that is not over yet. */
  static long now() {
    try {
      Instant instant = reading.read();
      return instant.shown() + instant.behind();
    } catch (IOException | NumberFormatException unreadable) {
      return NEVER; // nothing is valid then
    }
  }

  /** Has tests count on another clock; null for the system's. */
  static void count(@Nullable Reading other) {
    reading = other == null ? SYSTEM : other;
  }

  /** Is the system's clock, whatever others count on. */
  static Reading ofSystem() {
    return SYSTEM;
  }

  private static Reading system() {
    try {
      Uptime uptime = new Uptime(file());
      uptime.read();
      return uptime;
    } catch (IOException | NumberFormatException unreadable) {
      return new Faster(System::nanoTime, Clock::timeOfDay);
    }
  }

  private static long timeOfDay() {
    java.time.Instant now = java.time.Instant.now();
    return now.getEpochSecond() * 1_000_000_000 + now.getNano();
  }

  /**
   * Opens the file for good: unlike a channel, it is not closed when a thread is interrupted that
   * reads it.
   */
  private static Uptime.Lines file() throws IOException {
    RandomAccessFile file = new RandomAccessFile("/proc/uptime", "r");
    return () -> {
      byte[] line = new byte[64];
      int length;
      synchronized (file) {
        file.seek(0);
        length = file.read(line);
      }
      return new String(line, 0, Math.max(length, 0), StandardCharsets.US_ASCII);
    };
  }
}
