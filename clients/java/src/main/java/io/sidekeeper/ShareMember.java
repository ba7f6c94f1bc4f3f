package io.sidekeeper;

import io.sidekeeper.assignment.v1.Assigned;
import io.sidekeeper.assignment.v1.AssignmentServiceGrpc;
import io.sidekeeper.assignment.v1.JoinRequest;
import io.sidekeeper.assignment.v1.JoinResponse;
import io.sidekeeper.assignment.v1.SetCapacityRequest;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Start;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * The caller as a member of a set. It has a worker for each of its items, until that worker has
 * ended.
 */
final class ShareMember extends Grounded<JoinRequest, JoinResponse> {
  private final Share share;
  private final Lease lease;
  private final Map<String, ItemWorker> workers = new HashMap<>();
  private List<String> items = List.of();
  private boolean leaves;

  private ShareMember(Share share, Lease lease) {
    super(share.kind, "member " + share.set + "/" + share.member, LostException::new, lease, null);
    this.share = share;
    this.lease = lease;
  }

  static Kind<JoinRequest, JoinResponse> kind(Core core) {
    return new Kind<>(
        core,
        AssignmentServiceGrpc.getJoinMethod(),
        new Kind.Carried<>(request -> Start.newBuilder().setShare(request), ShareMember::event),
        "joined",
        null,
        null,
        false);
  }

  private static JoinResponse event(MultiplexResponse told) {
    JoinResponse.Builder event = JoinResponse.newBuilder();
    return switch (told.getResponseCase()) {
      case SUSPENDED -> event.setSuspended(told.getSuspended()).build();
      case RESUMED -> event.setResumed(told.getResumed()).build();
      default -> told.getEvent().getShare();
    };
  }

  static CompletableFuture<ShareMember> join(Share share, Lease lease) {
    ShareOptions options = share.options;
    JoinRequest.Builder request =
        JoinRequest.newBuilder()
            .setSet(share.set)
            .setMember(share.member)
            .setOwner(options.owner())
            .putAllMetadata(options.metadata());
    if (options.capacity() != null) {
      request.setCapacity(options.capacity());
    }
    return Absence.through(
        share.kind.core(),
        null,
        lease,
        (wait, heard) -> {
          ShareMember member = new ShareMember(share, lease);
          return Handing.out(member, () -> member.open(request.build(), heard));
        },
        ShareMember::giveUp);
  }

  @Override
  String grant(JoinResponse event) {
    claim.whenOver(this::giveAllUp);
    return String.valueOf(event.getJoined().getIncarnation());
  }

  @Override
  void notice(JoinResponse event) {
    if (event.hasAssigned()) {
      Assigned now = event.getAssigned();
      Assignment told =
          new Assignment(
              now.getEpoch(),
              now.getItemsList(),
              now.getMembers(),
              now.getTotal(),
              now.getUnassigned());
      assign(told.items());
      share.events.run(() -> share.options.listener().assigned(told));
    }
  }

  /**
   * Stops the workers of all items but these, and begins one for each that has none. An item whose
   * worker has not ended waits.
   */
  private synchronized void assign(List<String> wanted) {
    items = leaves ? List.of() : wanted;
    workers.forEach(
        (item, worker) -> {
          if (!items.contains(item)) {
            worker.stop();
          }
        });
    for (String item : items) {
      workers.computeIfAbsent(
          item, name -> new ItemWorker(share, lease, name, () -> hasEnded(name)));
    }
    notifyAll();
  }

  private synchronized void hasEnded(String item) {
    workers.remove(item);
    assign(items);
  }

  private synchronized void giveAllUp() {
    leaves = true;
    assign(List.of());
  }

  /** Has all items move first, each as its handler ends; an interrupt ends the wait for that. */
  void drain() {
    Duration timeout = share.options.drainTimeout();
    long end = System.nanoTime() + timeout.toNanos();
    SetCapacityRequest none =
        SetCapacityRequest.newBuilder().setSet(share.set).setMember(share.member).build();
    try {
      Waiting.await(core.calls.insist(AssignmentServiceGrpc.getSetCapacityMethod(), none));
      awaitIdle(end);
    } catch (InterruptedException hurried) {
      return;
    } catch (SidekeeperException failed) {
      share.tell("", failed);
    }
  }

  private synchronized void awaitIdle(long end) throws InterruptedException {
    while (!items.isEmpty() || !workers.isEmpty()) {
      long left = (end - System.nanoTime()) / 1_000_000;
      if (left <= 0) {
        return;
      }
      wait(left);
    }
  }

  /** Leaves the set when all handlers have ended, even if the thread is interrupted. */
  void leave() {
    giveAllUp();
    boolean interrupted = false;
    synchronized (this) {
      while (!workers.isEmpty()) {
        try {
          wait();
        } catch (InterruptedException later) {
          interrupted = true;
        }
      }
    }
    giveUp();
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public void close() {
    leave();
  }
}
