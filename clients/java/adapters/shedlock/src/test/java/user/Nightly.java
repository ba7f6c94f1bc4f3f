package user;

import io.sidekeeper.Client;
import io.sidekeeper.shedlock.SidekeeperLockProvider;
import io.sidekeeper.shedlock.Ticks;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import net.javacrumbs.shedlock.core.DefaultLockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.LockingTaskExecutor;

class Nightly {
  public static void main(String[] arguments) {
    try (Client client = new Client()) { // where SIDEKEEPER_ADDRESS says
      LockProvider provider =
          new SidekeeperLockProvider(client)
              .once("report", Ticks.daily(ZoneId.of("Europe/Berlin")))
              .once("poll", Ticks.every(Duration.ofMinutes(5)));
      LockingTaskExecutor executor = new DefaultLockingTaskExecutor(provider);
      for (int machine = 0; machine < 2; machine++) { // of which the second is late
        executor.executeWithLock(
            (Runnable) () -> System.out.println("reported"),
            new LockConfiguration(Instant.now(), "report", Duration.ofMinutes(10), Duration.ZERO));
      }
    }
  }
}
