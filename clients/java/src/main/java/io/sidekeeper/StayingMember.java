package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The caller as a member of a group that joins again when its lease was lost. Close it to leave.
 */
public final class StayingMember implements AutoCloseable {
  private final Client client;
  private final String group;
  private final String member;
  private final JoinOptions options;
  private final Consumer<Membership> joined;
  private final CompletableFuture<Void> first = new CompletableFuture<>();
  private final CompletableFuture<Void> ended = new CompletableFuture<>();
  private final Thread thread;
  private volatile boolean closed;
  private volatile @Nullable Membership membership;

  private StayingMember(
      Client client,
      String group,
      String member,
      JoinOptions options,
      Consumer<Membership> joined) {
    this.client = client;
    this.group = group;
    this.member = member;
    this.options = options.onConflict(OnConflict.WAIT);
    this.joined = joined;
    this.thread = new Thread(this::stay, "sidekeeper-stay-joined-" + group);
    thread.setDaemon(true);
  }

  static StayingMember join(
      Client client, String group, String member, JoinOptions options, Consumer<Membership> joined)
      throws InterruptedException {
    StayingMember staying = new StayingMember(client, group, member, options, joined);
    staying.thread.start();
    try {
      Waiting.await(staying.first.copy());
      return staying;
    } catch (InterruptedException interrupted) {
      staying.close();
      throw interrupted;
    }
  }

  private void stay() {
    Pause pause = new Pause();
    try {
      while (!closed) {
        once(pause);
        Thread.sleep(pause.next().toMillis());
      }
      ended.complete(null);
    } catch (InterruptedException closing) {
      ended.complete(null);
    } catch (RuntimeException refused) {
      ended.completeExceptionally(refused);
      first.completeExceptionally(refused);
    }
    first.completeExceptionally(Calls.closed());
  }

  private void once(Pause pause) throws InterruptedException {
    try (Membership made = client.join(group, member, options)) {
      membership = made;
      pause.reset();
      first.complete(null);
      joined.accept(made);
      Waiting.await(made.claim.ended.copy());
    } catch (LostException lost) {
      if (isUnwanted(lost.why()) || client.isClosed()) {
        throw lost;
      }
    } catch (SidekeeperException failed) {
      if (!failed.isTransient() && (!Calls.wasCutShort(failed) || isUnwanted(failed))) {
        throw failed;
      }
    }
  }

  private static boolean isUnwanted(SidekeeperException why) {
    return why.reason().equals("MEMBER_REPLACED") || why.reason().equals("MEMBER_REMOVED");
  }

  /**
   * Gives the newest membership, which may be lost while the next is joined.
   *
   * @return empty before the first
   */
  public Optional<Membership> membership() {
    return Optional.ofNullable(membership);
  }

  /**
   * Tells when the caller is a member no more and does not join again.
   *
   * @return a stage that is completed when it has left, and fails with LostException when another
   *     caller has replaced or removed it; and with SidekeeperException when the sidecar refuses it
   */
  public CompletionStage<Void> ended() {
    return ended.minimalCompletionStage();
  }

  /**
   * Leaves the group, and returns when it has left. It throws nothing: what went wrong is told by
   * ended.
   */
  @Override
  public void close() {
    closed = true;
    thread.interrupt();
    if (Thread.currentThread() == thread) {
      return; // its own listener closes it: it leaves when that returns
    }
    try {
      Waiting.awaitAnyway(ended.copy());
    } catch (LostException | SidekeeperException told) {
      return;
    }
  }
}
