/** The client of a sidecar in applications of Spring Boot. */
@NullMarked
package io.sidekeeper.spring;

import org.jspecify.annotations.NullMarked;
