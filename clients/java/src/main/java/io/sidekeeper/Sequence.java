package io.sidekeeper;

import io.sidekeeper.errors.GuardLostException;
import io.sidekeeper.errors.OutcomeUnknownException;
import io.sidekeeper.errors.SequenceExistsException;
import io.sidekeeper.errors.SequenceNotFoundException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.sequence.v1.CreateRequest;
import io.sidekeeper.sequence.v1.DeleteRequest;
import io.sidekeeper.sequence.v1.GetRequest;
import io.sidekeeper.sequence.v1.NextRequest;
import io.sidekeeper.sequence.v1.Ordering;
import io.sidekeeper.sequence.v1.SequenceServiceGrpc;
import java.util.PrimitiveIterator;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;

/**
 * Hands out numbers, each once. Costs nothing to make.
 *
 * <p>Its calls take up to ten seconds while the sidecar or the ensemble is away. After an error
 * another attempt to get numbers is safe: at worst it skips some.
 */
public final class Sequence {
  private final Core core;
  private final Calls calls;
  private final String name;

  Sequence(Core core, String name) {
    this.core = core;
    this.calls = core.calls;
    this.name = name;
  }

  /**
   * Hands out a number.
   *
   * @return a number that is larger than all that had been handed out, through whichever sidecar,
   *     when it was asked for
   * @throws InterruptedException if the thread is interrupted; a number may be skipped then
   * @throws GuardLostException if a hold that guards it has ended (see {@link Lock#guard})
   * @throws SequenceNotFoundException if there is no such sequence
   * @throws SidekeeperException with the reason SEQUENCE_EXHAUSTED if no number is left up to
   *     2^63−1, or SEQUENCE_MALFORMED if what is stored under the name is no sequence; otherwise if
   *     the sidecar or the ensemble is away
   */
  public long next() throws InterruptedException {
    return nextRange(1).first();
  }

  /**
   * Does the same as {@link #next}, without a wait.
   *
   * @return the number, or what next throws
   */
  public CompletableFuture<Long> nextAsync() {
    return calls.hand(range(1, Ordering.ORDERING_STRICT).thenApply(Numbers::first));
  }

  /**
   * Hands out several numbers at once, in order, as {@link #next} does.
   *
   * @param count how many: 1 to 1,000,000
   * @return the numbers
   * @throws InterruptedException if the thread is interrupted; numbers may be skipped then
   * @throws SidekeeperException as next throws
   */
  public Numbers nextRange(int count) throws InterruptedException {
    return Waiting.await(range(count, Ordering.ORDERING_STRICT));
  }

  /**
   * Hands out several numbers at once that are unique and in no certain order, which is faster.
   *
   * @param count how many: 1 to 1,000,000
   * @return the numbers
   * @throws InterruptedException if the thread is interrupted; numbers may be skipped then
   * @throws SidekeeperException as next throws
   */
  public Numbers nextRelaxedRange(int count) throws InterruptedException {
    return Waiting.await(range(count, Ordering.ORDERING_RELAXED));
  }

  private CompletableFuture<Numbers> range(int count, Ordering ordering) {
    NextRequest.Builder request =
        NextRequest.newBuilder().setName(name).setCount(count).setOrdering(ordering);
    if (ordering == Ordering.ORDERING_STRICT) {
      request.addAllGuards(GuardScope.guards(core));
    }
    return calls
        .insist(SequenceServiceGrpc.getNextMethod(), request.build())
        .thenApply(reply -> new Numbers(reply.getFirst(), reply.getLast(), reply.getIncarnation()));
  }

  /**
   * Gives numbers without an end, unique and in no certain order. Those taken ahead and not used
   * are never handed out again. It is for one thread at a time.
   *
   * @param ahead how many are taken at a time: 1 to 1,000,000
   * @return an iterator that throws what next throws; CancellationException if the thread is
   *     interrupted, and stays so
   */
  public PrimitiveIterator.OfLong numbers(int ahead) {
    return new Stock(ahead);
  }

  private final class Stock implements PrimitiveIterator.OfLong {
    private final int ahead;
    private long next = 1;
    private long last;

    Stock(int ahead) {
      this.ahead = ahead;
    }

    @Override
    public boolean hasNext() {
      return true;
    }

    /** Throws {@link CancellationException} if the thread is interrupted. */
    @Override
    public long nextLong() {
      if (last - next < 0) { // also where the numbers wrap around
        Numbers taken = Waiting.awaitUnchecked(range(ahead, Ordering.ORDERING_RELAXED));
        next = taken.first();
        last = taken.last();
      }
      return next++;
    }
  }

  /**
   * Makes the sequence.
   *
   * @param first the first number to be handed out, from −2^63+1
   * @return its incarnation, which tells it from earlier and later ones of the same name
   * @throws InterruptedException if the thread is interrupted; it may be made then
   * @throws SequenceExistsException if there is one already
   * @throws OutcomeUnknownException if it may have been made
   * @throws SidekeeperException if it was not made
   */
  public long create(long first) throws InterruptedException {
    CreateRequest request = CreateRequest.newBuilder().setName(name).setFirst(first).build();
    return Waiting.await(calls.attempt(SequenceServiceGrpc.getCreateMethod(), request))
        .getIncarnation();
  }

  /**
   * Says how far the sequence is.
   *
   * @return the last number that was handed out or reserved
   * @throws InterruptedException if the thread is interrupted
   * @throws SequenceNotFoundException if there is no such sequence
   * @throws SidekeeperException with the reason SEQUENCE_MALFORMED if what is stored under the name
   *     is no sequence; otherwise if the sidecar or the ensemble is away
   */
  public SequenceState get() throws InterruptedException {
    GetRequest request = GetRequest.newBuilder().setName(name).build();
    var reply = Waiting.await(calls.insist(SequenceServiceGrpc.getGetMethod(), request));
    return new SequenceState(reply.getLastIssued(), reply.getIncarnation());
  }

  /**
   * Removes the sequence.
   *
   * @throws InterruptedException if the thread is interrupted; it may be gone then
   * @throws SequenceNotFoundException if there is no such sequence
   * @throws OutcomeUnknownException if it may be gone
   * @throws SidekeeperException if it was not removed
   */
  public void delete() throws InterruptedException {
    DeleteRequest request = DeleteRequest.newBuilder().setName(name).build();
    Waiting.await(calls.attempt(SequenceServiceGrpc.getDeleteMethod(), request));
  }
}
