/**
 * The Java client of a Sidekeeper sidecar: distributed locks that end in time, leader election,
 * sequences, membership and configuration.
 *
 * <p>Begin with {@link io.sidekeeper.Client}.
 */
@NullMarked
package io.sidekeeper;

import org.jspecify.annotations.NullMarked;
