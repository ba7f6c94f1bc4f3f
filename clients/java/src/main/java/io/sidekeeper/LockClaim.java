package io.sidekeeper;

import io.grpc.MethodDescriptor;
import io.sidekeeper.errors.OutcomeUnknownException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lock.v1.CheckRequest;
import io.sidekeeper.lock.v1.CheckedClaim;
import io.sidekeeper.lock.v1.ClaimRequest;
import io.sidekeeper.lock.v1.ClaimResponse;
import io.sidekeeper.lock.v1.ExtendRequest;
import io.sidekeeper.lock.v1.LockServiceGrpc;
import io.sidekeeper.lock.v1.ReleaseRequest;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A lock that is held without a process. It outlives its client: only {@link #release}, its time or
 * an operator ends it. Any thread may use it.
 */
public final class LockClaim {
  private final Core core;
  private final String id;
  private final String name;
  private volatile long token;
  private volatile @Nullable Instant until;

  /** With an empty name, it is known by its id alone. */
  LockClaim(Core core, String id, String name) {
    this.core = core;
    this.id = Rules.given("claimId", id);
    this.name = name;
  }

  /**
   * Asks for a claim, also at a sidecar that is away for a time. Without an answer, one whose id
   * its caller does not know is released.
   */
  static CompletableFuture<LockClaim> ask(
      Core core, ClaimRequest request, @Nullable Duration wait, boolean ours) {
    LockClaim claim = new LockClaim(core, request.getClaimId(), request.getName());
    Absence.Attempt<ClaimResponse> attempt =
        (left, heard) ->
            core.calls.persist(
                LockServiceGrpc.getClaimMethod(),
                wait == null || left == null
                    ? request
                    : request.toBuilder().setWaitTimeout(Wire.duration(left)).build(),
                failed -> failed instanceof OutcomeUnknownException && !Duration.ZERO.equals(wait));
    CompletableFuture<ClaimResponse> asked =
        Absence.through(
            core, wait == null ? Calls.LONGEST : wait, null, attempt, late -> claim.withdraw(ours));
    CompletableFuture<LockClaim> result = new CompletableFuture<>();
    asked.whenComplete(
        (reply, failure) -> {
          boolean taken =
              failure == null
                  ? result.complete(claim.granted(reply))
                  : result.completeExceptionally(Waiting.unwrap(failure)) && !mayStand(failure);
          if (!taken) {
            claim.withdraw(ours);
          }
        });
    result.whenComplete((made, failure) -> asked.cancel(true)); // if its caller has cancelled it
    return result;
  }

  /** Makes a call that may be made again until it is answered or the time is over. */
  private <Q, R> R insist(MethodDescriptor<Q, R> method, Q request) throws InterruptedException {
    Predicate<SidekeeperException> heals =
        failed -> failed.isTransient() || failed instanceof OutcomeUnknownException;
    return Waiting.await(core.calls.repeat(method, request, heals, Calls.TIMEOUT));
  }

  /** Says whether the sidecar has not refused what has failed. */
  private static boolean mayStand(Throwable failure) {
    return !(Waiting.unwrap(failure) instanceof SidekeeperException told)
        || told.reason().isEmpty()
        || told.isTransient()
        || told instanceof OutcomeUnknownException;
  }

  private LockClaim granted(ClaimResponse reply) {
    token = reply.getFencingToken();
    until = Wire.instant(reply.getUntil());
    return this;
  }

  /** Releases what its caller has not got. */
  void withdraw(boolean ours) {
    if (ours && !core.calls.isClosed()) {
      core.acknowledge(
          id,
          (key, time) -> core.calls.ask(LockServiceGrpc.getReleaseMethod(), ofClaim(key), time));
    }
  }

  private static ReleaseRequest ofClaim(String id) {
    return ReleaseRequest.newBuilder().setClaimId(id).build();
  }

  /**
   * Names the claim for every client.
   *
   * @return its id, 32 hexadecimal digits: a secret, for a caller that knows it owns the claim
   */
  public String id() {
    return id;
  }

  /**
   * Orders the grants of this lock.
   *
   * @return the token; of a claim by its id, 0 until {@link #check} has asked
   */
  public long fencingToken() {
    return token;
  }

  /**
   * Says when the claim ends, by the ensemble's clock.
   *
   * @return the time; of a claim by its id, empty until check or extend has asked
   */
  public Optional<Instant> until() {
    return Optional.ofNullable(until);
  }

  /**
   * Gives what others guard with what they write for the claim.
   *
   * @return the ticket
   * @throws IllegalStateException of a claim by its id, whose lock is not known
   */
  public Ticket ticket() {
    if (name.isEmpty()) {
      throw new IllegalStateException(
          "a claim that is known by its id alone has no ticket: its lock is not known");
    }
    return new Ticket(name, token);
  }

  /**
   * Has the claim end no earlier than so long from now.
   *
   * @param reserveFor 1 minute to 30 days
   * @throws InterruptedException if the thread is interrupted; it may be extended then
   * @throws SidekeeperException with the reason CLAIM_ENDED or CLAIM_NOT_FOUND if it is not held;
   *     otherwise if the sidecar or the ensemble is away
   */
  public void extend(Duration reserveFor) throws InterruptedException {
    Rules.time("reserveFor", Rules.given("reserveFor", reserveFor));
    ExtendRequest request =
        ExtendRequest.newBuilder().setClaimId(id).setReserveFor(Wire.duration(reserveFor)).build();
    until = Wire.instant(insist(LockServiceGrpc.getExtendMethod(), request).getUntil());
  }

  /**
   * Says for how long the claim counts from now, whatever operators do.
   *
   * @return at most 58 seconds; zero while it waits
   * @throws InterruptedException if the thread is interrupted
   * @throws SidekeeperException as extend throws
   */
  public Duration check() throws InterruptedException {
    long asked = Clock.before();
    CheckRequest request = CheckRequest.newBuilder().addClaimIds(id).build();
    CheckedClaim told = insist(LockServiceGrpc.getCheckMethod(), request).getClaims(0);
    if (!told.getReason().isEmpty()) {
      throw SidekeeperException.named(told.getReason(), "the sidecar says so");
    }
    if (told.hasUntil()) {
      token = told.getFencingToken();
      until = Wire.instant(told.getUntil());
    }
    long left = asked + Wire.duration(told.getValidFor()).toNanos() - Clock.now();
    return Duration.ofNanos(Math.max(left, 0));
  }

  /**
   * Ends the claim. Again, it does nothing for a day.
   *
   * @throws InterruptedException if the thread is interrupted; it may be released then
   * @throws SidekeeperException with the reason CLAIM_ENDED if it has ended otherwise, or
   *     CLAIM_NOT_FOUND; otherwise if the sidecar or the ensemble is away
   */
  public void release() throws InterruptedException {
    insist(LockServiceGrpc.getReleaseMethod(), ofClaim(id));
  }
}
