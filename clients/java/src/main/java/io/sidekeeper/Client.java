package io.sidekeeper;

import static io.sidekeeper.Rules.given;

import io.sidekeeper.barrier.v1.BarrierServiceGrpc;
import io.sidekeeper.barrier.v1.EnterRequest;
import io.sidekeeper.barrier.v1.EnterResponse;
import io.sidekeeper.barrier.v1.RemoveRequest;
import io.sidekeeper.barrier.v1.SetRequest;
import io.sidekeeper.election.v1.CampaignRequest;
import io.sidekeeper.election.v1.CampaignResponse;
import io.sidekeeper.election.v1.ElectionServiceGrpc;
import io.sidekeeper.election.v1.TransferRequest;
import io.sidekeeper.errors.AlreadyDoneException;
import io.sidekeeper.errors.ClocksDisagreeException;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.LockLostException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.MemberExistsException;
import io.sidekeeper.errors.NotRepeatedException;
import io.sidekeeper.errors.ScheduleNotFoundException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.SupersededException;
import io.sidekeeper.errors.SuspendedException;
import io.sidekeeper.errors.TooManyKeysException;
import io.sidekeeper.errors.WaitTimeoutException;
import io.sidekeeper.fencing.v1.FencingServiceGrpc;
import io.sidekeeper.fencing.v1.VerifyRequest;
import io.sidekeeper.fencing.v1.VerifyResponse;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lock.v1.AcquireAllRequest;
import io.sidekeeper.lock.v1.AcquireAllResponse;
import io.sidekeeper.lock.v1.AcquireRequest;
import io.sidekeeper.lock.v1.AcquireResponse;
import io.sidekeeper.lock.v1.ClaimRequest;
import io.sidekeeper.lock.v1.GetRequest;
import io.sidekeeper.lock.v1.LockServiceGrpc;
import io.sidekeeper.lock.v1.RevokeRequest;
import io.sidekeeper.lock.v1.WatchRequest;
import io.sidekeeper.lock.v1.WatchResponse;
import io.sidekeeper.membership.v1.JoinRequest;
import io.sidekeeper.membership.v1.JoinResponse;
import io.sidekeeper.membership.v1.MembershipServiceGrpc;
import io.sidekeeper.once.v1.BeginRequest;
import io.sidekeeper.once.v1.BeginResponse;
import io.sidekeeper.schedule.v1.WorkRequest;
import io.sidekeeper.schedule.v1.WorkResponse;
import io.sidekeeper.semaphore.v1.CreateRequest;
import io.sidekeeper.semaphore.v1.ResizeRequest;
import io.sidekeeper.semaphore.v1.SemaphoreServiceGrpc;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Talks to one sidecar. Any thread may use it; most programs need one. Close it: that gives up all
 * that it holds and waits for.
 */
public final class Client implements AutoCloseable {
  private final Core core;
  private final Kind<AcquireRequest, AcquireResponse> locks;
  private final Kind<AcquireAllRequest, AcquireAllResponse> several;
  private final Kind<BeginRequest, BeginResponse> attempts;
  private final Kind<WorkRequest, WorkResponse> ticks;
  private final Kind<MultiplexRequest, MultiplexResponse> leases;
  private final Kind<JoinRequest, JoinResponse> members;
  private final Kind<
          io.sidekeeper.assignment.v1.JoinRequest, io.sidekeeper.assignment.v1.JoinResponse>
      shares;
  private final Kind<CampaignRequest, CampaignResponse> candidacies;
  private final Kind<
          io.sidekeeper.semaphore.v1.AcquireRequest, io.sidekeeper.semaphore.v1.AcquireResponse>
      permits;
  private final Kind<EnterRequest, EnterResponse> entries;
  private final Config config;

  /**
   * Talks to the sidecar that the environment variable SIDEKEEPER_ADDRESS names, and without it to
   * {@code unix:///run/sidekeeper/sidekeeper.sock}. It does not wait for a connection; the first
   * call does.
   *
   * @throws IllegalArgumentException if the variable holds no address
   */
  public Client() {
    this(builder());
  }

  /**
   * Talks to the sidecar at an address.
   *
   * @param address {@code unix:///path}, a path, or {@code host:port} of this machine
   * @throws IllegalArgumentException for an address that is none, or needs credentials
   */
  public Client(String address) {
    this(builder().address(address));
  }

  Client(ClientBuilder builder) {
    core = new Core(builder);
    Holds holds = new Holds(core);
    locks = holds.one();
    several = holds.several();
    attempts = holds.attempts();
    ticks = holds.ticks();
    leases = Lease.kind(core);
    members = Membership.kind(core);
    shares = ShareMember.kind(core);
    permits = Permits.kind(core);
    entries = BarrierEntry.kind(core);
    candidacies = Leadership.kind(core);
    config = new Config(core);
  }

  /**
   * Begins a client that is set up in another way.
   *
   * @return a builder
   */
  public static ClientBuilder builder() {
    return new ClientBuilder();
  }

  /** Gives up everything that this client holds and waits for. Again, it does nothing. */
  @Override
  public void close() {
    core.close();
  }

  boolean isClosed() {
    return core.calls.isClosed();
  }

  /**
   * Opens a lease. It waits for a sidecar or an ensemble that is away, as long as the options say.
   *
   * @param options how
   * @return the lease; close it
   * @throws InterruptedException if the thread is interrupted; the lease is given up then
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  public Lease openLease(LeaseOptions options) throws InterruptedException {
    return Waiting.await(Lease.open(leases, options), HeldStream::abandon);
  }

  /**
   * Does the same as {@link #openLease}, without a wait.
   *
   * @param options how
   * @return the lease, or what openLease throws; cancel it to give up
   */
  public CompletableFuture<Lease> openLeaseAsync(LeaseOptions options) {
    return core.workers.hand(Lease.open(leases, options), HeldStream::abandon);
  }

  /**
   * Waits for its turn for an exclusive lock, for as long as it takes; 10 seconds each time for a
   * sidecar or an ensemble that is away.
   *
   * @param name of the lock
   * @return the lock, which is certainly the caller's for some time to come; release it
   * @throws InterruptedException if the thread is interrupted; the place in the queue is given up
   *     then
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  public Lock acquire(String name) throws InterruptedException {
    return acquire(name, new LockOptions());
  }

  /**
   * Waits for its turn. While the sidecar or the ensemble is away, it tries again, at the queue's
   * end, for as long as the options say.
   *
   * @param name of the lock
   * @param options how to acquire it
   * @return the lock, which is certainly the caller's for some time to come; release it
   * @throws InterruptedException if the thread is interrupted; the place in the queue is given up
   *     then
   * @throws LockHeldException if it was tried once, and another caller holds the lock or the delay
   *     of an earlier hold is kept
   * @throws WaitTimeoutException if it was not granted in time
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  public Lock acquire(String name, LockOptions options) throws InterruptedException {
    return Waiting.await(Lock.acquire(locks, leases, name, options), Lock::giveUp);
  }

  /**
   * Does the same as {@link #acquire(String, LockOptions)}, without a wait.
   *
   * @param name of the lock
   * @param options how to acquire it
   * @return the lock, or what acquire throws; cancel it to give up the place in the queue
   */
  public CompletableFuture<Lock> acquireAsync(String name, LockOptions options) {
    return core.workers.hand(Lock.acquire(locks, leases, name, options), Lock::giveUp);
  }

  /**
   * Gives a lock to code that knows those of Java. It talks to no sidecar yet.
   *
   * @param name of the lock
   * @return the lock, for all threads of the program that are to exclude each other; it is not
   *     closed
   */
  public ThreadLock threadLock(String name) {
    return threadLock(name, new LockOptions());
  }

  /**
   * Gives a lock to code that knows those of Java. It talks to no sidecar yet.
   *
   * @param name of the lock
   * @param options how to hold it; for how long to wait, each call says
   * @return the lock, for all threads of the program that are to exclude each other; it is not
   *     closed
   */
  public ThreadLock threadLock(String name, LockOptions options) {
    return new ThreadLock(this, given("name", name), given("options", options));
  }

  /**
   * Holds a lock while a body runs, and releases it.
   *
   * <p>The thread is interrupted as soon as the lock is lost, or has been suspended for the grace
   * of the options: at most once, and never after the body has returned or thrown. A body that has
   * lost its lock ends with LockLostException, unless it fails by itself: then with its own
   * exception, in which the loss is suppressed. What a body throws since it was interrupted is
   * suppressed in LockLostException, or SuspendedException. An interrupt by others that comes after
   * the InterruptedException which the body throws stays on the thread.
   *
   * <p>What the body writes on its thread with this client is written only while the lock is held;
   * see {@link Lock#guard}.
   *
   * @param name of the lock
   * @param options how to acquire and hold it
   * @param body what to do with it, on the calling thread
   * @param <T> what body gives
   * @param <E> what body throws
   * @return what body gives
   * @throws E what body throws
   * @throws InterruptedException if the thread is interrupted by others
   * @throws LockLostException if the lock was lost before it was released
   * @throws SuspendedException if the body was stopped since the lock was suspended
   * @throws SidekeeperException as acquire and release do
   */
  public <T, E extends Exception> T withLock(String name, LockOptions options, Body<T, E> body)
      throws E, InterruptedException {
    given("body", body);
    return Bodies.<Lock, T, E>run(acquire(name, options), body::run);
  }

  /**
   * Holds a lock until the stage that a body gives is completed, and releases it.
   *
   * <p>The stage is cancelled as soon as the lock is lost, or has been suspended for the grace of
   * the options, and this one then fails with LockLostException or SuspendedException. What cannot
   * be cancelled learns of it from {@link Held#lost} and {@link Held#isValid}. What the body writes
   * before it gives the stage is written only while the lock is held; what runs later opens a scope
   * with {@link Lock#guard}.
   *
   * @param name of the lock
   * @param options how to acquire and hold it
   * @param body what to do with it, on a thread of the client
   * @param <T> what body gives
   * @return what body gives, or what withLock throws; cancel it to stop waiting or the body
   */
  public <T> CompletableFuture<T> withLockAsync(
      String name, LockOptions options, Function<Lock, ? extends CompletionStage<T>> body) {
    given("body", body);
    return runHolding(acquireAsync(name, options), body);
  }

  private <H extends Excluding<?, ?>, T> CompletableFuture<T> runHolding(
      CompletableFuture<H> acquired, Function<H, ? extends CompletionStage<T>> body) {
    CompletableFuture<CompletableFuture<T>> begun =
        acquired.thenApplyAsync(held -> Bodies.runAsync(held, body), core.workers::run);
    CompletableFuture<T> result = core.workers.hand(begun.thenCompose(running -> running));
    result.whenComplete(
        (value, failure) -> {
          if (result.isCancelled() && !acquired.cancel(true)) {
            begun.thenAccept(running -> running.cancel(true));
          }
        });
    return result;
  }

  /**
   * Waits until it is the caller's turn for each of several locks. It takes its places in all
   * queues at the same moment: callers that take what they need with one acquireAll never wait for
   * each other in a circle, whatever the order of the names. While the sidecar or the ensemble is
   * away, it tries again, at the queues' end, for as long as the options say.
   *
   * @param locks 1 to 16 with names of their own
   * @param options how to acquire them
   * @return the locks, which are certainly the caller's for some time to come; release them
   * @throws InterruptedException if the thread is interrupted; all places are given up then
   * @throws LockHeldException if it was tried once, and another caller holds one of the locks or
   *     the delay of an earlier hold is kept
   * @throws WaitTimeoutException if they were not granted in time
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  public Locks acquireAll(List<WantedLock> locks, LocksOptions options)
      throws InterruptedException {
    return Waiting.await(Locks.acquire(several, leases, locks, options), Locks::giveUp);
  }

  /**
   * Does the same as {@link #acquireAll}, without a wait.
   *
   * @param locks 1 to 16 with names of their own
   * @param options how to acquire them
   * @return the locks, or what acquireAll throws; cancel it to give up all places
   */
  public CompletableFuture<Locks> acquireAllAsync(List<WantedLock> locks, LocksOptions options) {
    return core.workers.hand(Locks.acquire(several, leases, locks, options), Locks::giveUp);
  }

  /**
   * Waits for its turn, and holds the lock without a process. Closing the client does not end the
   * claim. With the id of an earlier call, the same claim answers again. While the sidecar or the
   * ensemble is away, it asks again, for as long as the options say. Without an answer, it releases
   * a claim whose id it has made, as well as can be.
   *
   * @param name of the lock
   * @param reserveFor how long the claim stands unless it is extended: 1 minute to 30 days
   * @param reason why, for people
   * @param options how to claim it
   * @return the claim
   * @throws InterruptedException if the thread is interrupted
   * @throws LockHeldException if it was tried once and another caller holds the lock
   * @throws WaitTimeoutException if it was not granted in time
   * @throws SidekeeperException with the reason CLAIM_ENDED if the claim with this id has ended, or
   *     CLAIM_LIMIT if there are too many; if the sidecar refuses it, or it or the ensemble is away
   */
  public LockClaim claim(String name, Duration reserveFor, String reason, ClaimOptions options)
      throws InterruptedException {
    boolean ours = given("options", options).claimId() == null;
    return Waiting.await(asked(name, reserveFor, reason, options), claim -> claim.withdraw(ours));
  }

  /**
   * Does the same as {@link #claim}, without a wait.
   *
   * @param name of the lock
   * @param reserveFor how long the claim stands unless it is extended
   * @param reason why, for people
   * @param options how to claim it
   * @return the claim, or what claim throws; cancel it to stop waiting
   */
  public CompletableFuture<LockClaim> claimAsync(
      String name, Duration reserveFor, String reason, ClaimOptions options) {
    boolean ours = given("options", options).claimId() == null;
    return core.workers.hand(
        asked(name, reserveFor, reason, options), claim -> claim.withdraw(ours));
  }

  private CompletableFuture<LockClaim> asked(
      String name, Duration reserveFor, String reason, ClaimOptions options) {
    Rules.time("reserveFor", given("reserveFor", reserveFor));
    @Nullable String known = options.claimId();
    byte[] bits = new byte[16];
    new SecureRandom().nextBytes(bits);
    ClaimRequest request =
        ClaimRequest.newBuilder()
            .setName(given("name", name))
            .setClaimId(known == null ? HexFormat.of().formatHex(bits) : known)
            .setMode(Wire.mode(options.mode()))
            .setReserveFor(Wire.duration(reserveFor))
            .setOwner(options.owner())
            .putAllMetadata(options.metadata())
            .setReason(given("reason", reason))
            .build();
    return LockClaim.ask(core, request, options.waitTimeout(), known == null);
  }

  /**
   * Gives the claim with an id, to extend, check or release it. It makes no call.
   *
   * @param claimId as given to {@link #claim}
   * @return the claim
   */
  public LockClaim claimById(String claimId) {
    return new LockClaim(core, claimId, "");
  }

  /**
   * Holds several locks, acquired at once, while a body runs, and releases them. The thread is
   * interrupted when they are lost, and what the body writes is guarded by all of them, as with
   * {@link #withLock}.
   *
   * @param locks 1 to 16 with names of their own
   * @param options how to acquire and hold them
   * @param body what to do with them, on the calling thread
   * @param <T> what body gives
   * @param <E> what body throws
   * @return what body gives
   * @throws E what body throws
   * @throws InterruptedException if the thread is interrupted by others
   * @throws LockLostException if the locks were lost before they were released
   * @throws SuspendedException if the body was stopped since the locks were suspended
   * @throws SidekeeperException as acquireAll and release do
   */
  public <T, E extends Exception> T withLocks(
      List<WantedLock> locks, LocksOptions options, LocksBody<T, E> body)
      throws E, InterruptedException {
    given("body", body);
    return Bodies.<Locks, T, E>run(acquireAll(locks, options), body::run);
  }

  /**
   * Holds several locks, acquired at once, until the stage that a body gives is completed, and
   * releases them, as {@link #withLockAsync} does with one.
   *
   * @param locks 1 to 16 with names of their own
   * @param options how to acquire and hold them
   * @param body what to do with them, on a thread of the client
   * @param <T> what body gives
   * @return what body gives, or what withLocks throws; cancel it to stop waiting or the body
   */
  public <T> CompletableFuture<T> withLocksAsync(
      List<WantedLock> locks,
      LocksOptions options,
      Function<Locks, ? extends CompletionStage<T>> body) {
    given("body", body);
    return runHolding(acquireAllAsync(locks, options), body);
  }

  /**
   * Does work once for a key, on the calling thread. Work that throws has failed: its exception is
   * in the record, for people. It does not promise that the work runs exactly once: if this process
   * dies within the work, another caller begins it again.
   *
   * <p>The thread is interrupted when the attempt is lost, and what the work writes with this
   * client is guarded by the attempt, as with {@link #withLock}. Work that throws after its attempt
   * was lost is lost, and has not failed; it is told as withLock tells it. Work that returns has
   * succeeded, even if its lock was lost: then that is recorded unless another attempt has begun.
   *
   * @param name of the work, for all keys
   * @param key of this piece of work: 1 to 64 letters, digits and {@code . _ -}
   * @param options how to do it
   * @param work what to do
   * @param <E> what work throws
   * @return true if it was done in this call; false if it was done before
   * @throws E what work throws
   * @throws InterruptedException if the thread is interrupted by others
   * @throws NotRepeatedException if an earlier attempt was lost or has failed, and the options
   *     allow no other
   * @throws LockLostException if the attempt was lost, and the work was stopped for that
   * @throws SupersededException if the attempt was lost, and another one has begun
   * @throws SidekeeperException as begin and {@link Attempt#finish} do
   */
  public <E extends Exception> boolean once(
      String name, String key, OnceOptions options, OnceBody<E> work)
      throws E, InterruptedException {
    given("work", work);
    Attempt attempt;
    try {
      attempt = begin(name, key, options);
    } catch (AlreadyDoneException done) {
      return false;
    }
    Bodies.<Attempt, Boolean, E>runRecorded(
        attempt,
        begun -> {
          work.run(begun);
          return true;
        });
    return true;
  }

  /**
   * Does work once for a key with the usual options; see {@link #once(String, String, OnceOptions,
   * OnceBody)}.
   *
   * @param name of the work, for all keys
   * @param key of this piece of work
   * @param work what to do
   * @param <E> what work throws
   * @return true if it was done in this call; false if it was done before
   * @throws E what work throws
   * @throws InterruptedException if the thread is interrupted by others
   */
  public <E extends Exception> boolean once(String name, String key, OnceBody<E> work)
      throws E, InterruptedException {
    return once(name, key, new OnceOptions(), work);
  }

  /**
   * Begins an attempt at work that is done once. While the sidecar or the ensemble is away, it
   * tries again, for as long as the options say.
   *
   * @param name of the work, for all keys
   * @param key of this piece of work: 1 to 64 letters, digits and {@code . _ -}
   * @param options how to do it
   * @return the attempt, which is recorded and certainly the caller's for some time to come; finish
   *     it
   * @throws InterruptedException if the thread is interrupted; the attempt is given up then
   * @throws AlreadyDoneException if the work has succeeded
   * @throws NotRepeatedException if an earlier attempt was lost or has failed, and the options
   *     allow no other
   * @throws TooManyKeysException if the name has as many records as it may have
   * @throws LockHeldException if it was tried once and another caller holds the lock
   * @throws WaitTimeoutException if it was not begun in time
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  public Attempt begin(String name, String key, OnceOptions options) throws InterruptedException {
    return Waiting.await(Attempt.begin(attempts, leases, name, key, options), Attempt::giveUp);
  }

  /**
   * Does the same as {@link #begin}, without a wait.
   *
   * @param name of the work, for all keys
   * @param key of this piece of work
   * @param options how to do it
   * @return the attempt, or what begin throws; cancel it to give up the place in the queue
   */
  public CompletableFuture<Attempt> beginAsync(String name, String key, OnceOptions options) {
    return core.workers.hand(Attempt.begin(attempts, leases, name, key, options), Attempt::giveUp);
  }

  /**
   * Waits for the next tick of a schedule, or for a run. Finish the tick, and call this again for
   * the one after. While the sidecar or the ensemble is away, it tries again, for as long as the
   * options say.
   *
   * @param name of the schedule
   * @param options how to work
   * @return the tick, whose attempt is recorded and certainly the caller's for some time to come
   * @throws InterruptedException if the thread is interrupted; a tick is given up then, and is lost
   * @throws ScheduleNotFoundException if there is no such schedule, or no longer
   * @throws ClocksDisagreeException if the clocks of sidecar and ensemble are too far apart
   * @throws LockHeldException if it was tried once and another caller is ahead
   * @throws WaitTimeoutException if nothing was due in time
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  public Tick work(String name, WorkOptions options) throws InterruptedException {
    return Waiting.await(Tick.begin(ticks, leases, name, options), Tick::giveUp);
  }

  /**
   * Waits for a tick and does its work, on the calling thread. Work that throws has failed. The
   * thread is interrupted, writes are guarded, and work counts as lost, as in {@link #once}.
   *
   * @param name of the schedule
   * @param options how to work
   * @param body what to do
   * @param <E> what body throws
   * @throws E what body throws
   * @throws InterruptedException if the thread is interrupted by others
   * @throws LockLostException if the tick was lost, and the body was stopped for that
   * @throws SupersededException if the tick was lost, and another attempt has begun
   * @throws SidekeeperException as the other work and {@link Tick#finish} do
   */
  public <E extends Exception> void work(String name, WorkOptions options, TickBody<E> body)
      throws E, InterruptedException {
    given("body", body);
    Bodies.<Tick, Boolean, E>runRecorded(
        work(name, options),
        tick -> {
          body.run(tick);
          return true;
        });
  }

  /**
   * Does the same as {@link #work(String, WorkOptions)}, without a wait.
   *
   * @param name of the schedule
   * @param options how to work
   * @return the tick, or what work throws; cancel it to give up the place in the queue
   */
  public CompletableFuture<Tick> workAsync(String name, WorkOptions options) {
    return core.workers.hand(Tick.begin(ticks, leases, name, options), Tick::giveUp);
  }

  /**
   * Works on the caller's part of the items of a set until what it returns is closed. The members
   * of the set divide the items among themselves.
   *
   * <p>For each item of the caller, the handler runs on a thread of its own while the item's lock
   * is held; what it writes there with this client is guarded by the lock. The thread is
   * interrupted when the item moves to another member, when the lock is lost or its release is
   * asked for, and when the share is closed. The lock is released when the handler has ended,
   * however long that takes. A handler that ends earlier is run again after 1 second, then 2, up to
   * a minute. When the membership is lost, and the lease is not given, the caller joins again after
   * such a pause.
   *
   * @param set its name
   * @param options how to share
   * @param handler works on an item
   * @return the share, which begins by itself; close it, or wait for its end with {@link
   *     Share#await}, which also tells what the sidecar refuses
   */
  public Share share(String set, ShareOptions options, ItemHandler handler) {
    return Share.begin(this, shares, set, options, handler);
  }

  /**
   * Runs a body whenever it holds the lock, until body ends and has not lost it. Body is
   * interrupted when the lock is lost, and is run again after the next grant. It waits for a
   * sidecar or an ensemble that is away.
   *
   * @param name of the lock
   * @param options how to acquire and hold it
   * @param body what to do as the leader, on the calling thread
   * @param <T> what body gives
   * @param <E> what body throws
   * @return what body gives
   * @throws E what body throws while it leads
   * @throws InterruptedException if the thread is interrupted by others
   * @throws SuspendedException if the body was stopped since the lock was suspended
   * @throws SidekeeperException if the sidecar refuses the lock
   */
  public <T, E extends Exception> T runWhileLeader(
      String name, LockOptions options, Body<T, E> body) throws E, InterruptedException {
    return new Leading<>(this, name, options, given("body", body)).run();
  }

  /**
   * Shows who holds the lock and who waits for it.
   *
   * @param name of the lock
   * @return the view
   * @throws InterruptedException if the thread is interrupted
   * @throws SidekeeperException if the sidecar or the ensemble is away
   */
  public LockView getLock(String name) throws InterruptedException {
    GetRequest request = GetRequest.newBuilder().setName(given("name", name)).build();
    return Wire.lockView(
        Waiting.await(core.calls.insist(LockServiceGrpc.getGetMethod(), request)).getView(), false);
  }

  /**
   * Shows the same as {@link #getLock}, at once and whenever it has changed, also across restarts
   * of the sidecar. Until the sidecar and the ensemble are back, the last view is stale, and is
   * shown again as such.
   *
   * @param name of the lock
   * @return the views; close it
   */
  public Watch<LockView> watchLock(String name) {
    return new Watch<>(
        core,
        LockServiceGrpc.getWatchMethod(),
        WatchRequest.newBuilder()
            .setName(given("name", name))
            .setKeepalive(Watch.KEEPALIVE)
            .build(),
        lockViews());
  }

  /**
   * Says who holds the lock first, at once and whenever that has changed. It does not say when that
   * may be out of date; {@link #observe} does.
   *
   * @param name of the lock
   * @return the leaders, empty while the lock has no holder; close it
   */
  public Watch<Optional<Contender>> watchLeader(String name) {
    LeaderChanges changes = new LeaderChanges();
    Views<WatchResponse, LockView> views = lockViews();
    return new Watch<>(
        core,
        LockServiceGrpc.getWatchMethod(),
        WatchRequest.newBuilder()
            .setName(given("name", name))
            .setKeepalive(Watch.KEEPALIVE)
            .build(),
        (message, silent) -> changes.of(views.of(message, silent)));
  }

  private static Views<WatchResponse, LockView> lockViews() {
    return new Views<>(
        (message, stale) -> Wire.lockView(message.getView(), stale), WatchResponse::getStale);
  }

  /**
   * Says whether the ticket's hold lasts, for a program that protects something stored elsewhere.
   * The hold may have ended since: a resource that can compare tokens should refuse all but the
   * largest that it has seen.
   *
   * @param ticket that was sent along
   * @return how it stands with the hold
   * @throws InterruptedException if the thread is interrupted
   * @throws SidekeeperException if the sidecar or the ensemble is away
   */
  public Verification verify(Ticket ticket) throws InterruptedException {
    VerifyRequest request =
        VerifyRequest.newBuilder()
            .setTicket(
                io.sidekeeper.hold.v1.Ticket.newBuilder()
                    .setLock(given("ticket", ticket).lock())
                    .setFencingToken(ticket.fencingToken()))
            .build();
    VerifyResponse reply =
        Waiting.await(core.calls.insist(FencingServiceGrpc.getVerifyMethod(), request));
    return new Verification(reply.getHeld(), reply.getCurrentToken());
  }

  /**
   * Says what locks are held with: each as soon as it is known, and again whenever it has changed,
   * also across restarts of the sidecar. Of one lock no smaller token comes after a larger one.
   *
   * @param locks the names of 1 to 100 locks, none of them twice
   * @return what is known anew; close it
   */
  public Watch<List<CurrentToken>> watchTokens(String... locks) {
    TokenChanges changes = new TokenChanges();
    return new Watch<>(
        core,
        FencingServiceGrpc.getWatchMethod(),
        io.sidekeeper.fencing.v1.WatchRequest.newBuilder()
            .addAllLocks(Rules.all("locks", Arrays.asList(given("locks", locks))))
            .setKeepalive(Watch.KEEPALIVE)
            .build(),
        (message, silent) -> changes.of(message));
  }

  /**
   * Asks every holder of the lock to let go.
   *
   * @param name of the lock
   * @param reason why, for the holders; at most 256 bytes
   * @param grace when it is over, the holds end by force, which is for operators; null for never
   * @return how many were asked
   * @throws InterruptedException if the thread is interrupted; they may be asked then
   * @throws SidekeeperException if they are not known to be asked
   */
  public int revoke(String name, String reason, @Nullable Duration grace)
      throws InterruptedException {
    RevokeRequest.Builder request =
        RevokeRequest.newBuilder().setName(given("name", name)).setReason(given("reason", reason));
    Rules.time("grace", grace);
    if (grace != null) {
      request.setGrace(Wire.duration(grace));
    }
    return Waiting.await(core.calls.insist(LockServiceGrpc.getRevokeMethod(), request.build()))
        .getAsked();
  }

  /**
   * Waits for its turn to lead an election. While the sidecar or the ensemble is away, it tries
   * again, as the last candidate, for as long as the options say.
   *
   * @param election its name
   * @param candidate who campaigns: 1 to 128 bytes, another one for each candidate
   * @param options how to campaign
   * @return the term, for which the caller certainly leads for some time to come; resign
   * @throws InterruptedException if the thread is interrupted; the candidacy is given up then
   * @throws WaitTimeoutException if the caller was not elected in time
   * @throws SidekeeperException if the sidecar refuses it, with the reasons LOCK_HELD if it was
   *     tried once, LOCK_KIND_MISMATCH and others, or it or the ensemble is away
   */
  public Leadership campaign(String election, String candidate, CampaignOptions options)
      throws InterruptedException {
    return Waiting.await(
        Leadership.campaign(candidacies, leases, election, candidate, options), Leadership::giveUp);
  }

  /**
   * Does the same as {@link #campaign}, without a wait.
   *
   * @param election its name
   * @param candidate who campaigns
   * @param options how to campaign
   * @return the term, or what campaign throws; cancel it to give up the candidacy
   */
  public CompletableFuture<Leadership> campaignAsync(
      String election, String candidate, CampaignOptions options) {
    return core.workers.hand(
        Leadership.campaign(candidacies, leases, election, candidate, options), Leadership::giveUp);
  }

  /**
   * Shows who leads an election and who the other candidates are.
   *
   * @param name of the election
   * @return the view
   * @throws InterruptedException if the thread is interrupted
   * @throws SidekeeperException if the sidecar or the ensemble is away
   */
  public ElectionView getElection(String name) throws InterruptedException {
    var request =
        io.sidekeeper.election.v1.GetRequest.newBuilder().setName(given("name", name)).build();
    return ElectionView.of(
        Waiting.await(core.calls.insist(ElectionServiceGrpc.getGetMethod(), request)));
  }

  /**
   * Says who leads an election, at once and whenever that or the leader's value has changed, also
   * across restarts of the sidecar: until it is back, what was said is stale. After a term, it
   * never says an earlier one.
   *
   * @param name of the election
   * @return what is known; close it
   */
  public Watch<Observation> observe(String name) {
    Observer observer = new Observer();
    return new Watch<>(
        core,
        ElectionServiceGrpc.getWatchMethod(),
        io.sidekeeper.election.v1.WatchRequest.newBuilder()
            .setName(given("name", name))
            .setKeepalive(Watch.KEEPALIVE)
            .build(),
        (message, silent) -> observer.learn(message));
  }

  /**
   * Asks the leader to yield to a candidate, after the candidates ahead of that one have stepped
   * back.
   *
   * @param name of the election
   * @param to the candidate that shall lead next
   * @param reason why, for the leader; at most 256 bytes
   * @param grace when it is over, the leader's term ends by force, which is for operators; null for
   *     never
   * @throws InterruptedException if the thread is interrupted; the leader may be asked then
   * @throws SidekeeperException with the reasons CANDIDATE_NOT_FOUND and FOREIGN_CANDIDATE; if the
   *     leader is not known to be asked
   */
  public void transferLeadership(String name, String to, String reason, @Nullable Duration grace)
      throws InterruptedException {
    TransferRequest.Builder request =
        TransferRequest.newBuilder()
            .setName(given("name", name))
            .setTo(given("to", to))
            .setReason(given("reason", reason));
    Rules.time("grace", grace);
    if (grace != null) {
      request.setGrace(Wire.duration(grace));
    }
    Waiting.await(core.calls.insist(ElectionServiceGrpc.getTransferMethod(), request.build()));
  }

  /**
   * Waits for permits of a semaphore. While the sidecar or the ensemble is away, it tries again, at
   * the queue's end, for as long as the options say.
   *
   * @param semaphore its name
   * @param options how many, and how to acquire them
   * @return the permits, which are certainly the caller's for some time to come; release them
   * @throws InterruptedException if the thread is interrupted; the place in the queue is given up
   *     then
   * @throws WaitTimeoutException if they were not granted in time
   * @throws SidekeeperException if the sidecar refuses it, with the reasons SEMAPHORE_FULL if it
   *     was tried once, TOO_MANY_PERMITS, SEMAPHORE_NOT_FOUND and others, or it or the ensemble is
   *     away
   */
  public Permits acquirePermits(String semaphore, PermitsOptions options)
      throws InterruptedException {
    return Waiting.await(Permits.acquire(permits, leases, semaphore, options), Permits::giveUp);
  }

  /**
   * Does the same as {@link #acquirePermits}, without a wait.
   *
   * @param semaphore its name
   * @param options how many, and how to acquire them
   * @return the permits, or what acquirePermits throws; cancel it to give up the place in the queue
   */
  public CompletableFuture<Permits> acquirePermitsAsync(String semaphore, PermitsOptions options) {
    return core.workers.hand(Permits.acquire(permits, leases, semaphore, options), Permits::giveUp);
  }

  /**
   * Makes a semaphore. Making it again does nothing.
   *
   * @param name of the semaphore
   * @param limit how many permits there are: 1 to 10,000
   * @throws InterruptedException if the thread is interrupted; it may be made then
   * @throws SidekeeperException with the reason SEMAPHORE_EXISTS if it has another limit; if the
   *     sidecar or the ensemble is away
   */
  public void createSemaphore(String name, int limit) throws InterruptedException {
    CreateRequest request =
        CreateRequest.newBuilder().setName(given("name", name)).setLimit(limit).build();
    Waiting.await(core.calls.insist(SemaphoreServiceGrpc.getCreateMethod(), request));
  }

  /**
   * Sets how many permits there are, and asks the holders of those that are too many to let go:
   * those with a number beyond it first, then those granted last.
   *
   * @param name of the semaphore
   * @param limit how many permits there are from now on: 1 to 10,000
   * @param reason why, for the holders; at most 256 bytes
   * @param grace when it is over, their holds end by force, which is for operators; null for never
   * @return of how many permits the holders were asked
   * @throws InterruptedException if the thread is interrupted; they may be asked then
   * @throws SidekeeperException if they are not known to be asked
   */
  public int resizeSemaphore(String name, int limit, String reason, @Nullable Duration grace)
      throws InterruptedException {
    ResizeRequest.Builder request =
        ResizeRequest.newBuilder()
            .setName(given("name", name))
            .setLimit(limit)
            .setReason(given("reason", reason));
    Rules.time("grace", grace);
    if (grace != null) {
      request.setGrace(Wire.duration(grace));
    }
    return Waiting.await(core.calls.insist(SemaphoreServiceGrpc.getResizeMethod(), request.build()))
        .getAsked();
  }

  /**
   * Shows who holds permits of a semaphore, who waits for some, and which numbers rest.
   *
   * @param name of the semaphore
   * @return the view
   * @throws InterruptedException if the thread is interrupted
   * @throws SidekeeperException if there is none, or the sidecar or the ensemble is away
   */
  public SemaphoreView getSemaphore(String name) throws InterruptedException {
    var request =
        io.sidekeeper.semaphore.v1.GetRequest.newBuilder().setName(given("name", name)).build();
    return SemaphoreView.of(
        Waiting.await(core.calls.insist(SemaphoreServiceGrpc.getGetMethod(), request)).getView(),
        false);
  }

  /**
   * Shows the same as {@link #getSemaphore}, at once and whenever it has changed, also across
   * restarts of the sidecar. Stale as in {@link #watchLock}.
   *
   * @param name of the semaphore
   * @return the views; close it
   */
  public Watch<SemaphoreView> watchSemaphore(String name) {
    return new Watch<>(
        core,
        SemaphoreServiceGrpc.getWatchMethod(),
        io.sidekeeper.semaphore.v1.WatchRequest.newBuilder()
            .setName(given("name", name))
            .setKeepalive(Watch.KEEPALIVE)
            .build(),
        new Views<io.sidekeeper.semaphore.v1.WatchResponse, SemaphoreView>(
            (message, stale) -> SemaphoreView.of(message.getView(), stale),
            io.sidekeeper.semaphore.v1.WatchResponse::getStale));
  }

  /**
   * Sets a barrier, at which {@link #awaitBarrier(String)} waits until it is removed. Setting it
   * again does nothing.
   *
   * @param name of the barrier
   * @throws InterruptedException if the thread is interrupted; it may be set then
   * @throws SidekeeperException with the reason NAME_IS_DIRECTORY if callers stand at a double
   *     barrier of this name; if the sidecar or the ensemble is away
   */
  public void setBarrier(String name) throws InterruptedException {
    SetRequest request = SetRequest.newBuilder().setName(given("name", name)).build();
    Waiting.await(core.calls.insist(BarrierServiceGrpc.getSetMethod(), request));
  }

  /**
   * Removes a barrier: the callers that wait at it go on. Removing one that is not set does
   * nothing.
   *
   * @param name of the barrier
   * @throws InterruptedException if the thread is interrupted; it may be removed then
   * @throws SidekeeperException with the reason NAME_IS_DIRECTORY if callers stand at a double
   *     barrier of this name; if it is not known to be removed
   */
  public void removeBarrier(String name) throws InterruptedException {
    RemoveRequest request = RemoveRequest.newBuilder().setName(given("name", name)).build();
    Waiting.await(core.calls.attempt(BarrierServiceGrpc.getRemoveMethod(), request));
  }

  /**
   * Waits until a barrier is not set, for as long as it takes.
   *
   * @param name of the barrier
   * @throws InterruptedException if the thread is interrupted
   * @throws SidekeeperException if the sidecar refuses it
   */
  public void awaitBarrier(String name) throws InterruptedException {
    awaitBarrier(name, null, () -> {});
  }

  /**
   * Waits until a barrier is not set, or was not at a moment since the call. While the sidecar or
   * the ensemble is away, it waits anew.
   *
   * @param name of the barrier
   * @param waitTimeout how long to wait, more than zero; null for ever
   * @param waiting is called, on a thread of the client, when it is known that the barrier is set
   * @throws InterruptedException if the thread is interrupted
   * @throws WaitTimeoutException if there was no such moment in time, as far as is known
   * @throws SidekeeperException if the sidecar refuses it
   */
  public void awaitBarrier(String name, @Nullable Duration waitTimeout, Runnable waiting)
      throws InterruptedException {
    Waiting.await(BarrierWait.begin(core, name, waitTimeout, waiting));
  }

  /**
   * Does the same as {@link #awaitBarrier(String, Duration, Runnable)}, without a wait.
   *
   * @param name of the barrier
   * @param waitTimeout how long to wait, more than zero; null for ever
   * @param waiting is called, on a thread of the client, when it is known that the barrier is set
   * @return a stage that is completed when the barrier is not set, or fails as awaitBarrier does;
   *     cancel it to wait no longer
   */
  public CompletableFuture<Void> awaitBarrierAsync(
      String name, @Nullable Duration waitTimeout, Runnable waiting) {
    return core.workers.hand(BarrierWait.begin(core, name, waitTimeout, waiting));
  }

  /**
   * Waits until so many callers stand at a double barrier, and enters it with them. While the
   * sidecar or the ensemble is away, it tries again for as long as the options say.
   *
   * @param barrier its name
   * @param size how many enter together, this one among them: 1 to 1,000, and the same for all
   * @param options how to enter
   * @return the entry, whose caller is certainly inside for some time to come; leave
   * @throws InterruptedException if the thread is interrupted; the others do not wait for the
   *     caller then
   * @throws WaitTimeoutException if there were not enough in time
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  public BarrierEntry enterBarrier(String barrier, int size, BarrierOptions options)
      throws InterruptedException {
    return Waiting.await(
        BarrierEntry.enter(entries, leases, barrier, size, options), BarrierEntry::giveUp);
  }

  /**
   * Does the same as {@link #enterBarrier}, without a wait.
   *
   * @param barrier its name
   * @param size how many enter together
   * @param options how to enter
   * @return the entry, or what enterBarrier throws; cancel it to go away from the barrier
   */
  public CompletableFuture<BarrierEntry> enterBarrierAsync(
      String barrier, int size, BarrierOptions options) {
    return core.workers.hand(
        BarrierEntry.enter(entries, leases, barrier, size, options), BarrierEntry::giveUp);
  }

  /**
   * Gives access to a sequence.
   *
   * @param name of the sequence, which need not exist
   * @return the sequence
   */
  public Sequence sequence(String name) {
    return new Sequence(core, given("name", name));
  }

  /**
   * Gives access to the configuration.
   *
   * @return the configuration
   */
  public Config config() {
    return config;
  }

  /**
   * Makes the caller a member of a group, and returns when others can see it. It waits for a
   * sidecar or an ensemble that is away, as long as the options say. Where a lock guards what this
   * thread writes, it joins only while that is held, and stays a member after that; otherwise it is
   * GuardLostException (see {@link Lock#guard}).
   *
   * @param group to join
   * @param member the caller's name in it
   * @param options how
   * @return the membership; leave it
   * @throws InterruptedException if the thread is interrupted; the caller is no member then
   * @throws MemberExistsException if there is a member of this name
   * @throws WaitTimeoutException if the name was not free in time
   * @throws SidekeeperException if the sidecar refuses it, or it or the ensemble is away
   */
  public Membership join(String group, String member, JoinOptions options)
      throws InterruptedException {
    return Waiting.await(joining(group, member, options), Membership::giveUp);
  }

  /**
   * Does the same as {@link #join}, without a wait.
   *
   * @param group to join
   * @param member the caller's name in it
   * @param options how
   * @return the membership, or what join throws; cancel it to give up
   */
  public CompletableFuture<Membership> joinAsync(String group, String member, JoinOptions options) {
    return core.workers.hand(joining(group, member, options), Membership::giveUp);
  }

  private CompletableFuture<Membership> joining(String group, String member, JoinOptions options) {
    return Membership.join(members, leases, group, member, options);
  }

  /**
   * Is a member of the group until what it returns is closed, and joins again when the lease was
   * lost. A member of its name that is still there from before is waited for. No lock guards that.
   * It returns when the caller is a member for the first time.
   *
   * @param group to join
   * @param member the caller's name in it
   * @param options who joins; without a lease, and what to do on conflict is ignored
   * @param joined is called each time, on a thread of its own
   * @return what to close in order to leave
   * @throws InterruptedException if the thread is interrupted
   * @throws LostException if another caller replaces or removes it before that
   * @throws SidekeeperException if the sidecar refuses it
   */
  public StayingMember stayJoined(
      String group, String member, JoinOptions options, Consumer<Membership> joined)
      throws InterruptedException {
    given("options", options);
    given("joined", joined);
    return StayingMember.join(this, group, member, options, joined);
  }

  /**
   * Shows who is in the group.
   *
   * @param group its name
   * @return the view
   * @throws InterruptedException if the thread is interrupted
   * @throws SidekeeperException if the sidecar or the ensemble is away
   */
  public GroupView getGroup(String group) throws InterruptedException {
    var request =
        io.sidekeeper.membership.v1.GetRequest.newBuilder().setGroup(given("group", group)).build();
    var reply = Waiting.await(core.calls.insist(MembershipServiceGrpc.getGetMethod(), request));
    return Wire.groupView(reply.getView(), false);
  }

  /**
   * Shows the same as {@link #getGroup}, at once and whenever it has changed, also across restarts
   * of the sidecar. Stale as in {@link #watchLock}.
   *
   * @param group its name
   * @return the views; close it
   */
  public Watch<GroupView> watchGroup(String group) {
    return new Watch<>(
        core,
        MembershipServiceGrpc.getWatchMethod(),
        io.sidekeeper.membership.v1.WatchRequest.newBuilder()
            .setGroup(given("group", group))
            .setKeepalive(Watch.KEEPALIVE)
            .build(),
        new Views<io.sidekeeper.membership.v1.WatchResponse, GroupView>(
            (message, stale) -> Wire.groupView(message.getView(), stale),
            io.sidekeeper.membership.v1.WatchResponse::getStale));
  }
}
