package io.sidekeeper.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Machines whose clocks differ name a tick alike. */
class TicksTest {
  @ParameterizedTest
  @CsvSource({
    "PT1H,  2026-11-29T03:00:00Z,     20261129T030000Z",
    "PT1H,  2026-11-29T03:59:58.9Z,   20261129T030000Z",
    "PT1H,  2026-11-29T02:59:59.001Z, 20261129T030000Z",
    "PT5M,  2026-11-29T03:09:00Z,     20261129T030500Z",
    "PT1S,  2026-11-29T03:00:00.899Z, 20261129T030000Z",
    "PT1S,  2026-11-29T03:00:00.900Z, 20261129T030001Z",
    "P1D,   1969-12-31T12:00:00Z,     19691231T000000Z",
  })
  void ofAPeriod(Duration period, Instant at, String key) {
    assertEquals(key, Ticks.every(period).keyOf(at));
  }

  @ParameterizedTest
  @CsvSource({
    "Europe/Berlin, 2026-03-28T23:30:00Z, 2026-03-29",
    "Europe/Berlin, 2026-03-29T22:30:00Z, 2026-03-30",
    "UTC,           2026-11-28T23:59:59.001Z, 2026-11-29",
    "UTC,           2026-11-28T23:59:58Z, 2026-11-28",
  })
  void ofADay(ZoneId zone, Instant at, String key) {
    assertEquals(key, Ticks.daily(zone).keyOf(at));
  }

  @Test
  void aPeriodIsANumberOfSeconds() {
    for (Duration wrong : new Duration[] {Duration.ZERO, Duration.ofMillis(1500)}) {
      assertThrows(IllegalArgumentException.class, () -> Ticks.every(wrong));
    }
  }
}
