import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.sidekeeper.Client;
import io.sidekeeper.Held;
import io.sidekeeper.JoinOptions;
import io.sidekeeper.Lock;
import io.sidekeeper.LockListener;
import io.sidekeeper.LockOptions;
import io.sidekeeper.Membership;
import io.sidekeeper.OnConflict;
import io.sidekeeper.Queued;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;

/**
 * A client process of the fault test that uses the Java client: it does what ../caller/stand.go
 * does, and notes it in the same form.
 *
 * <p>It takes an order as one line of JSON from its input, and carries it out until the input ends.
 * docs/histories.md has the events.
 */
final class Caller {
  private static final int CALLERS = 5;
  private static final int LOCKS = 16;

  private final JsonObject order;
  private final OutputStream file;
  private final CountDownLatch stopping = new CountDownLatch(1);
  private final AtomicLong newest = new AtomicLong();

  private Caller(JsonObject order) throws IOException {
    this.order = order;
    Path path = Path.of(text("histories"), String.format("%05d.history", number("client")));
    file = Files.newOutputStream(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
  }

  public static void main(String[] arguments) throws Exception {
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    new Caller(JsonParser.parseString(input.readLine()).getAsJsonObject()).run(input);
    System.exit(0);
  }

  private String text(String name) {
    return order.get(name).getAsString();
  }

  private long number(String name) {
    return order.get(name).getAsLong();
  }

  private void run(BufferedReader input) throws Exception {
    clocks();
    try (Client client = new Client(text("address"))) {
      List<Thread> callers = new ArrayList<>();
      for (int i = 1; i <= CALLERS; i++) {
        int caller = i;
        callers.add(new Thread(() -> goAbout(client, caller)));
      }
      callers.forEach(Thread::start);
      while (input.readLine() != null) {}
      stopping.countDown();
      for (Thread caller : callers) {
        caller.interrupt(); // which ends a wait, and nothing else: see Operation.keep
      }
      for (Thread caller : callers) {
        caller.join();
      }
    }
    clocks();
  }

  private long now() {
    return System.nanoTime() + number("ahead");
  }

  private synchronized void note(UnaryOperator<JsonObject> fill) {
    JsonObject event = new JsonObject();
    event.addProperty("at", now());
    event.addProperty("client", number("client"));
    try {
      file.write((fill.apply(event) + "\n").getBytes(StandardCharsets.UTF_8));
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  private void clocks() {
    note(event -> with(kind(event, "clocks"), "wall", System.currentTimeMillis() * 1_000_000));
  }

  private static JsonObject kind(JsonObject event, String kind) {
    event.addProperty("kind", kind);
    return event;
  }

  private static JsonObject with(JsonObject event, String name, long value) {
    event.addProperty(name, value);
    return event;
  }

  private static JsonObject with(JsonObject event, String name, String value) {
    event.addProperty(name, value);
    return event;
  }

  private boolean stopped() {
    return stopping.getCount() == 0;
  }

  /** Waits for a while, and says whether to go on. */
  private boolean pause(long milliseconds) {
    try {
      return !stopping.await(milliseconds, TimeUnit.MILLISECONDS);
    } catch (InterruptedException error) {
      return !stopped();
    }
  }

  private void goAbout(Client client, int caller) {
    Random dice = new Random(number("seed") * 31 + caller);
    String name =
        text("prefix") + "/stand/" + (number("slot") * (CALLERS - 1) + caller - 1) % LOCKS;
    while (pause(dice.nextLong(200))) {
      if (caller == CALLERS) {
        belong(client, new Operation(caller), dice);
      } else {
        hold(client, new Operation(caller), dice, name);
      }
    }
  }

  private void hold(Client client, Operation operation, Random dice, String name) {
    operation.begins(
        event -> with(with(kind(event, "called"), "lock", name), "mode", "exclusive"));
    Lock lock;
    try {
      lock =
          client.acquire(
              name, new LockOptions().owner(operation.owner()).listener(operation.listener()));
    } catch (SidekeeperException | LostException | InterruptedException error) {
      operation.end(error);
      return;
    }
    operation.note(event -> with(kind(event, "granted"), "token", lock.fencingToken()));
    operation.keep(lock, 200 + dice.nextLong(2_800), lock::release);
  }

  private void belong(Client client, Operation operation, Random dice) {
    String group = text("prefix") + "/group";
    String member = number("slot") + "-" + (CALLERS - 1);
    operation.begins(
        event -> with(with(kind(event, "joining"), "group", group), "member", member));
    Membership joined;
    try {
      joined =
          client.join(
              group,
              member,
              new JoinOptions().owner(operation.owner()).onConflict(OnConflict.WAIT));
    } catch (SidekeeperException | LostException | InterruptedException error) {
      operation.end(error);
      return;
    }
    operation.note(event -> with(kind(event, "joined"), "incarnation", joined.incarnation()));
    operation.keep(joined, 200 + dice.nextLong(20_000), joined::leave);
  }

  /** What one caller does with one lock, or as one member. */
  private final class Operation {
    private final int caller;
    private final long number = newest.incrementAndGet();
    private long first;
    private long written;

    Operation(int caller) {
      this.caller = caller;
    }

    String owner() {
      return number("client") + "/" + number;
    }

    void note(UnaryOperator<JsonObject> fill) {
      Caller.this.note(event -> fill.apply(with(with(event, "op", number), "caller", caller)));
    }

    void begins(UnaryOperator<JsonObject> fill) {
      note(
          event -> {
            event.addProperty("resumes", order.get("resumes").getAsBoolean());
            event.addProperty("repeats", true);
            return fill.apply(with(event, "sidecar", number("sidecar")));
          });
    }

    LockListener listener() {
      return new LockListener() {
        @Override
        public void queued(Queued queued) {
          note(event -> with(kind(event, "queued"), "position", queued.position()));
        }

        @Override
        public void suspended(Duration remaining) {
          note(event -> kind(event, "suspended"));
        }

        @Override
        public void resumed() {
          note(event -> kind(event, "resumed"));
        }
      };
    }

    void end(Throwable error) {
      Throwable cause = error instanceof LostException lost ? lost.getCause() : error;
      note(
          event -> {
            kind(event, "ended");
            if (cause instanceof SidekeeperException told) {
              return with(with(event, "code", name(told)), "reason", told.reason());
            }
            event.addProperty("byUser", cause instanceof InterruptedException);
            return with(event, "code", cause == null ? "OK" : "Canceled");
          });
    }

    /** A code as the histories have it, such as DeadlineExceeded. */
    private static String name(SidekeeperException told) {
      StringBuilder name = new StringBuilder();
      for (String word : told.code().name().split("_")) {
        name.append(word.charAt(0)).append(word.substring(1).toLowerCase(java.util.Locale.ROOT));
      }
      return name.toString();
    }

    /** Notes now and then for how long the caller has been sure of a lock. */
    private void look(Held held) {
      long asked = now();
      if (!(held instanceof Lock) || !held.isValid()) {
        return;
      }
      first = first == 0 ? now() : first;
      if (asked >= first && asked - written > 100_000_000) {
        written = asked;
        note(event -> with(with(kind(event, "believed"), "from", first), "to", asked));
      }
    }

    /** Keeps something for a while and gives it up, unless it is lost before. */
    void keep(Held held, long milliseconds, Runnable giveUp) {
      long over = System.nanoTime() + milliseconds * 1_000_000;
      while (System.nanoTime() < over && held.error().isEmpty() && pause(30)) {
        look(held);
      }
      LostException lost = held.error().orElse(null);
      if (lost == null) {
        note(event -> kind(event, "releasing"));
      } else {
        end(lost);
      }
      Throwable error = null;
      try {
        giveUp.run();
      } catch (SidekeeperException | LostException failed) {
        error = failed;
      }
      if (lost == null) {
        end(error);
      }
    }
  }
}
