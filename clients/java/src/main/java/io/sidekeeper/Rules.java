package io.sidekeeper;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What calls may be given. What is wrong is refused before anything is sent, with the parameter,
 * the value and the rule; what only the sidecar knows, it refuses in the same words.
 */
final class Rules {
  /** The longest time that a sidecar waits. */
  private static final Duration LONGEST = Duration.ofDays(3650);

  private Rules() {}

  /** Returns what is given. Throws NullPointerException for null. */
  static <T> T given(String parameter, @Nullable T value) {
    if (value == null) {
      throw new NullPointerException(parameter + " is null: a value is required");
    }
    return value;
  }

  /** Returns a copy. Throws NullPointerException for null, also as one of them. */
  static <T> List<T> all(String parameter, @Nullable Collection<? extends @Nullable T> values) {
    List<T> all = new ArrayList<>();
    for (T value : given(parameter, values)) {
      all.add(given(parameter + "[" + all.size() + "]", value));
    }
    return List.copyOf(all);
  }

  /** Throws IllegalArgumentException for a time that no sidecar waits. */
  static void time(String parameter, @Nullable Duration value) {
    if (value != null && (value.isNegative() || value.compareTo(LONGEST) > 0)) {
      throw new IllegalArgumentException(
          parameter + " is " + value + ": a duration from PT0S to " + LONGEST);
    }
  }

  /** Returns a copy. Throws NullPointerException for null, also as a value. */
  static Map<String, String> labels(@Nullable Map<String, String> metadata) {
    given("metadata", metadata)
        .forEach(
            (key, value) -> {
              given("a key of metadata", key);
              given("metadata \"" + key + "\"", value);
            });
    return Map.copyOf(given("metadata", metadata));
  }
}
