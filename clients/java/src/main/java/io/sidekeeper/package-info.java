/**
 * The Java client of a Sidekeeper sidecar: distributed locks that end in time, leader election,
 * sequences, membership and configuration.
 *
 * <p>Begin with {@link io.sidekeeper.Client}.
 *
 * <p>Wrong parameters and options are refused before anything is sent: null, unless it has a
 * meaning, with NullPointerException, and other values with IllegalArgumentException. The text
 * names the parameter, the value and the rule.
 */
@NullMarked
package io.sidekeeper;

import org.jspecify.annotations.NullMarked;
