/**
 * Why calls fail: one exception with a reason, classes for what callers catch, and what it means
 * that something was lost.
 */
@NullMarked
package io.sidekeeper.errors;

import org.jspecify.annotations.NullMarked;
