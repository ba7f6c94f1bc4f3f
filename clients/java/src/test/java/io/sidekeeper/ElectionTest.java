package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sidekeeper.election.v1.Vacant;
import io.sidekeeper.election.v1.WatchResponse;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Elections. */
@Timeout(60)
class ElectionTest {
  private static final CampaignOptions PLAIN = new CampaignOptions();

  private Sidecar sidecar;
  private Client client;

  @BeforeEach
  void connect() {
    sidecar = new Sidecar();
    client = new Client(sidecar.address);
  }

  @AfterEach
  void disconnect() {
    client.close();
    sidecar.close();
  }

  private static void refused(String reason, Executable call) {
    assertEquals(reason, assertThrows(SidekeeperException.class, call).reason());
  }

  /** What a candidate is told. */
  private static final class Told implements CampaignListener {
    final List<String> ahead = new CopyOnWriteArrayList<>();
    final List<YieldRequest> asked = new CopyOnWriteArrayList<>();
    final List<LostException> lost = new CopyOnWriteArrayList<>();

    @Override
    public void candidate(int position, Optional<Leader> leader) {
      ahead.add(position + " behind " + leader.map(Leader::candidate).orElse("nobody"));
    }

    @Override
    public void yieldRequested(YieldRequest request) {
      asked.add(request);
    }

    @Override
    public void lost(LostException why) {
      lost.add(why);
    }
  }

  @Test
  void candidatesLeadOneAfterTheOther() throws Exception {
    Leadership first = client.campaign("scheduler", "one", PLAIN.value("one:80"));
    assertTrue(first.isValid());
    assertEquals("scheduler", first.term().lock());
    refused(
        "LOCK_HELD", () -> client.campaign("scheduler", "two", PLAIN.waitTimeout(Duration.ZERO)));
    Told told = new Told();
    CompletableFuture<Leadership> waiting =
        client.campaignAsync("scheduler", "two", PLAIN.listener(told));
    Sidecar.until("it waits", () -> !told.ahead.isEmpty());
    assertEquals("1 behind one", told.ahead.get(0));
    ElectionView view = client.getElection("scheduler");
    assertEquals("one:80", view.leader().orElseThrow().value());
    assertEquals(first.term(), view.leader().orElseThrow().term());
    assertEquals("two", view.candidates().get(0).candidate());
    first.resign();
    Leadership second = waiting.get(30, TimeUnit.SECONDS);
    assertTrue(second.term().fencingToken() > first.term().fencingToken());
    refused("GUARD_LOST", () -> first.proclaim("late"));
    GuardScope guarded = second.guard();
    client.config().put("led", "by two");
    guarded.close();
    second.resign();
    assertTrue(client.getElection("scheduler").leader().isEmpty());
  }

  @Test
  void anObserverSeesEachLeaderAndItsValue() throws Exception {
    try (Watch<Observation> watch = client.observe("observed")) {
      assertEquals(new Observation(Optional.empty(), false), watch.next());
      try (Leadership led = client.campaign("observed", "one", PLAIN)) {
        assertEquals("one", watch.next().leader().orElseThrow().candidate());
        led.proclaim("one:80");
        assertEquals("one:80", watch.next().leader().orElseThrow().value());
      }
      assertEquals(new Observation(Optional.empty(), false), watch.next());
    }
  }

  private static WatchResponse leader(long term) {
    var ticket = io.sidekeeper.hold.v1.Ticket.newBuilder().setFencingToken(term);
    return WatchResponse.newBuilder()
        .setLeader(io.sidekeeper.election.v1.Leader.newBuilder().setTicket(ticket))
        .build();
  }

  @Test
  void noEarlierTermIsObservedAfterALaterOne() {
    Observer observer = new Observer();
    List<String> seen = new ArrayList<>();
    WatchResponse vacant =
        WatchResponse.newBuilder().setVacant(Vacant.getDefaultInstance()).build();
    List<@Nullable WatchResponse> messages =
        Arrays.asList(
            null, leader(3), leader(5), null, null, leader(3), leader(5), vacant, leader(7));
    for (WatchResponse message : messages) {
      Observation told = observer.learn(message);
      if (told != null) {
        long term = told.leader().map(leader -> leader.term().fencingToken()).orElse(0L);
        seen.add(term + (told.stale() ? " stale" : ""));
      }
    }
    assertEquals(List.of("3", "5", "5 stale", "5 stale", "5", "0", "7"), seen);
  }

  @Test
  void leadershipIsHandedOver() throws Exception {
    Told told = new Told();
    Leadership first = client.campaign("handed", "one", PLAIN.listener(told));
    List<CompletableFuture<Leadership>> others = new ArrayList<>();
    for (String name : List.of("two", "three")) {
      Told stands = new Told();
      others.add(client.campaignAsync("handed", name, PLAIN.listener(stands)));
      Sidecar.until("it waits", () -> !stands.ahead.isEmpty());
    }
    refused("CANDIDATE_NOT_FOUND", () -> client.transferLeadership("handed", "four", "", null));
    client.transferLeadership("handed", "three", "drained", null);
    Sidecar.until("it is asked", () -> !told.asked.isEmpty());
    assertEquals("three", told.asked.get(0).to());
    assertEquals("drained", told.asked.get(0).reason());
    assertEquals(told.asked.get(0), first.yieldRequest().orElseThrow());
    first.close();
    others.get(1).get(30, TimeUnit.SECONDS).close();
    others.get(0).get(30, TimeUnit.SECONDS).close();
  }

  @Test
  void aTermEndsWithItsLease() throws Exception {
    Lease lease = client.openLease(new LeaseOptions());
    Told told = new Told();
    Leadership led = client.campaign("leased", "one", PLAIN.lease(lease).listener(told));
    refused("ALREADY_CONTENDING", () -> client.acquire("leased", new LockOptions().lease(lease)));
    lease.close();
    Sidecar.until("it is lost", () -> !told.lost.isEmpty());
    assertFalse(led.isValid());
  }
}
