package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Status;
import io.sidekeeper.errors.GuardLostException;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.WaitTimeoutException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Claims. */
@Timeout(60)
@SuppressWarnings("try") // a scope has no other use than its end
class LockClaimTest {
  private static final ClaimOptions USUAL = new ClaimOptions();
  private static final Duration HOUR = Duration.ofHours(1);
  private static final String ID = "0123456789abcdef0123456789abcdef";

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

  private static void endsIn(Duration time, Optional<Instant> until) {
    Duration wrong = Duration.between(Instant.now().plus(time), until.orElseThrow()).abs();
    assertTrue(wrong.compareTo(Duration.ofSeconds(30)) < 0, until::toString);
  }

  private void waiters(int number) {
    Sidecar.until(
        number + " wait",
        () -> {
          try {
            return client.getLock("staging").waiters().size() == number;
          } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
          }
        });
  }

  @Test
  void aClaimOutlivesItsClient() throws Exception {
    LockClaim made;
    try (Client other = new Client(sidecar.address)) {
      made = other.claim("staging", HOUR, "apply", USUAL.owner("ci-7"));
    }
    Contender holder = client.getLock("staging").holders().get(0);
    assertEquals("ci-7", holder.owner());
    assertEquals("apply", holder.claim().orElseThrow().reason());
    endsIn(HOUR, holder.claim().orElseThrow().until());
    LockClaim known = client.claimById(made.id());
    assertEquals(0, known.fencingToken());
    assertTrue(known.until().isEmpty());
    assertThrows(IllegalStateException.class, known::ticket);
    long counts = known.check().toSeconds();
    assertTrue(counts > 50 && counts <= 58, () -> counts + " s");
    assertEquals(made.fencingToken(), known.fencingToken());
    endsIn(HOUR, known.until());
    known.extend(HOUR.multipliedBy(2));
    endsIn(HOUR.multipliedBy(2), known.until());
    refused("NO_PROCESS", () -> client.revoke("staging", "", null));
    known.release();
    known.release();
    refused("CLAIM_ENDED", known::check);
    refused("CLAIM_ENDED", () -> client.claim("staging", HOUR, "x", USUAL.claimId(made.id())));
    refused("CLAIM_NOT_FOUND", () -> client.claimById(ID).check());
  }

  @Test
  void whatIsWrittenIsGuardedByAClaim() throws Exception {
    LockClaim claim = client.claim("staging", HOUR, "apply", USUAL);
    try (GuardScope guarded = claim.ticket().guard()) {
      client.config().put("app/colour", "red");
      claim.release();
      assertThrows(GuardLostException.class, () -> client.config().put("app/colour", "blue"));
    }
  }

  @Test
  void aClaimWaitsAsOthersDoAndIsWithdrawnIfNoCallerKnowsItsId() throws Exception {
    Lock lock = client.acquire("staging");
    ClaimOptions once = USUAL.waitTimeout(Duration.ZERO);
    assertThrows(LockHeldException.class, () -> client.claim("staging", HOUR, "apply", once));
    ClaimOptions briefly = USUAL.waitTimeout(Duration.ofMillis(100));
    assertThrows(WaitTimeoutException.class, () -> client.claim("staging", HOUR, "apply", briefly));
    for (ClaimOptions options : List.of(USUAL, USUAL.claimId(ID))) {
      CompletableFuture<LockClaim> waiting = client.claimAsync("staging", HOUR, "apply", options);
      waiters(1);
      assertTrue(waiting.cancel(true));
      waiters(options.claimId() == null ? 0 : 1);
    }
    CompletableFuture<LockClaim> waiting =
        client.claimAsync("staging", HOUR, "apply", USUAL.claimId(ID));
    lock.release();
    LockClaim claim = waiting.get(Sidecar.PATIENT, TimeUnit.SECONDS);
    assertTrue(claim.fencingToken() > lock.fencingToken());
  }

  @Test
  void aThreadThatIsInterruptedWithdrawsItsClaim() throws Exception {
    try (Lock lock = client.acquire("staging")) {
      Thread thread =
          new Thread(
              () ->
                  assertThrows(
                      InterruptedException.class,
                      () -> client.claim("staging", HOUR, "apply", USUAL)));
      thread.start();
      waiters(1);
      thread.interrupt();
      waiters(0);
      thread.join();
      assertTrue(lock.isValid());
    }
  }

  @Test
  void aClaimIsAskedForWithOneIdUntilThereIsAnAnswer() throws Exception {
    try (Scripted scripted = new Scripted(false);
        Client other = new Client(scripted.address())) {
      scripted.refusals.add(Scripted.refusal(Status.ABORTED, "OUTCOME_UNKNOWN"));
      scripted.refusals.add(Scripted.refusal(Status.UNAVAILABLE, "ENSEMBLE_UNREACHABLE"));
      ClaimOptions options = USUAL.waitTimeout(Duration.ofSeconds(30));
      LockClaim claim = other.claim("staging", HOUR, "apply", options);
      assertEquals(7, claim.fencingToken());
      String asked = "Claim " + claim.id();
      assertEquals(List.of(asked, asked, asked), List.copyOf(scripted.calls));
      List<Duration> waits = List.copyOf(scripted.waits);
      assertTrue(waits.get(2).compareTo(waits.get(0)) < 0, waits::toString);
      assertTrue(waits.get(2).toSeconds() > 10, waits::toString);
    }
  }

  @Test
  void aClaimWithoutAnAnswerIsReleasedIfNoCallerKnowsItsId() throws Exception {
    try (Scripted scripted = new Scripted(false);
        Client other = new Client(scripted.address())) {
      ClaimOptions once = USUAL.waitTimeout(Duration.ZERO);
      for (ClaimOptions options : List.of(once.claimId(ID), once)) {
        scripted.refusals.add(Scripted.refusal(Status.ABORTED, "OUTCOME_UNKNOWN"));
        refused("OUTCOME_UNKNOWN", () -> other.claim("staging", HOUR, "apply", options));
      }
      scripted.refusals.add(Scripted.refusal(Status.FAILED_PRECONDITION, "LOCK_HELD"));
      refused("LOCK_HELD", () -> other.claim("staging", HOUR, "apply", once));
      Sidecar.until("it is released", () -> scripted.calls.size() == 4);
      List<String> calls = List.copyOf(scripted.calls);
      assertEquals("Claim " + ID, calls.get(0));
      String own = calls.get(1).substring("Claim ".length());
      assertEquals(1, calls.stream().filter(("Release " + own)::equals).count(), calls::toString);
    }
  }
}
