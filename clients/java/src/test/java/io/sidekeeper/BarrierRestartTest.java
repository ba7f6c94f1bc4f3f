package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Status;
import io.sidekeeper.barrier.v1.EnterResponse;
import io.sidekeeper.barrier.v1.Entered;
import io.sidekeeper.errors.LostException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.lease.v1.Claim;
import io.sidekeeper.lease.v1.Ended;
import io.sidekeeper.lease.v1.Event;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Resume;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Entries of double barriers, at a sidecar that is started anew. */
@Timeout(60)
class BarrierRestartTest {
  private final List<String> told = new CopyOnWriteArrayList<>();
  private final BarrierListener listener =
      new BarrierListener() {
        @Override
        public void suspended(Duration remaining) {
          told.add("suspended");
        }

        @Override
        public void resumed() {
          told.add("resumed");
        }
      };
  private @TempDir Path folder;
  private Scripted sidecar;
  private Client client;
  private Lease lease;
  private BarrierEntry entry;
  private long request;

  @BeforeEach
  void enter() throws Exception {
    sidecar = new Scripted(folder.resolve("s.sock"));
    sidecar.resumable = true;
    client = new Client(sidecar.address());
    lease = client.openLease(new LeaseOptions());
    CompletableFuture<BarrierEntry> entering =
        client.enterBarrierAsync("start", 2, new BarrierOptions().lease(lease).listener(listener));
    request = sidecar.started();
    Entered.Builder entered = Entered.newBuilder().setHoldId("entry").setToken(7).setRound(9);
    EnterResponse.Builder event = EnterResponse.newBuilder().setEntered(entered);
    sidecar.say(
        MultiplexResponse.newBuilder()
            .setEvent(Event.newBuilder().setRequestId(request).setEnter(event)));
    entry = entering.get(Sidecar.PATIENT, TimeUnit.SECONDS);
  }

  @AfterEach
  void close() {
    client.close();
    sidecar.close();
  }

  private void refuse(Status status, String reason) {
    sidecar.refusals.add(Scripted.refusal(status, reason));
  }

  private void awaitLeave() throws InterruptedException {
    assertEquals("Leave entry", sidecar.calls.poll(Sidecar.PATIENT, TimeUnit.SECONDS));
  }

  private static void got(CompletableFuture<Void> left) throws Exception {
    left.get(Sidecar.PATIENT, TimeUnit.SECONDS);
  }

  private static SidekeeperException failure(CompletableFuture<Void> left) {
    Sidecar.until("it fails", left::isDone);
    return assertInstanceOf(SidekeeperException.class, Stage.failureOf(left));
  }

  private void endEntry() {
    sidecar.end(Ended.newBuilder().setRequestId(request));
  }

  @Test
  void anEntryOutlivesTheStreamOfItsLease() throws Exception {
    assertEquals(9, entry.round());
    sidecar.fail(Status.UNAVAILABLE);
    Resume resume = sidecar.resume();
    Sidecar.until("it is told", () -> told.equals(List.of("suspended")));
    assertTrue(entry.isSuspended() && entry.isValid());
    Claim claim = resume.getClaims(0);
    assertEquals("entry 7", claim.getHoldId() + " " + claim.getToken());
    assertEquals("start", claim.getStart().getEnter().getName());
    sidecar.opened();
    Sidecar.until("it is told", () -> told.equals(List.of("suspended", "resumed")));
    assertFalse(entry.isSuspended());
  }

  @Test
  void leaveIsAskedAgainUntilTheSidecarIsBackAndKnowsTheEntry() throws Exception {
    refuse(Status.UNAVAILABLE, "ENSEMBLE_UNREACHABLE");
    refuse(Status.NOT_FOUND, "HOLD_NOT_FOUND");
    refuse(Status.UNAVAILABLE, "SIDECAR_STOPPING");
    CompletableFuture<Void> left = entry.leaveAsync();
    for (int i = 0; i < 4; i++) {
      awaitLeave();
    }
    endEntry();
    got(left);
    assertTrue(sidecar.leaveTime.timeRemaining(TimeUnit.DAYS) > 365); // others take their time
    assertTrue(lease.isValid());
  }

  @Test
  void anEntryThatHasEndedIsAskedAboutOnce() throws Exception {
    endEntry();
    entry.ended().toCompletableFuture().get(Sidecar.PATIENT, TimeUnit.SECONDS);
    refuse(Status.NOT_FOUND, "HOLD_NOT_FOUND");
    assertEquals("RELEASE_UNCONFIRMED", failure(entry.leaveAsync()).reason());
    awaitLeave();
    assertTrue(sidecar.calls.isEmpty());
  }

  @Test
  void anEntryThatTheSidecarSaysIsLostIsLost() {
    refuse(Status.ABORTED, "LOCK_BROKEN");
    CompletableFuture<Void> left = entry.leaveAsync();
    Sidecar.until("it fails", left::isDone);
    LostException lost = assertInstanceOf(LostException.class, Stage.failureOf(left));
    assertEquals("LOCK_BROKEN", lost.why().reason());
    assertEquals("entry of barrier start", lost.what());
  }

  @Test
  void leaveIsNotAskedAgainWhereThatHealsNothing() throws Exception {
    refuse(Status.PERMISSION_DENIED, "ENSEMBLE_DENIED");
    CompletableFuture<Void> left = entry.leaveAsync();
    assertEquals("RELEASE_UNCONFIRMED", failure(left).reason());
    assertEquals(request, sidecar.stopped()); // others do not wait for the caller
  }

  private CompletableFuture<Void> leaveInVain() throws InterruptedException {
    for (int i = 0; i < 100; i++) {
      refuse(Status.UNAVAILABLE, "ENSEMBLE_UNREACHABLE");
    }
    CompletableFuture<Void> left = entry.leaveAsync();
    awaitLeave();
    return left;
  }

  @Test
  void whoStopsToWaitForTheOthersGivesTheEntryUp() throws Exception {
    assertTrue(leaveInVain().cancel(true));
    assertEquals(request, sidecar.stopped());
  }

  @Test
  void aClientThatIsClosedLeavesNoMore() throws Exception {
    CompletableFuture<Void> left = leaveInVain();
    client.close();
    assertEquals("RELEASE_UNCONFIRMED", failure(left).reason());
  }
}
