import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Counts in a file, under a lock that others share: Curator's InterProcessMutex on the path where Sidekeeper keeps the lock.
 *
 * <pre>java Count ENSEMBLE LOCK-PATH FILE TIMES</pre>
 */
public final class Count {
  private Count() {}

  public static void main(String[] arguments) throws Exception {
    Path file = Path.of(arguments[2]);
    int times = Integer.parseInt(arguments[3]);
    CuratorFramework zookeeper =
        CuratorFrameworkFactory.newClient(arguments[0], 10_000, 10_000, new ExponentialBackoffRetry(100, 5));
    zookeeper.start();
    try (zookeeper) {
      InterProcessMutex lock = new InterProcessMutex(zookeeper, arguments[1]);
      for (int i = 0; i < times; i++) {
        lock.acquire();
        try {
          countOne(file);
        } finally {
          lock.release();
        }
      }
    }
    System.out.println("Java counted " + times);
  }

  /** Fails if anybody else is at it. */
  private static void countOne(Path file) throws IOException {
    Path busy = Path.of(file + ".busy");
    Files.createFile(busy);
    int number = Integer.parseInt(Files.readString(file).strip());
    Files.writeString(file, (number + 1) + "\n");
    Files.delete(busy);
  }
}
