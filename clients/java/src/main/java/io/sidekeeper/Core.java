package io.sidekeeper;

import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/** What the parts of one client share. */
final class Core {
  /** Bounds an acknowledgment, and so how long it holds up a client that is closed. */
  private static final Duration ACKNOWLEDGE_TIME = Duration.ofSeconds(2);

  /** Guards all claims of the client. */
  final Object monitor = new Object();

  final Workers workers = new Workers();
  final Calls calls;

  /** What has a stream. */
  final Set<Held> open = ConcurrentHashMap.newKeySet();

  /** The streams of leases, by their ids. */
  final Map<String, Multiplex> multiplexes = new ConcurrentHashMap<>();

  private final Map<String, CompletableFuture<?>> acknowledgments = new ConcurrentHashMap<>();
  private final List<Keeper> keepers = new CopyOnWriteArrayList<>();
  private final Transport transport;

  Core(ClientBuilder builder) {
    Transport made;
    try {
      made = Transport.open(builder.address, builder.credentials, workers);
    } catch (RuntimeException refused) {
      workers.close();
      throw refused;
    }
    transport = made;
    calls = new Calls(transport.channel, transport.address, workers);
  }

  /** Makes a keeper, which ends what it keeps when the client is closed. */
  Keeper keeper(Keeper.Ask ask) {
    Keeper keeper = new Keeper(monitor, workers, ask);
    keepers.add(keeper);
    return keeper;
  }

  /** Says whether what stands on a lease may outlive the sidecar's process. */
  boolean isOnSocket() {
    return transport.onSocket;
  }

  /** Connects at once if that has failed and is put off. */
  void reconnect() {
    transport.channel.resetConnectBackoff();
  }

  void close() {
    if (calls.isClosed()) {
      return;
    }
    calls.close();
    synchronized (monitor) {
      keepers.forEach(Keeper::close); // before the sidecar learns of it
      for (Held held : new LinkedHashSet<>(open)) {
        held.claim.lose(Calls.closed());
      }
    }
    Waiting.awaitAnyway(
        CompletableFuture.allOf(acknowledgments.values().toArray(CompletableFuture[]::new)));
    transport.close();
    workers.close();
  }

  /**
   * Tells the sidecar that the caller counts no more on something that did not end by the caller's
   * own hand. It keeps its place until then, or until the caller cannot be counting on it any more:
   * so nothing but the others' time is lost with an acknowledgment that does not arrive. When the
   * client is closed, the end of the connection tells the same.
   */
  void acknowledge(String key, Kind.GiveUp giveUp) {
    CompletableFuture<Boolean> told =
        giveUp.ask(key, ACKNOWLEDGE_TIME).handle((reply, howItEnded) -> howItEnded == null);
    acknowledgments.put(key, told);
    told.thenRun(() -> acknowledgments.remove(key));
  }
}
