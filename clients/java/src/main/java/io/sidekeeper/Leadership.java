package io.sidekeeper;

import io.sidekeeper.election.v1.CampaignRequest;
import io.sidekeeper.election.v1.CampaignResponse;
import io.sidekeeper.election.v1.ElectionServiceGrpc;
import io.sidekeeper.election.v1.ProclaimRequest;
import io.sidekeeper.election.v1.ResignRequest;
import io.sidekeeper.election.v1.YieldRequested;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.hold.v1.Guard;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Start;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A term: the time for which the caller leads an election. Resign, also after it was lost: close
 * does.
 */
public final class Leadership extends Grounded<CampaignRequest, CampaignResponse> {
  private final String election;
  private final String candidate;
  private final CampaignOptions options;
  private final Serial events;
  private Ticket term;
  private String holdId = "";
  private volatile @Nullable YieldRequest yieldRequest;

  private Leadership(
      Kind<CampaignRequest, CampaignResponse> kind,
      String election,
      String candidate,
      CampaignOptions options,
      @Nullable Lease own,
      Serial events) {
    super(kind, "leadership of " + election, LostException::new, options.lease(), own);
    this.election = election;
    this.candidate = candidate;
    this.term = new Ticket(election, 0);
    this.options = options;
    this.events = events;
  }

  static Kind<CampaignRequest, CampaignResponse> kind(Core core) {
    return new Kind<>(
        core,
        ElectionServiceGrpc.getCampaignMethod(),
        new Kind.Carried<>(request -> Start.newBuilder().setCampaign(request), Leadership::event),
        "elected",
        null,
        (id, timeout) ->
            core.calls.ask(
                ElectionServiceGrpc.getResignMethod(),
                ResignRequest.newBuilder().setHoldId(id).build(),
                timeout),
        true);
  }

  private static CampaignResponse event(MultiplexResponse told) {
    CampaignResponse.Builder event = CampaignResponse.newBuilder();
    return switch (told.getResponseCase()) {
      case SUSPENDED -> event.setSuspended(told.getSuspended()).build();
      case RESUMED -> event.setResumed(told.getResumed()).build();
      default -> told.getEvent().getCampaign();
    };
  }

  /** Campaigns, also from a sidecar that is away for a time. */
  static CompletableFuture<Leadership> campaign(
      Kind<CampaignRequest, CampaignResponse> kind,
      Kind<MultiplexRequest, MultiplexResponse> leases,
      String election,
      String candidate,
      CampaignOptions options) {
    Rules.given("election", election);
    Rules.given("candidate", candidate);
    Rules.given("options", options);
    Lease given = options.lease();
    if (given != null && given.core != kind.core()) {
      throw new IllegalArgumentException("the lease is another client's");
    }
    Serial events = new Serial(kind.core().workers);
    LeaseOptions opening = new LeaseOptions().owner(candidate).metadata(options.metadata());
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
                        new Leadership(kind, election, candidate, options, own, events)
                            .campaign(left, heard))
                : new Leadership(kind, election, candidate, options, null, events)
                    .campaign(wait, heard),
        Leadership::giveUp);
  }

  private CompletableFuture<Leadership> campaign(@Nullable Duration wait, Runnable heard) {
    CampaignRequest.Builder request =
        CampaignRequest.newBuilder()
            .setName(election)
            .setCandidate(candidate)
            .setValue(options.value())
            .putAllMetadata(options.metadata());
    if (wait != null) {
      request.setWaitTimeout(Wire.duration(wait));
    }
    return Handing.out(this, () -> open(request.build(), heard));
  }

  @Override
  String grant(CampaignResponse event) {
    var ticket = event.getElected().getTicket();
    term = new Ticket(ticket.getLock(), ticket.getFencingToken());
    holdId = event.getElected().getHoldId();
    return holdId;
  }

  @Override
  void notice(CampaignResponse event) {
    CampaignListener listener = options.listener();
    switch (event.getEventCase()) {
      case CANDIDATE -> {
        var wire = event.getCandidate();
        Optional<Leader> leader =
            wire.hasLeader() ? Optional.of(Leader.of(wire.getLeader())) : Optional.empty();
        events.run(() -> listener.candidate(wire.getPosition(), leader));
      }
      case SUSPENDED -> {
        Duration remaining = Wire.duration(event.getSuspended().getRemaining());
        events.run(() -> listener.suspended(remaining));
      }
      case RESUMED -> events.run(listener::resumed);
      case YIELD_REQUESTED -> {
        YieldRequested wire = event.getYieldRequested();
        Optional<Duration> grace =
            wire.hasGrace() ? Optional.of(Wire.duration(wire.getGrace())) : Optional.empty();
        YieldRequest asked =
            new YieldRequest(wire.getTo(), wire.getRequestedBy(), wire.getReason(), grace);
        yieldRequest = asked;
        events.run(() -> listener.yieldRequested(asked));
      }
      default -> {} // elected, or something newer than this client
    }
  }

  @Override
  void begun() {
    claim.whenOver(
        () -> {
          LostException lost = claim.lost();
          if (lost != null) {
            events.run(() -> options.listener().lost(lost));
          }
        });
  }

  /**
   * Says which election it is of.
   *
   * @return the election's name
   */
  public String election() {
    return election;
  }

  /**
   * Says who leads.
   *
   * @return the caller's name in the election
   */
  public String candidate() {
    return candidate;
  }

  /**
   * Names the term for others, who guard with it what they write for the leader.
   *
   * @return a ticket whose fencing token is larger than that of every earlier term
   */
  public Ticket term() {
    return term;
  }

  /**
   * Says whether a caller or the sidecar has asked the leader to resign.
   *
   * @return the newest request; empty if there was none
   */
  public Optional<YieldRequest> yieldRequest() {
    return Optional.ofNullable(yieldRequest);
  }

  /**
   * Guards with the term what this thread writes through the same client, until the scope is
   * closed; see {@link Lock#guard}.
   *
   * @return the scope; close it on this thread
   */
  public GuardScope guard() {
    return GuardScope.open(core, Guard.newBuilder().setHoldId(holdId).build(), List.of(term));
  }

  /**
   * Changes the value that the leader shows.
   *
   * @param value at most 1 KiB
   * @throws InterruptedException if the thread is interrupted; the value may be changed then
   * @throws SidekeeperException with the reason GUARD_LOST if the caller does not lead any more; if
   *     the sidecar or the ensemble is away
   */
  public void proclaim(String value) throws InterruptedException {
    var ticket =
        io.sidekeeper.hold.v1.Ticket.newBuilder()
            .setLock(term.lock())
            .setFencingToken(term.fencingToken());
    ProclaimRequest request =
        ProclaimRequest.newBuilder()
            .setTicket(ticket)
            .setValue(Rules.given("value", value))
            .build();
    Waiting.await(core.calls.insist(ElectionServiceGrpc.getProclaimMethod(), request));
  }

  /**
   * Ends the term; for the caller it is over at once, and when this returns another candidate can
   * be elected. Again, it does the same. It waits for at most about 15 seconds, even if the thread
   * is interrupted.
   *
   * @throws LostException if leadership was lost before
   * @throws ReleaseUnconfirmedException if the sidecar has not confirmed it: then the term is over
   *     for the caller all the same, and for others by the time its validity would have been
   */
  public void resign() {
    Waiting.awaitAnyway(releasing());
  }

  /**
   * Does the same as {@link #resign}, without a wait.
   *
   * @return a stage that is completed when another candidate can be elected, or fails as resign
   *     does
   */
  public CompletableFuture<Void> resignAsync() {
    return core.workers.hand(releasing());
  }

  /** Does the same as {@link #resign}. */
  @Override
  public void close() {
    resign();
  }
}
