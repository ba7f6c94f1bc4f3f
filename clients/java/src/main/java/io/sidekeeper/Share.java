package io.sidekeeper;

import io.grpc.Status;
import io.sidekeeper.assignment.v1.JoinRequest;
import io.sidekeeper.assignment.v1.JoinResponse;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/**
 * The caller's part in the work on the items of a set, also across losses of its own lease. Close
 * it to leave the set.
 */
public final class Share implements AutoCloseable {
  final Client client;
  final Kind<JoinRequest, JoinResponse> kind;
  final String set;
  final String member;
  final ShareOptions options;
  final ItemHandler handler;
  final Serial events;
  private final Pauses pauses = new Pauses();
  private final CompletableFuture<Void> ended = new CompletableFuture<>();
  private final Thread thread;
  private volatile boolean closed;

  private Share(
      Client client,
      Kind<JoinRequest, JoinResponse> kind,
      String set,
      ShareOptions options,
      ItemHandler handler) {
    this.client = client;
    this.kind = kind;
    this.set = set;
    this.options = options;
    this.handler = handler;
    member = options.member() == null ? host() : options.member();
    events = new Serial(kind.core().workers);
    thread = new Thread(this::work, "sidekeeper-share-" + set);
    thread.setDaemon(true);
  }

  static Share begin(
      Client client,
      Kind<JoinRequest, JoinResponse> kind,
      String set,
      ShareOptions options,
      ItemHandler handler) {
    Share share =
        new Share(
            client,
            kind,
            Rules.given("name", set),
            Rules.given("options", options),
            Rules.given("handler", handler));
    if (options.lease() != null && options.lease().core != kind.core()) {
      throw new IllegalArgumentException("the lease is another client's");
    }
    share.thread.start();
    return share;
  }

  private static String host() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException unknown) {
      throw new IllegalStateException("give a member: the host's name is not known", unknown);
    }
  }

  private void work() {
    try {
      while (!closed) {
        long began = System.nanoTime();
        try {
          once();
        } catch (LostException | SidekeeperException failed) {
          if (closed || options.lease() != null || client.isClosed() || !isWorthAnother(failed)) {
            throw failed;
          }
          tell("", failed);
        }
        pauses.rest(System.nanoTime() - began);
      }
      ended.complete(null);
    } catch (InterruptedException closing) {
      ended.complete(null);
    } catch (RuntimeException refused) {
      ended.completeExceptionally(refused);
    }
  }

  private static boolean isWorthAnother(RuntimeException failed) {
    return failed instanceof LostException
        || (failed instanceof SidekeeperException known
            && (known.isTransient()
                || Calls.wasCutShort(known)
                || known.code() == Status.Code.RESOURCE_EXHAUSTED));
  }

  private void once() throws InterruptedException {
    Lease given = options.lease();
    if (given != null) {
      takePart(given);
      return;
    }
    Lease own =
        client.openLease(new LeaseOptions().owner(options.owner()).metadata(options.metadata()));
    try {
      takePart(own);
    } finally {
      closeQuietly(own);
    }
  }

  /** What ends it says more. */
  private static void closeQuietly(Lease own) {
    try {
      own.close();
    } catch (LostException | SidekeeperException unconfirmed) {
      return;
    }
  }

  /** Is a member until it is closed or the membership is lost. All handlers have ended by then. */
  private void takePart(Lease lease) throws InterruptedException {
    ShareMember made = join(lease);
    try {
      Waiting.await(made.claim.ended.copy());
    } catch (InterruptedException closing) {
      if (options.drain()) {
        made.drain();
      }
      throw closing;
    } finally {
      made.leave();
    }
    LostException lost = made.whyOver();
    if (lost != null && lost.why().reason().equals("ASSIGNMENT_NOT_FOUND")) {
      throw lost.why().again();
    }
    throw lost == null ? silent() : lost;
  }

  private static SidekeeperException silent() {
    return new SidekeeperException(
        Status.Code.UNAVAILABLE, "", new Told("the sidecar ended the stream without a reason"));
  }

  private ShareMember join(Lease lease) throws InterruptedException {
    try {
      return Waiting.await(ShareMember.join(this, lease), ShareMember::giveUp);
    } catch (SidekeeperException failed) {
      boolean refused = failed.fields().stream().anyMatch(wrong -> wrong.field().equals("member"));
      if (options.member() == null && refused) {
        String why = "give a member: by default the host's name is it, and that cannot be: ";
        throw new IllegalArgumentException(why + failed.getMessage(), failed);
      }
      throw failed;
    }
  }

  void tell(String item, Throwable failed) {
    events.run(() -> options.listener().failed(item, failed));
  }

  /**
   * Waits until the share has ended: until another thread closes it, or time does not heal what has
   * ended it.
   *
   * @throws InterruptedException if the thread is interrupted; the share goes on
   * @throws LostException if the lease was given and is lost
   * @throws SidekeeperException if the sidecar refuses it
   */
  public void await() throws InterruptedException {
    Waiting.await(ended.copy());
  }

  /**
   * Tells when the caller is a member no more and does not join again, and all handlers have ended.
   *
   * @return a stage that is completed when it was closed, and fails as await does
   */
  public CompletionStage<Void> ended() {
    return ended.minimalCompletionStage();
  }

  /**
   * Tells all handlers to stop, and returns when they have ended, all locks are released and the
   * caller has left the set. If the options say so, the items move to other members first. It
   * throws nothing: what went wrong is told by ended. A second call does not wait for items to
   * move. A handler must not call it: it would wait for itself.
   */
  @Override
  public void close() {
    closed = true;
    thread.interrupt();
    try {
      Waiting.awaitAnyway(ended.copy());
    } catch (RuntimeException told) {
      return;
    }
  }

  /**
   * The pauses between runs: each twice as long as the one before, and the shortest after a run as
   * long as the longest.
   */
  static final class Pauses {
    private static final long SHORTEST = 1;
    private static final long LONGEST = 60;

    private long next = SHORTEST;

    /** Says for how many seconds to pause after a run that has lasted for so many nanoseconds. */
    long after(long lasted) {
      long pause = TimeUnit.NANOSECONDS.toSeconds(lasted) >= LONGEST ? SHORTEST : next;
      next = Math.min(2 * pause, LONGEST);
      return pause;
    }

    /** Pauses; an interrupt ends that. */
    void rest(long lasted) throws InterruptedException {
      TimeUnit.SECONDS.sleep(after(lasted));
    }
  }
}
