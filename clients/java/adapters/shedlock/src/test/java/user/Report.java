package user;

import io.sidekeeper.Client;
import io.sidekeeper.shedlock.SidekeeperLockProvider;
import java.time.Duration;
import java.time.Instant;
import net.javacrumbs.shedlock.core.DefaultLockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockingTaskExecutor;

class Report {
  public static void main(String[] arguments) {
    try (Client client = new Client()) { // where SIDEKEEPER_ADDRESS says
      LockingTaskExecutor executor =
          new DefaultLockingTaskExecutor(new SidekeeperLockProvider(client));
      executor.executeWithLock(
          (Runnable) () -> System.out.println("reported"),
          new LockConfiguration(Instant.now(), "report", Duration.ofMinutes(10), Duration.ZERO));
    }
  }
}
