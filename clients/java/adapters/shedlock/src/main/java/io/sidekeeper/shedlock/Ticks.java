package io.sidekeeper.shedlock;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;

/**
 * Names the tick of its schedule that a job runs for. All machines need the same ticks.
 *
 * <p>With a schedule by the time of day, such as cron, a machine whose clock is late names a tick
 * as the others do: its scheduler goes by the same clock. That does not hold for {@code fixedRate}
 * and {@code fixedDelay}, which count from the start of their process. With these, a late machine
 * may name an earlier tick, and two runs of a machine may fall into one tick, of which only the
 * first is done.
 */
@FunctionalInterface
public interface Ticks {
  /**
   * Names a tick.
   *
   * @param at when the job began, by the clock of its machine
   * @return 1 to 64 letters, digits and {@code . _ -}, the same for all jobs of one tick
   */
  String keyOf(Instant at);

  /**
   * Names ticks of a period, counted from 1970 in UTC, such as each hour or each five minutes. For
   * a time of day, see {@link #daily}. The timer of a cron may be early by a tenth of the period,
   * or by a second if that is less.
   *
   * @param period the time between two ticks, in whole seconds
   * @return ticks that are named like {@code 20261129T030000Z}
   */
  static Ticks every(Duration period) {
    if (period.toSeconds() < 1 || period.toNanosPart() != 0) {
      throw new IllegalArgumentException(
          "period is " + period + ": a number of whole seconds, at least one");
    }
    long early = Math.min(period.toMillis() / 10, 1000); // a scheduler's timer is not exact
    DateTimeFormatter name =
        DateTimeFormatter.ofPattern("uuuuMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);
    return at -> {
      long seconds = at.plusMillis(early).getEpochSecond();
      return name.format(
          Instant.ofEpochSecond(seconds - Math.floorMod(seconds, period.toSeconds())));
    };
  }

  /**
   * Names the days of a zone, for what runs once a day. The timer of a cron may be early by a
   * second.
   *
   * @param zone whose midnight begins a day
   * @return ticks that are named like {@code 2026-11-29}
   */
  static Ticks daily(ZoneId zone) {
    return at -> LocalDate.ofInstant(at.plusMillis(1000), zone).toString();
  }
}
