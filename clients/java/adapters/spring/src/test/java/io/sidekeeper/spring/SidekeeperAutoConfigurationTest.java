package io.sidekeeper.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.Client;
import io.sidekeeper.Contender;
import io.sidekeeper.LockOptions;
import io.sidekeeper.testing.Sidecar;
import io.sidekeeper.testing.SidecarExtension;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.integration.support.locks.DefaultLockRegistry;
import org.springframework.integration.support.locks.LockRegistry;

/** What an application finds in its context. */
@Timeout(300)
@ExtendWith(SidecarExtension.class)
class SidekeeperAutoConfigurationTest {
  private static ApplicationContextRunner application(Sidecar sidecar) {
    return new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(SidekeeperAutoConfiguration.class))
        .withPropertyValues("sidekeeper.address=" + sidecar.address());
  }

  private static Contender holder(Sidecar sidecar, String lock) throws InterruptedException {
    return sidecar.client().getLock(lock).holders().get(0);
  }

  @Test
  void theSpringIsTheOneThatIsToBeTried() {
    assertEquals(System.getProperty("spring-boot"), SpringBootVersion.getVersion());
    String integration = LockRegistry.class.getPackage().getImplementationVersion();
    assertEquals(System.getProperty("spring-integration"), integration);
  }

  @Test
  void theLocksAreHeldUntilTheApplicationEnds(Sidecar sidecar) throws Exception {
    application(sidecar)
        .run(
            context -> {
              context.getBean(LockRegistry.class).obtain("orders").lock();
              assertEquals("", holder(sidecar, "orders").owner());
            });
    sidecar
        .client()
        .acquire("orders", new LockOptions().waitTimeout(Duration.ofMinutes(1)))
        .close();
  }

  @Test
  void theHolderIsTheApplication(Sidecar sidecar) {
    application(sidecar)
        .withPropertyValues("spring.application.name=billing")
        .run(
            context -> {
              context.getBean(LockRegistry.class).obtain("orders").lock();
              assertEquals("billing", holder(sidecar, "orders").owner());
            });
  }

  @Test
  void theConfigurationSaysHowLocksAreCalledAndForWhomTheyAre(Sidecar sidecar) {
    application(sidecar)
        .withPropertyValues("spring.application.name=billing", "sidekeeper.owner=Ada")
        .withPropertyValues("sidekeeper.lock-prefix=billing/")
        .run(
            context -> {
              context.getBean(LockRegistry.class).obtain("orders").lock();
              assertEquals("Ada", holder(sidecar, "billing/orders").owner());
            });
  }

  @Test
  void anApplicationsOwnClientIsTheOneThatIsUsed(Sidecar sidecar) {
    try (Client own = new Client(sidecar.address())) {
      application(sidecar)
          .withPropertyValues("sidekeeper.address=unix:///nowhere")
          .withBean(Client.class, () -> own)
          .run(
              context -> {
                assertSame(own, context.getBean(Client.class));
                assertTrue(context.getBean(LockRegistry.class).obtain("orders").tryLock());
              });
    }
  }

  @Test
  void anApplicationsOwnRegistryIsTheOnlyOne(Sidecar sidecar) {
    LockRegistry own = new DefaultLockRegistry();
    application(sidecar)
        .withBean(LockRegistry.class, () -> own)
        .run(
            context -> {
              assertSame(own, context.getBean(LockRegistry.class));
              assertTrue(context.containsBean("sidekeeperClient"));
            });
  }

  @Test
  void withoutSpringIntegrationThereIsTheClient(Sidecar sidecar) {
    application(sidecar)
        .withClassLoader(new FilteredClassLoader("org.springframework.integration"))
        .run(
            context -> {
              context.getBean(Client.class).acquire("orders").release();
              assertFalse(context.containsBean("sidekeeperLockRegistry"));
            });
  }
}
