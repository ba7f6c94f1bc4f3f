package io.sidekeeper;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.Status;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.Told;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What a caller holds by a stream, whatever it is: a call of its own, or a part of its lease's
 * stream. It is opened, something is granted on it, its validity is checked, it is suspended and
 * resumed, and it ends with a reason, which is acknowledged. No recipe is named here: each is a
 * thin type on top.
 */
abstract class HeldStream<Q extends Message, R extends Message> extends Held {
  private static final int GIVE_UP_ATTEMPTS = 3;
  private static final Duration GIVE_UP_TIMEOUT = Duration.ofSeconds(5);

  private final Kind<Q, R> kind;
  private final @Nullable Lease ground;
  private final CompletableFuture<Void> followed = new CompletableFuture<>();
  private Calls.Open stream = () -> {};
  private Consumer<Boolean> whenSuspended = suspended -> {};
  private volatile String key = "";
  private volatile boolean released;
  private @Nullable CompletableFuture<Void> givingUp;

  /**
   * It ends with its ground. Without a keeper, and where the ground's stream carries it, it is
   * valid for as long as that is.
   */
  HeldStream(
      Kind<Q, R> kind,
      String what,
      BiFunction<String, SidekeeperException, LostException> loss,
      @Nullable Lease ground) {
    super(kind.core(), new Claim(kind.core().monitor, what, loss, lender(kind, ground)));
    this.kind = kind;
    this.ground = ground;
  }

  private static @Nullable Claim lender(Kind<?, ?> kind, @Nullable Lease ground) {
    boolean own = kind.keeper() != null && carrier(kind, ground) == null;
    return ground == null || own ? null : ground.claim;
  }

  /** The stream of a lease of the same client, which carries its requests; null for others. */
  private static @Nullable Multiplex carrier(Kind<?, ?> kind, @Nullable Lease ground) {
    return ground == null || ground.core != kind.core() ? null : ground.multiplex;
  }

  /** The lease that a request must name. */
  final String leaseId() {
    return ground == null || carrier(kind, ground) != null ? "" : ground.id();
  }

  /** Takes in the event that grants it, and returns the key by which later calls name it. */
  abstract String grant(R event);

  /** Is called with every event, when the core has taken it in. */
  void notice(R event) {}

  /** Is called when it is granted and valid. */
  void begun() {}

  /** Is called when its stream has ended; with null, as the caller wished. */
  void ended(@Nullable SidekeeperException failure) {}

  /**
   * Opens the stream, and reads it until its end, which is the end of the claim. Completed when it
   * is granted and valid. Each event is heard first.
   */
  final CompletableFuture<Void> open(Q request, Runnable heard) {
    CompletableFuture<Void> granted = new CompletableFuture<>();
    stream =
        begin(
            request,
            event -> {
              if (Watch.isKeepalive(event)) {
                return;
              }
              heard.run();
              hear(event);
              if (!key.isEmpty()) {
                granted.complete(null);
              }
            },
            failure -> {
              streamEnded(failure);
              granted.completeExceptionally(failure == null ? silent() : failure);
            });
    claim.streamsOver(stream::cancel);
    core.open.add(this);
    followed.thenRun(() -> core.open.remove(this));
    if (ground != null) {
      claim.dependsOn(ground.claim);
    }
    Keeper keeper = claim.isLent() ? null : kind.keeper();
    CompletableFuture<Void> valid =
        keeper == null
            ? granted.thenRun(this::lent)
            : granted.thenCompose(first -> keeper.begin(key, claim));
    return valid.thenRun(this::begun);
  }

  /** Opens the stream. */
  Calls.Open begin(Q request, Consumer<R> heard, Calls.Ended ended) {
    Multiplex carrier = carrier(kind, ground);
    Kind.Carried<Q, R> carried = kind.carried();
    return carrier == null || carried == null
        ? core.calls.open(kind.open(), Watch.withKeepalive(request), false, heard, ended)
        : carrier.start(carried.start().apply(request), carried.event(), heard, ended);
  }

  private void lent() {
    claim.validFor(); // which ends what it counts on when that has run out
    LostException lost = claim.lost();
    if (lost != null) {
      throw lost;
    }
  }

  private void hear(R event) {
    var oneof = event.getDescriptorForType().getOneofs().get(0);
    FieldDescriptor field = event.getOneofFieldDescriptor(oneof);
    String name = field == null ? "" : field.getName(); // empty of what is newer than this client
    if (key.isEmpty() && name.equals(kind.granted())) {
      key = grant(event);
    } else if (name.equals("suspended") || name.equals("resumed")) {
      suspend(name.equals("suspended"));
    }
    notice(event);
  }

  private void suspend(boolean suspended) {
    synchronized (core.monitor) {
      if (claim.isSuspended() != suspended) {
        claim.setSuspended(suspended);
        whenSuspended.accept(suspended);
      }
    }
  }

  /**
   * Has a listener told whether it is suspended, now and whenever that changes. It must be quick.
   */
  final void whenSuspended(Consumer<Boolean> listener) {
    synchronized (core.monitor) {
      whenSuspended = listener;
      listener.accept(claim.isSuspended());
    }
  }

  private void streamEnded(@Nullable SidekeeperException failure) {
    if (failure == null) {
      claim.end(null);
    } else {
      claim.lose(failure);
    }
    followed.complete(null);
    ended(failure);
    Kind.GiveUp giveUp = kind.giveUp();
    if (kind.acknowledged() && giveUp != null && !key.isEmpty() && claim.lost() != null) {
      core.acknowledge(key, giveUp);
    }
  }

  private static SidekeeperException silent() {
    return new SidekeeperException(
        Status.Code.UNAVAILABLE, "", new Told("the sidecar ended the stream without a reason"));
  }

  /** Says whether nothing more is told of it. */
  final boolean isStreamOver() {
    return followed.isDone();
  }

  /**
   * Says why it is over for the caller, who has not released it: lost, or released by its id
   * elsewhere. Null if the caller has, and as long as it is not over.
   */
  final @Nullable LostException whyOver() {
    LostException lost = claim.lost();
    if (lost != null || released || !claim.isOver()) {
      return lost;
    }
    return claim.asLost(
        new SidekeeperException(Status.Code.ABORTED, "", new Told("it was released elsewhere")));
  }

  /** Gives it up without a word, when it was not handed out yet. */
  final CompletableFuture<Void> abandon() {
    claim.abandon(null);
    return followed;
  }

  /**
   * Has the sidecar confirm that it is given up, once. Fails with LostException if it was lost
   * before.
   */
  final CompletableFuture<Void> givingUp() {
    return once(
        () -> {
          LostException lost = claim.lost();
          CompletableFuture<Void> asked = new CompletableFuture<>();
          if (lost == null) {
            askToTakeBack(1, asked);
          } else {
            asked.completeExceptionally(lost);
          }
          Runnable forget =
              core.calls.atClose(() -> asked.completeExceptionally(notConfirmed(Calls.closed())));
          return asked.whenComplete(
              (nothing, failure) -> {
                forget.run();
                claim.abandon(null);
              });
        });
  }

  /** Says whether the caller has begun to give it up. */
  final synchronized boolean isGivenUp() {
    return givingUp != null;
  }

  /** Ends it for the caller, and does the rest of giving it up once. */
  final CompletableFuture<Void> once(Supplier<CompletableFuture<Void>> rest) {
    if (!claim.isOver()) {
      released = true;
    }
    claim.end(null);
    synchronized (this) {
      if (givingUp == null) {
        givingUp = rest.get();
      }
      return givingUp.copy();
    }
  }

  private void askToTakeBack(int attempt, CompletableFuture<Void> asked) {
    Kind.GiveUp giveUp = kind.giveUp();
    CompletableFuture<?> answer =
        giveUp == null
            ? CompletableFuture.completedFuture(null)
            : stream.giveUp(giveUp, key, GIVE_UP_TIMEOUT);
    answer.whenComplete(
        (reply, failure) -> {
          if (failure == null) {
            asked.complete(null);
          } else if (!(Waiting.unwrap(failure) instanceof SidekeeperException known)) {
            asked.completeExceptionally(failure);
          } else if (attempt < GIVE_UP_ATTEMPTS && isUnanswered(known)) {
            Duration rest = Duration.ofMillis(ThreadLocalRandom.current().nextInt(50, 100));
            core.workers.after(rest, () -> askToTakeBack(attempt + 1, asked));
          } else {
            asked.completeExceptionally(notConfirmed(known));
          }
        });
  }

  /**
   * Says what the caller is told when the sidecar was asked to take it back, and has not confirmed
   * that. It is never the failure itself: a caller that retries a call must not repeat the work.
   */
  final RuntimeException notConfirmed(SidekeeperException failure) {
    if (failure.code() == Status.Code.ABORTED) {
      return claim.asLost(failure);
    }
    String reason = failure.reason().isEmpty() ? failure.code().name() : failure.reason();
    return SidekeeperException.named(
        "RELEASE_UNCONFIRMED",
        "%s: the work has ended, but its release is not confirmed: %s: %s"
            .formatted(claim.what, reason, failure.getMessage()));
  }

  private static boolean isUnanswered(SidekeeperException failure) {
    boolean silence =
        failure.code() == Status.Code.UNAVAILABLE
            || failure.code() == Status.Code.DEADLINE_EXCEEDED;
    return silence && failure.reason().isEmpty();
  }
}
