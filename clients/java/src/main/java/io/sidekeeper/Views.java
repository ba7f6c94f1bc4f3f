package io.sidekeeper;

import java.time.Duration;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Shows the views of one watch, and the last one again as stale when the sidecar is away. */
final class Views<R, V> implements Watch.Tell<R, V> {
  private final BiFunction<R, Boolean, V> view;
  private final Predicate<R> marked;
  private @Nullable R last;
  private boolean stale;

  /** Makes a view of a message and whether it is stale, which the sidecar may have marked. */
  Views(BiFunction<R, Boolean, V> view, Predicate<R> marked) {
    this.view = view;
    this.marked = marked;
  }

  @Override
  public @Nullable V of(@Nullable R message, Duration silent) {
    if (message == null && stale) {
      return null;
    }
    last = message == null ? last : message;
    stale = message == null || marked.test(message);
    return last == null ? null : view.apply(last, stale);
  }
}
