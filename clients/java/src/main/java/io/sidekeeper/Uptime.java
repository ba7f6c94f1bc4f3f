package io.sidekeeper;

import java.io.IOException;

/**
 * Linux's CLOCK_BOOTTIME, as {@code /proc/uptime} tells it: in hundredths of a second. What stands
 * in for that file in some containers tells whole seconds, with zeros behind the dot. So it is
 * taken to be as coarse as the finest that it has told.
 */
final class Uptime implements Clock.Reading {
  /** Reads the file. */
  interface Lines {
    String read() throws IOException;
  }

  private static final long HUNDREDTH = 10_000_000;

  private final Lines lines;
  private volatile long finest = 100 * HUNDREDTH;

  Uptime(Lines lines) {
    this.lines = lines;
  }

  @Override
  public Clock.Instant read() throws IOException {
    long shown = hundredths(lines.read());
    long told = shown % 100 == 0 ? 100 : shown % 10 == 0 ? 10 : 1;
    if (told * HUNDREDTH < finest) {
      finest = told * HUNDREDTH;
    }
    return new Clock.Instant(shown * HUNDREDTH, finest);
  }

  /** Takes digits behind the dot that are not there for zeros. */
  private static long hundredths(String line) {
    int end = line.indexOf(' ');
    int dot = line.indexOf('.');
    if (dot < 1 || end < dot + 2) {
      throw new NumberFormatException(line);
    }
    String fraction = (line.substring(dot + 1, end) + "0").substring(0, 2);
    return Long.parseLong(line, 0, dot, 10) * 100 + Long.parseLong(fraction);
  }
}
