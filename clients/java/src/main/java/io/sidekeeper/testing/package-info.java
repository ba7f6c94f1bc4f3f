/**
 * Sidecars for tests of applications that use Sidekeeper: {@link io.sidekeeper.testing.Sidecar} is
 * one for any framework, {@link io.sidekeeper.testing.SidecarExtension} hands one to each test of
 * JUnit Jupiter, on which nothing else here depends.
 */
@NullMarked
package io.sidekeeper.testing;

import org.jspecify.annotations.NullMarked;
