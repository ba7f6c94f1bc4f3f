package io.sidekeeper;

import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.hold.v1.Guard;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Start;
import io.sidekeeper.membership.v1.JoinRequest;
import io.sidekeeper.membership.v1.JoinResponse;
import io.sidekeeper.membership.v1.MembershipServiceGrpc;
import io.sidekeeper.membership.v1.UpdateRequest;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The caller as a member of a group. Leave it, also after it was lost: close does. It is valid for
 * as long as its lease is.
 */
public final class Membership extends Grounded<JoinRequest, JoinResponse> {
  private final String group;
  private final String member;
  private final Lease lease;
  private long incarnation;

  private Membership(
      Kind<JoinRequest, JoinResponse> kind,
      String group,
      String member,
      Lease lease,
      @Nullable Lease own) {
    super(kind, "member " + group + "/" + member, LostException::new, lease, own);
    this.group = group;
    this.member = member;
    this.lease = lease;
  }

  static Kind<JoinRequest, JoinResponse> kind(Core core) {
    return new Kind<>(
        core,
        MembershipServiceGrpc.getJoinMethod(),
        new Kind.Carried<>(request -> Start.newBuilder().setJoin(request), Membership::event),
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
      default -> told.getEvent().getJoin();
    };
  }

  /**
   * Joins with the lease of the options, or one of its own, also from a sidecar that is away for a
   * time.
   */
  static CompletableFuture<Membership> join(
      Kind<JoinRequest, JoinResponse> kind,
      Kind<MultiplexRequest, MultiplexResponse> leases,
      String group,
      String member,
      JoinOptions options) {
    Rules.given("group", group);
    Rules.given("member", member);
    Rules.given("options", options);
    List<Guard> guards = GuardScope.guards(kind.core());
    Lease given = options.lease();
    return Absence.through(
        kind.core(),
        options.waitTimeout(),
        given,
        (wait, heard) ->
            given == null
                ? begin(
                    leases,
                    new LeaseOptions().owner(options.owner()),
                    wait,
                    heard,
                    (own, left) ->
                        new Membership(kind, group, member, own, own)
                            .join(options.waitTimeout(left), guards, heard))
                : new Membership(kind, group, member, given, null)
                    .join(options.waitTimeout(wait), guards, heard),
        Membership::giveUp);
  }

  private CompletableFuture<Membership> join(
      JoinOptions options, List<Guard> guards, Runnable heard) {
    JoinRequest.Builder request =
        JoinRequest.newBuilder()
            .setGroup(group)
            .setMember(member)
            .setOwner(options.owner())
            .putAllMetadata(options.metadata())
            .setLeaseId(leaseId())
            .setOnConflict(Wire.conflict(options.onConflict()))
            .addAllGuards(guards);
    if (options.waitTimeout() != null && options.onConflict() != OnConflict.REJECT) {
      request.setWaitTimeout(Wire.duration(options.waitTimeout()));
    }
    return Handing.out(this, () -> open(request.build(), heard));
  }

  @Override
  String grant(JoinResponse event) {
    incarnation = event.getJoined().getIncarnation();
    return String.valueOf(incarnation);
  }

  /**
   * Says which group it is in.
   *
   * @return the group's name
   */
  public String group() {
    return group;
  }

  /**
   * Says under which name it is in the group.
   *
   * @return the member's name
   */
  public String member() {
    return member;
  }

  /**
   * Tells this member from all that have or had its name.
   *
   * @return a number that is larger than theirs were
   */
  public long incarnation() {
    return incarnation;
  }

  /**
   * Changes what others are told about this member; where a lock guards what this thread writes,
   * only while that is held (see {@link Lock#guard}).
   *
   * @param metadata replaces all that there was: at most 1 KiB in all
   * @throws InterruptedException if the thread is interrupted; it may be changed then
   * @throws SidekeeperException if it is not known to be changed
   */
  public void update(Map<String, String> metadata) throws InterruptedException {
    UpdateRequest request =
        UpdateRequest.newBuilder()
            .setGroup(group)
            .setMember(member)
            .putAllMetadata(Rules.labels(metadata))
            .setLeaseId(lease.id())
            .addAllGuards(GuardScope.guards(core))
            .build();
    Waiting.await(core.calls.insist(MembershipServiceGrpc.getUpdateMethod(), request));
  }

  /**
   * Leaves the group; with a lease of its own, which ends, that is confirmed when this returns.
   * Again, it does the same. It waits for at most about 15 seconds, even if the thread is
   * interrupted.
   *
   * @throws LostException if it was lost before
   * @throws ReleaseUnconfirmedException if the sidecar has not confirmed it
   */
  public void leave() {
    Waiting.awaitAnyway(leaving());
  }

  /** Does the same as {@link #leave}. */
  @Override
  public void close() {
    leave();
  }

  private CompletableFuture<Void> leaving() {
    return once(
        () -> {
          LostException lost = claim.lost();
          CompletableFuture<Void> ended = abandon();
          CompletableFuture<Void> left =
              own == null ? ended : ended.thenCompose(gone -> own.givingUp());
          return left.handle((gone, failure) -> failure)
              .thenCompose(
                  failure -> {
                    Throwable told = lost == null ? failure : lost;
                    return told == null
                        ? CompletableFuture.completedFuture(null)
                        : CompletableFuture.failedFuture(Waiting.unwrap(told));
                  });
        });
  }
}
