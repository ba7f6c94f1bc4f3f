/** Scheduled jobs of ShedLock under the locks of a sidecar. */
@NullMarked
package io.sidekeeper.shedlock;

import org.jspecify.annotations.NullMarked;
