package io.sidekeeper.errors;

import java.io.Serializable;
import java.util.List;
import java.util.Map;

/**
 * What a status tells besides its code and reason.
 *
 * @param message for people
 * @param metadata more about the reason, by name
 * @param fields with INVALID_FIELD, which fields break a rule
 */
public record Told(String message, Map<String, String> metadata, List<FieldError> fields)
    implements Serializable {
  /**
   * Copies what it is given.
   *
   * @param message as described above
   * @param metadata as described above
   * @param fields as described above
   */
  public Told {
    metadata = Map.copyOf(metadata);
    fields = List.copyOf(fields);
  }

  /**
   * Has a message alone.
   *
   * @param message for people
   */
  public Told(String message) {
    this(message, Map.of(), List.of());
  }
}
