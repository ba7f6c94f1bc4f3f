package io.sidekeeper;

import io.sidekeeper.errors.AlreadyDoneException;
import io.sidekeeper.errors.GuardLostException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.OutcomeUnknownException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.SupersededException;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.once.v1.BeginRequest;
import io.sidekeeper.once.v1.BeginResponse;
import io.sidekeeper.once.v1.FinishRequest;
import io.sidekeeper.once.v1.OnceServiceGrpc;
import io.sidekeeper.once.v1.Per;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The caller's attempt at work that is done once. Finish it: an attempt that is closed without that
 * counts as lost.
 */
public final class Attempt extends Excluding<BeginRequest, BeginResponse> {
  private static final int LONGEST_NOTE = 256;

  private final String lock;
  private final OnceOptions options;
  private final Serial events;
  private String holdId = "";
  private long fencingToken;
  private int number;
  private volatile @Nullable Revocation revocation;

  private Attempt(
      Kind<BeginRequest, BeginResponse> kind,
      String name,
      String key,
      OnceOptions options,
      @Nullable Lease own,
      Serial events) {
    super(kind, "work " + name + " " + key, LockLostException::new, options.lease(), own);
    this.lock = options.perName() ? name : name + "/" + key;
    this.options = options;
    this.events = events;
  }

  /** Begins the work, also at a sidecar that is away for a time. */
  static CompletableFuture<Attempt> begin(
      Kind<BeginRequest, BeginResponse> kind,
      Kind<MultiplexRequest, MultiplexResponse> leases,
      String name,
      String key,
      OnceOptions options) {
    Rules.given("name", name);
    Rules.given("key", key);
    Rules.given("options", options);
    Lease given = options.lease();
    if (given != null && given.core != kind.core()) {
      throw new IllegalArgumentException("the lease is another client's");
    }
    Serial events = new Serial(kind.core().workers);
    LeaseOptions opening = new LeaseOptions().owner(options.owner()).metadata(options.metadata());
    BeginRequest request = request(name, key, options);
    return Absence.through(
        kind.core(),
        options.waitTimeout(),
        given,
        (wait, heard) ->
            given == null
                ? begin(
                    leases,
                    opening,
                    wait,
                    heard,
                    (own, left) ->
                        new Attempt(kind, name, key, options, own, events)
                            .start(request, left, heard))
                : new Attempt(kind, name, key, options, null, events).start(request, wait, heard),
        Attempt::giveUp);
  }

  private static BeginRequest request(String name, String key, OnceOptions options) {
    BeginRequest.Builder request =
        BeginRequest.newBuilder()
            .setName(name)
            .setKey(key)
            .setPer(options.perName() ? Per.PER_NAME : Per.PER_KEY)
            .setOnLoss(Wire.policy(options.onLoss()))
            .setOnFailure(Wire.policy(options.onFailure()))
            .setAttempts(options.attempts())
            .setOwner(options.owner())
            .putAllMetadata(options.metadata());
    if (options.keep() != null) {
      request.setKeep(Wire.duration(options.keep()));
    }
    return request.build();
  }

  private CompletableFuture<Attempt> start(
      BeginRequest request, @Nullable Duration wait, Runnable heard) {
    BeginRequest waiting =
        wait == null ? request : request.toBuilder().setWaitTimeout(Wire.duration(wait)).build();
    return Handing.out(this, () -> open(waiting, heard));
  }

  @Override
  String grant(BeginResponse event) {
    holdId = event.getBegun().getHoldId();
    fencingToken = event.getBegun().getFencingToken();
    number = event.getBegun().getAttempt();
    return holdId;
  }

  @Override
  void notice(BeginResponse event) {
    LockListener listener = options.listener();
    switch (event.getEventCase()) {
      case QUEUED -> {
        Queued queued =
            new Queued(
                event.getQueued().getPosition(),
                Wire.contenders(event.getQueued().getHoldersList()));
        events.run(() -> listener.queued(queued));
      }
      case SUSPENDED -> {
        Duration remaining = Wire.duration(event.getSuspended().getRemaining());
        events.run(() -> listener.suspended(remaining));
      }
      case RESUMED -> events.run(listener::resumed);
      case REVOCATION_REQUESTED -> {
        Revocation asked = Wire.revocation(event.getRevocationRequested());
        revocation = asked;
        events.run(() -> listener.revocationRequested(asked));
      }
      default -> {} // begun, or something newer than this client
    }
  }

  @Override
  void begun() {
    claim.whenOver(
        () -> {
          LostException lost = claim.lost();
          if (lost instanceof LockLostException told) {
            events.run(() -> options.listener().lost(told));
          }
        });
  }

  @Override
  @Nullable Duration suspensionGrace() {
    return null;
  }

  @Override
  long token() {
    return fencingToken;
  }

  @Override
  List<Ticket> exclusive() {
    return List.of(ticket());
  }

  /**
   * Counts the attempts of the key.
   *
   * @return 1 for the first one
   */
  public int number() {
    return number;
  }

  /**
   * Names the attempt and its hold in calls that are made without this client.
   *
   * @return 32 hexadecimal digits, which are a secret
   */
  @Override
  public String holdId() {
    return holdId;
  }

  /**
   * Orders the attempts of the key: hand it to whatever the work changes, and let that refuse
   * smaller ones.
   *
   * @return a number that is larger than those of all earlier attempts
   */
  public long fencingToken() {
    return fencingToken;
  }

  /**
   * Names the attempt for others, who guard with it what they write for the work.
   *
   * @return what the caller hands on
   */
  public Ticket ticket() {
    return new Ticket(lock, fencingToken);
  }

  /**
   * Guards with the attempt what this thread writes with the same client, until the scope is
   * closed; see {@link Lock#guard}.
   *
   * @return the scope; close it on this thread
   */
  public GuardScope guard() {
    return openGuard();
  }

  /**
   * Says whether another caller wants the lock.
   *
   * @return the newest request to let go; empty if there was none
   */
  public Optional<Revocation> revocation() {
    return Optional.ofNullable(revocation);
  }

  /**
   * Says how the attempt has ended, and gives up its lock; for the caller it is over at once. When
   * this returns, the outcome is recorded, even if the attempt was lost or released before. It asks
   * for at most about 10 seconds, even if the thread is interrupted. The sidecar knows an attempt
   * for ten minutes after its end: later, it is a SidekeeperException with the reason
   * HOLD_NOT_FOUND.
   *
   * @param outcome of the attempt
   * @param note for people: at most 256 bytes
   * @throws SupersededException if the outcome never will be recorded, since another attempt has
   *     begun
   * @throws AlreadyDoneException if another outcome is recorded
   * @throws SidekeeperException if the outcome may be recorded or not; call this again
   */
  public void finish(Outcome outcome, String note) {
    Waiting.awaitAnyway(finishing(outcome, note));
  }

  /**
   * Does the same as {@link #finish}, without a wait.
   *
   * @param outcome of the attempt
   * @param note for people: at most 256 bytes
   * @return a stage that is completed when the outcome is recorded, or fails as finish does
   */
  public CompletableFuture<Void> finishAsync(Outcome outcome, String note) {
    return core.workers.hand(finishing(outcome, note));
  }

  private CompletableFuture<Void> finishing(Outcome outcome, String note) {
    FinishRequest request =
        FinishRequest.newBuilder()
            .setHoldId(holdId)
            .setOutcome(Wire.outcome(Rules.given("outcome", outcome)))
            .setNote(Rules.given("note", note))
            .build();
    CompletableFuture<Void> settled = new CompletableFuture<>();
    once(() -> settled); // for the caller it is over before the sidecar learns of it
    return core.calls
        .repeat(
            OnceServiceGrpc.getFinishMethod(),
            request,
            failed -> failed.isTransient() || failed instanceof OutcomeUnknownException,
            Calls.TIMEOUT)
        .<Void>thenApply(recorded -> null)
        .whenComplete(
            (recorded, failure) -> {
              claim.abandon(null);
              if (own != null) {
                own.closeUsed(failure == null);
              }
              settled.complete(null);
            });
  }

  /**
   * Records that work has failed. If it may have failed for its lock, the attempt is lost, even if
   * only the clock says that. What keeps the failure from being recorded goes with it.
   */
  void failed(Throwable failure) {
    if (error().isPresent() || whyOver() != null || isLoss(failure)) {
      release();
      return;
    }
    try {
      finish(Outcome.FAILED, noteOf(textOf(failure)));
    } catch (RuntimeException | Error unrecorded) {
      failure.addSuppressed(unrecorded);
      release(); // which does nothing if finish has ended it
    }
  }

  private static boolean isLoss(Throwable failure) {
    return Bodies.causes(failure).stream()
        .anyMatch(cause -> cause instanceof LostException || cause instanceof GuardLostException);
  }

  /** What a failure says of itself: its class is the caller's, and may throw. */
  private static String textOf(Throwable failure) {
    try {
      return Objects.requireNonNull(failure.toString());
    } catch (RuntimeException | Error untold) {
      return "it has failed";
    }
  }

  /** A text as a note may have it. */
  static String noteOf(String text) {
    byte[] bytes = text.replaceAll("\\p{Cc}", " ").getBytes(StandardCharsets.UTF_8);
    int end = Math.min(bytes.length, LONGEST_NOTE);
    while (end < bytes.length && (bytes[end] & 0xc0) == 0x80) {
      end--; // within a character
    }
    return new String(bytes, 0, end, StandardCharsets.UTF_8);
  }

  /**
   * Gives the attempt up; for the caller it is over at once, and it counts as lost unless it is
   * finished. After {@link #finish} it does nothing. It waits for at most about 15 seconds, even if
   * the thread is interrupted.
   *
   * @throws LockLostException if it was lost before
   * @throws ReleaseUnconfirmedException if the sidecar has not confirmed it: then it is over for
   *     the caller all the same, and for others by the time its validity would have been
   */
  @Override
  public void release() {
    Waiting.awaitAnyway(releasing());
  }

  /**
   * Does the same as {@link #release}, without a wait.
   *
   * @return a stage that is completed when the next waiter can begin, or fails as release does
   */
  public CompletableFuture<Void> releaseAsync() {
    return core.workers.hand(releasing());
  }

  /** Does the same as {@link #release}. */
  @Override
  public void close() {
    release();
  }
}
