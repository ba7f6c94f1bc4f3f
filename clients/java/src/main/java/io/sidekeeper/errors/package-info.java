/**
 * Why calls fail: one class for each reason of the API, and what it means that something was lost.
 */
@NullMarked
package io.sidekeeper.errors;

import org.jspecify.annotations.NullMarked;
