package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a caller who waits does when its stream is cut without a reason. */
@Timeout(60)
class CutTest {
  private interface Wait<T extends AutoCloseable> {
    CompletableFuture<T> begin(Client client, LockListener listener);
  }

  private static <T extends AutoCloseable> void asksAgain(Wait<T> wait) throws Exception {
    AtomicInteger told = new AtomicInteger();
    LockListener listener =
        new LockListener() {
          @Override
          public void queued(Queued queued) {
            told.incrementAndGet();
          }
        };
    try (Sidecar sidecar = new Sidecar();
        Client client = new Client(sidecar.address);
        Proxy proxy = new Proxy(sidecar.address);
        Client away = new Client(proxy.address)) {
      sidecar.schedules.put("reports");
      sidecar.schedules.run("reports", "now");
      Lock holder = client.acquire("reports", new LockOptions());
      CompletableFuture<T> waiting = wait.begin(away, listener);
      Sidecar.until("it waits", () -> told.get() > 0);
      List<Runnable> cuts =
          List.of(proxy::closeConnections, proxy::resetStreams, proxy::closeConnections);
      for (Runnable cut : cuts) {
        int before = told.get();
        cut.run();
        Sidecar.until("it waits again", () -> told.get() > before);
        assertFalse(waiting.isDone());
      }
      holder.release();
      T held = waiting.get(Sidecar.PATIENT, TimeUnit.SECONDS);
      assertEquals(1, client.getLock("reports").holders().size());
      held.close();
    }
  }

  @Test
  void aCallerThatWaitsForALockAsksAgain() throws Exception {
    asksAgain(
        (client, listener) -> client.acquireAsync("reports", new LockOptions().listener(listener)));
  }

  @Test
  void aCallerThatWaitsForATickAsksAgain() throws Exception {
    asksAgain(
        (client, listener) -> client.workAsync("reports", new WorkOptions().listener(listener)));
  }
}
