package io.sidekeeper.testing;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Hands a {@link Sidecar} to methods of JUnit Jupiter that have a parameter for one.
 *
 * <pre>{@code
 * @ExtendWith(SidecarExtension.class)
 * class WorkerTest {
 *   @Test
 *   void aWorkerStopsWhenItsLockIsLost(Sidecar sidecar) { … }
 * }
 * }</pre>
 *
 * <p>Each test has a sidecar of its own, with nothing in it, which its methods for before and after
 * each test have, too, and which is closed when they have ended. A sidecar that a method for before
 * all tests, or the constructor, has asked for is that of all tests of the class.
 *
 * <p>It takes junit-jupiter-api, which this package does not bring along.
 */
public final class SidecarExtension
    implements ParameterResolver, AfterEachCallback, AfterAllCallback {
  private static final Namespace NAMESPACE = Namespace.create(SidecarExtension.class);

  /** Makes one, as JUnit does for {@code @ExtendWith}. */
  public SidecarExtension() {}

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == Sidecar.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    Store store = context.getStore(NAMESPACE);
    return store.getOrComputeIfAbsent(Sidecar.class, none -> new Sidecar(), Sidecar.class);
  }

  @Override
  public void afterEach(ExtensionContext context) {
    close(context);
  }

  @Override
  public void afterAll(ExtensionContext context) {
    close(context);
  }

  /** Closes what was started for this context, and not for one around it. */
  private static void close(ExtensionContext context) {
    Sidecar started = context.getStore(NAMESPACE).remove(Sidecar.class, Sidecar.class);
    if (started != null) {
      started.close();
    }
  }
}
