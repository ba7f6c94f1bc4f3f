import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/**
 * A client process of the fault test that uses Curator's own locks, without a sidecar: it waits for
 * the locks that ../caller/claims.go claims, holds them, and notes that in the same form.
 *
 * <p>It notes no instant at which it is sure of a lock, since Curator promises none. So the judges
 * look at when it is granted a lock, and at what becomes of the others.
 *
 * <p>It takes an order as one line of JSON from its input, and carries it out until the input ends.
 * docs/histories.md has the events.
 */
final class Curator {
  private static final int CALLERS = 2;
  private static final int LOCKS = 24;
  private static final int WAIT_SECONDS = 5;
  private static final String LOCK_ROOT = "/sidekeeper/locks/";

  private final String order;
  private final OutputStream file;
  private final CountDownLatch stopping = new CountDownLatch(1);
  private final AtomicLong newest = new AtomicLong();
  private final AtomicLong losses = new AtomicLong(); // of sessions

  private Curator(String order) throws IOException {
    this.order = order;
    Path path = Path.of(text("histories"), String.format("%05d.history", number("client")));
    file = Files.newOutputStream(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
  }

  public static void main(String[] arguments) throws Exception {
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    new Curator(input.readLine()).run(input);
    System.exit(0);
  }

  /** The values of a field of the order, which has no quotation marks inside of its texts. */
  private String find(String name, String form) {
    Matcher found = Pattern.compile("\"" + name + "\":" + form).matcher(order);
    if (!found.find()) {
      throw new IllegalArgumentException("the order has no " + name);
    }
    return found.group(1);
  }

  private String text(String name) {
    return find(name, "\"([^\"]*)\"");
  }

  private long number(String name) {
    return new java.math.BigInteger(find(name, "(-?[0-9]+)")).longValue();
  }

  private void run(BufferedReader input) throws Exception {
    note("\"kind\":\"clocks\",\"wall\":%d", System.currentTimeMillis() * 1_000_000);
    int timeout = (int) (number("timeout") / 1_000_000);
    try (CuratorFramework client =
        CuratorFrameworkFactory.newClient(
            find("servers", "\\[([^\\]]*)\\]").replace("\"", ""),
            timeout,
            timeout,
            new ExponentialBackoffRetry(100, 3))) {
      client
          .getConnectionStateListenable()
          .addListener(
              (of, state) -> {
                if (state == ConnectionState.LOST) {
                  losses.incrementAndGet();
                }
              });
      client.start();
      List<Thread> callers = new ArrayList<>();
      for (int i = 1; i <= CALLERS; i++) {
        int caller = i;
        callers.add(new Thread(() -> goAbout(client, caller)));
      }
      callers.forEach(Thread::start);
      while (input.readLine() != null) {}
      stopping.countDown();
      for (Thread caller : callers) {
        caller.join();
      }
    }
    note("\"kind\":\"clocks\",\"wall\":%d", System.currentTimeMillis() * 1_000_000);
  }

  private synchronized void note(String form, Object... values) {
    String event =
        String.format(
            "{\"at\":%d,\"client\":%d,%s}%n",
            System.nanoTime() + number("ahead"), number("client"), String.format(form, values));
    try {
      file.write(event.getBytes(StandardCharsets.UTF_8));
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  /** Waits for a while, and says whether to go on. */
  private boolean pause(long milliseconds) {
    try {
      return !stopping.await(milliseconds, TimeUnit.MILLISECONDS);
    } catch (InterruptedException error) {
      return false;
    }
  }

  private void goAbout(CuratorFramework client, int caller) {
    Random dice = new Random(number("seed") * 31 + caller);
    while (pause(dice.nextInt(500))) {
      String name = text("prefix") + "/claimed/" + dice.nextInt(LOCKS);
      Operation operation = new Operation(caller);
      operation.note(
          "\"kind\":\"called\",\"lock\":\"%s\",\"mode\":\"exclusive\",\"sidecar\":%d,\"wait\":%d",
          name, number("sidecar"), WAIT_SECONDS * 1_000_000_000L);
      try {
        operation.hold(client, new Mutex(client, LOCK_ROOT + name.replace("/", "%2F")), dice);
      } catch (Exception error) {
        operation.end("Unknown", error.toString());
      }
    }
  }

  /** A lock of Curator that tells which node is its caller's. */
  private static final class Mutex extends InterProcessMutex {
    Mutex(CuratorFramework client, String path) {
      super(client, path);
    }

    String place() {
      return getLockPath();
    }
  }

  /** What one caller does with one lock. */
  private final class Operation {
    private final int caller;
    private final long number = newest.incrementAndGet();

    Operation(int caller) {
      this.caller = caller;
    }

    void note(String form, Object... values) {
      Curator.this.note(
          "\"op\":%d,\"caller\":%d,%s", number, caller, String.format(form, values));
    }

    void end(String code, String reason) {
      note(
          "\"kind\":\"ended\",\"code\":\"%s\",\"reason\":\"%s\"",
          code, reason.replaceAll("[\"\\\\\\p{Cntrl}]", " "));
    }

    void hold(CuratorFramework client, Mutex lock, Random dice) throws Exception {
      long before = losses.get();
      if (!lock.acquire(WAIT_SECONDS, TimeUnit.SECONDS)) {
        end("DeadlineExceeded", "WAIT_TIMEOUT");
        return;
      }
      boolean granted = stay(client, lock, dice.nextInt(1_000), before);
      boolean lost = granted && losses.get() != before;
      if (lost) {
        end("Aborted", "LEASE_LOST");
      } else if (granted) {
        note("\"kind\":\"releasing\"");
      }
      String failure = release(lock);
      if (!lost) {
        end(granted && failure.isEmpty() ? "OK" : "Unknown", failure);
      }
    }

    /** Holds the lock for a while, unless its session is lost. Says whether its node was found. */
    private boolean stay(CuratorFramework client, Mutex lock, long milliseconds, long before) {
      try {
        Stat place = client.checkExists().forPath(lock.place());
        if (place == null) {
          return false;
        }
        note("\"kind\":\"granted\",\"token\":%d", place.getCzxid());
      } catch (Exception error) {
        return false;
      }
      long over = System.nanoTime() + milliseconds * 1_000_000;
      while (System.nanoTime() < over && losses.get() == before && pause(30)) {}
      return true;
    }

    private static String release(Mutex lock) {
      try {
        lock.release();
        return "";
      } catch (Exception error) { // Curator deletes the node later
        return error.toString();
      }
    }
  }
}
