package io.sidekeeper;

import com.google.protobuf.Message;
import io.sidekeeper.errors.GuardLostException;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.hold.v1.Guard;
import java.time.Duration;
import java.util.List;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/** A lock, or several, that is held while a body runs, which is guarded by it. */
abstract class Excluding<Q extends Message, R extends Message> extends Grounded<Q, R> {
  Excluding(
      Kind<Q, R> kind,
      String what,
      BiFunction<String, SidekeeperException, LostException> loss,
      @Nullable Lease given,
      @Nullable Lease own) {
    super(kind, what, loss, given, own);
  }

  abstract String holdId();

  /** What tells this hold from others. */
  abstract long token();

  /** The tickets that exclude all others. */
  abstract List<Ticket> exclusive();

  /** For how long it may be suspended until its body is stopped; null for until it is lost. */
  abstract @Nullable Duration suspensionGrace();

  abstract void release();

  final GuardScope openGuard() {
    return GuardScope.open(core, Guard.newBuilder().setHoldId(holdId()).build(), exclusive());
  }

  /** Takes in an error of a body: a write may meet the loss before the client does. */
  final void learn(Throwable failure) {
    if (failure instanceof GuardLostException lost
        && String.valueOf(token()).equals(lost.metadata().get("fencing_token"))) {
      claim.lose(lost);
    }
  }
}
