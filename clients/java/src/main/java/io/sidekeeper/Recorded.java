package io.sidekeeper;

import com.google.protobuf.Message;
import io.grpc.MethodDescriptor;
import io.sidekeeper.errors.AlreadyDoneException;
import io.sidekeeper.errors.GuardLostException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.OutcomeUnknownException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.SupersededException;
import io.sidekeeper.hold.v1.RevocationRequested;
import io.sidekeeper.hold.v1.Suspended;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The caller's attempt at work, whose outcome is recorded. Finish it: an attempt that is closed
 * without that counts as lost.
 */
abstract class Recorded<Q extends Message, R extends Message> extends Excluding<Q, R> {
  private static final int LONGEST_NOTE = 256;

  private final String lock;
  private final LockListener listener;
  private final Serial events;
  private String holdId = "";
  private long fencingToken;
  private int number;
  private volatile @Nullable Revocation revocation;

  Recorded(
      Kind<Q, R> kind,
      String what,
      String lock,
      @Nullable Lease given,
      @Nullable Lease own,
      LockListener listener,
      Serial events) {
    super(kind, what, LockLostException::new, given, own);
    this.lock = lock;
    this.listener = listener;
    this.events = events;
  }

  /** Makes an attempt on a lease, with what is left of the wait. */
  interface Making<H> {
    CompletableFuture<H> make(@Nullable Lease own, @Nullable Duration wait, Runnable heard);
  }

  /** Begins an attempt, also at a sidecar that is away for a time. */
  static <H extends Recorded<?, ?>> CompletableFuture<H> through(
      Core core,
      Kind<MultiplexRequest, MultiplexResponse> leases,
      @Nullable Lease given,
      @Nullable Duration waitTimeout,
      String owner,
      Map<String, String> metadata,
      Making<H> making) {
    if (given != null && given.core != core) {
      throw new IllegalArgumentException("the lease is another client's");
    }
    LeaseOptions opening = new LeaseOptions().owner(owner).metadata(metadata);
    return Absence.through(
        core,
        waitTimeout,
        given,
        (wait, heard) ->
            given == null
                ? Grounded.<H>begin(
                    leases, opening, wait, heard, (own, left) -> making.make(own, left, heard))
                : making.make(null, wait, heard),
        Recorded::giveUp);
  }

  /** Has the sidecar record the outcome; see {@link #repeat}. */
  abstract CompletableFuture<?> recording(io.sidekeeper.once.v1.Outcome outcome, String note);

  final String begunAs(String hold, long token, int attempt) {
    holdId = hold;
    fencingToken = token;
    number = attempt;
    return hold;
  }

  final void queued(io.sidekeeper.hold.v1.Queued wire) {
    Queued queued = new Queued(wire.getPosition(), Wire.contenders(wire.getHoldersList()));
    events.run(() -> listener.queued(queued));
  }

  final void suspended(Suspended wire) {
    Duration remaining = Wire.duration(wire.getRemaining());
    events.run(() -> listener.suspended(remaining));
  }

  final void resumed() {
    events.run(listener::resumed);
  }

  final void asked(RevocationRequested wire) {
    Revocation asked = Wire.revocation(wire);
    revocation = asked;
    events.run(() -> listener.revocationRequested(asked));
  }

  @Override
  void begun() {
    claim.whenOver(
        () -> {
          LostException lost = claim.lost();
          if (lost instanceof LockLostException told) {
            events.run(() -> listener.lost(told));
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
   * Counts the attempts at this work.
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
   * Orders the attempts at this work: hand it to whatever the work changes, and let that refuse
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
    Rules.given("outcome", outcome);
    Rules.given("note", note);
    CompletableFuture<Void> settled = new CompletableFuture<>();
    once(() -> settled); // for the caller it is over before the sidecar learns of it
    return recording(Wire.outcome(outcome), note)
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

  /** Calls a service's Finish until the outcome is recorded, or never will be. */
  final <F> CompletableFuture<?> repeat(MethodDescriptor<F, ?> finish, F request) {
    return core.calls.repeat(
        finish,
        request,
        failed -> failed.isTransient() || failed instanceof OutcomeUnknownException,
        Calls.TIMEOUT);
  }

  /**
   * Records that work has failed. If it may have failed for its lock, the attempt is lost, even if
   * only the clock says that. A failure changes nothing after the work has ended the attempt
   * itself. What keeps the failure from being recorded goes with it.
   */
  void failed(Throwable failure) {
    if (isGivenUp() || error().isPresent() || whyOver() != null || isLoss(failure)) {
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
