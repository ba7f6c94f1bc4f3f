package io.sidekeeper;

import java.util.function.LongSupplier;

/**
 * A clock that is never slower than either of two. One stands still while the machine is suspended;
 * the other, the time of day, goes on and may be set: what it is set forward by passes here, too,
 * and what it is set back by does not matter.
 */
final class Faster implements Clock.Reading {
  private final LongSupplier steady;
  private final LongSupplier settable;
  private long steadyBefore;
  private long settableBefore;
  private long passed;

  Faster(LongSupplier steady, LongSupplier settable) {
    this.steady = steady;
    this.settable = settable;
    steadyBefore = steady.getAsLong();
    settableBefore = settable.getAsLong();
  }

  @Override
  public synchronized Clock.Instant read() {
    long steadyNow = steady.getAsLong();
    long settableNow = settable.getAsLong();
    passed += Math.max(steadyNow - steadyBefore, settableNow - settableBefore);
    steadyBefore = steadyNow;
    settableBefore = settableNow;
    return new Clock.Instant(passed, 0);
  }
}
