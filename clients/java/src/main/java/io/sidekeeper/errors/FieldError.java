package io.sidekeeper.errors;

import java.io.Serializable;

/**
 * Which rule a field of the request breaks.
 *
 * @param field its name, as the API calls it
 * @param rule what it must be
 */
public record FieldError(String field, String rule) implements Serializable {}
