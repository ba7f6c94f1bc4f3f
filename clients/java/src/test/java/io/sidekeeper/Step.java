package io.sidekeeper;

import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Assertions;

/** One step of a scenario. */
record Step(Map<String, Object> fields) {
  private static final double WITHIN = 10;

  boolean has(String field) {
    return fields.containsKey(field);
  }

  Object get(String field) {
    Object value = fields.get(field);
    Assertions.assertNotNull(value, () -> this + " has no " + field);
    return value;
  }

  String text(String field) {
    return (String) get(field);
  }

  String text(String field, String otherwise) {
    return (String) fields.getOrDefault(field, otherwise);
  }

  int whole(String field) {
    return ((Number) get(field)).intValue();
  }

  long number(String field) {
    return ((Number) get(field)).longValue();
  }

  double seconds(String field, double otherwise) {
    return ((Number) fields.getOrDefault(field, otherwise)).doubleValue();
  }

  /** A time, or null if the step has none. */
  Duration time(String field) {
    return has(field) ? Duration.ofNanos((long) (seconds(field, 0) * 1e9)) : null;
  }

  double within() {
    return seconds("within", WITHIN);
  }

  boolean is(String field) {
    return Boolean.TRUE.equals(fields.get(field));
  }
}
