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
 * client is made, it is {@link System#nanoTime}.
 */
final class Clock {
  /**
   * By how much a deadline may be noticed late after the machine was suspended: timers stand still
   * meanwhile. Whoever looks at the validity himself is not late.
   */
  static final Duration LONGEST_NAP = Duration.ofMillis(250);

  /** By how much the uptime, which has two digits, may be behind. */
  private static final long COARSE = 10_000_000;

  private static final long NEVER = Long.MAX_VALUE / 4;
  private static final @Nullable RandomAccessFile UPTIME = open();

  private Clock() {}

  /** Tells a moment that has passed certainly. */
  static long before() {
    if (UPTIME == null) {
      return System.nanoTime();
    }
    try {
      return read(UPTIME);
    } catch (IOException | NumberFormatException unreadable) {
      return -NEVER; // what is counted from then on is not valid
    }
  }

  /** Tells a moment that is not over yet. */
  static long now() {
    if (UPTIME == null) {
      return System.nanoTime();
    }
    try {
      return read(UPTIME) + COARSE;
    } catch (IOException | NumberFormatException unreadable) {
      return NEVER; // nothing is valid then
    }
  }

  /**
   * Opens the file for good: unlike a channel, it is not closed when a thread is interrupted that
   * reads it.
   */
  private static @Nullable RandomAccessFile open() {
    try {
      RandomAccessFile file = new RandomAccessFile("/proc/uptime", "r");
      read(file);
      return file;
    } catch (IOException | NumberFormatException unreadable) {
      return null;
    }
  }

  private static long read(RandomAccessFile file) throws IOException {
    byte[] line = new byte[64];
    int length;
    synchronized (file) {
      file.seek(0);
      length = file.read(line);
    }
    String text = new String(line, 0, Math.max(length, 0), StandardCharsets.US_ASCII);
    int dot = text.indexOf('.');
    if (dot < 1 || text.length() < dot + 3) {
      throw new NumberFormatException(text);
    }
    long hundredths =
        Long.parseLong(text, 0, dot, 10) * 100 + Long.parseLong(text, dot + 1, dot + 3, 10);
    return hundredths * 10_000_000;
  }
}
