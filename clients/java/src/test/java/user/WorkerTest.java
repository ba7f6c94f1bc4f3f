package user;

import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sidekeeper.LockOptions;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.testing.Sidecar;
import io.sidekeeper.testing.SidecarExtension;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(SidecarExtension.class)
class WorkerTest {
  @Test
  void aWorkerStopsWhenItsLockIsLost(Sidecar sidecar) {
    LockOptions options = new LockOptions().owner("worker");
    assertThrows(
        LockLostException.class,
        () -> sidecar.client().withLock("orders", options, lock -> work(sidecar)));
  }

  private static String work(Sidecar sidecar) throws InterruptedException {
    sidecar.expireLock("orders");
    Thread.sleep(10_000); // interrupted when the lock is lost
    return "finished";
  }
}
