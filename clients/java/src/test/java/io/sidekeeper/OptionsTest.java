package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Wrong options and parameters are refused at once: no test here has a sidecar. */
@Timeout(60)
@NullUnmarked
class OptionsTest {
  private static final String TIME = ": a duration from PT0S to PT87600H";
  private static final String MISSING = " is null: a value is required";
  private static final Duration NEGATIVE = Duration.ofSeconds(-1);

  private static final Client CLIENT = new Client("unix:///nowhere/s.sock");

  /** What is refused, and what is said. */
  record Refusal(String said, Executable call) {
    @Override
    public String toString() {
      return said;
    }
  }

  private static Refusal missing(String parameter, Executable call) {
    return new Refusal(parameter + MISSING, call);
  }

  static Stream<Refusal> missing() {
    LockOptions lock = new LockOptions();
    return Stream.of(
        missing("name", () -> CLIENT.acquire(null)),
        missing("options", () -> CLIENT.acquire("a", null)),
        missing("name", () -> CLIENT.acquireAsync(null, lock)),
        missing("name", () -> CLIENT.withLock(null, lock, held -> 1)),
        missing("body", () -> CLIENT.withLock("a", lock, null)),
        missing("body", () -> CLIENT.withLockAsync("a", lock, null)),
        missing("body", () -> CLIENT.withLocks(List.of(), new LocksOptions(), null)),
        missing("body", () -> CLIENT.withLocksAsync(List.of(), new LocksOptions(), null)),
        missing("body", () -> CLIENT.runWhileLeader("a", lock, null)),
        missing("name", () -> CLIENT.threadLock(null)),
        missing("reserveFor", () -> CLIENT.claim("a", null, "x", new ClaimOptions())),
        missing("options", () -> CLIENT.claimAsync("a", Duration.ofMinutes(1), "x", null)),
        missing("claimId", () -> CLIENT.claimById(null)),
        missing("mode", () -> new ClaimOptions().mode(null)),
        missing("locks", () -> CLIENT.acquireAll(null, new LocksOptions())),
        missing(
            "locks[0]",
            () -> CLIENT.acquireAll(Collections.singletonList(null), new LocksOptions())),
        missing("options", () -> CLIENT.acquireAll(List.of(), null)),
        missing("name", () -> new WantedLock(null)),
        missing("mode", () -> new WantedLock("a", null)),
        missing("name", () -> CLIENT.getLock(null)),
        missing("name", () -> CLIENT.watchLock(null)),
        missing("name", () -> CLIENT.watchLeader(null)),
        missing("ticket", () -> CLIENT.verify(null)),
        missing("locks[1]", () -> CLIENT.watchTokens("a", null)),
        missing("name", () -> CLIENT.revoke(null, "", null)),
        missing("reason", () -> CLIENT.revoke("a", null, null)),
        missing("candidate", () -> CLIENT.campaign("a", null, new CampaignOptions())),
        missing("options", () -> CLIENT.campaign("a", "b", null)),
        missing("name", () -> CLIENT.observe(null)),
        missing("to", () -> CLIENT.transferLeadership("a", null, "", null)),
        missing("semaphore", () -> CLIENT.acquirePermits(null, new PermitsOptions())),
        missing("options", () -> CLIENT.acquirePermits("a", null)),
        missing("key", () -> CLIENT.begin("a", null, new OnceOptions())),
        missing("options", () -> CLIENT.beginAsync("a", "b", null)),
        missing("work", () -> CLIENT.once("a", "b", null)),
        missing("onLoss", () -> new OnceOptions().onLoss(null)),
        missing("name", () -> CLIENT.createSemaphore(null, 1)),
        missing("name", () -> CLIENT.setBarrier(null)),
        missing("name", () -> CLIENT.awaitBarrier(null)),
        missing("waiting", () -> CLIENT.awaitBarrier("a", null, null)),
        missing("barrier", () -> CLIENT.enterBarrier(null, 1, new BarrierOptions())),
        missing("options", () -> CLIENT.enterBarrier("a", 1, null)),
        missing("group", () -> CLIENT.join(null, "b", new JoinOptions())),
        missing("member", () -> CLIENT.join("a", null, new JoinOptions())),
        missing("options", () -> CLIENT.join("a", "b", null)),
        missing("joined", () -> CLIENT.stayJoined("a", "b", new JoinOptions(), null)),
        missing("group", () -> CLIENT.getGroup(null)),
        missing("options", () -> CLIENT.openLease(null)),
        missing("name", () -> CLIENT.sequence(null)),
        missing("key", () -> CLIENT.config().get(null)),
        missing("value", () -> CLIENT.config().put("a", (String) null)),
        missing("prefix", () -> CLIENT.config().list(null)),
        missing("keys[1]", () -> CLIENT.config().watch(Arrays.asList("a", null))),
        missing("commit", () -> CLIENT.config().commit(null)),
        missing("precondition", () -> new Commit().check("a", null)),
        missing("address", () -> new Client((String) null)),
        missing("credentials", () -> Client.builder().credentials(null)),
        missing("mode", () -> lock.mode(null)),
        missing("owner", () -> lock.owner(null)),
        missing("metadata", () -> lock.metadata(null)),
        missing("metadata \"zone\"", () -> lock.metadata(Collections.singletonMap("zone", null))),
        missing("a key of metadata", () -> lock.metadata(Collections.singletonMap(null, "a"))),
        missing("listener", () -> lock.listener(null)),
        missing("value", () -> new CampaignOptions().value(null)),
        missing("onConflict", () -> new JoinOptions().onConflict(null)),
        missing("metadata", () -> new PermitsOptions().metadata((Map<String, String>) null)));
  }

  @ParameterizedTest
  @MethodSource("missing")
  void whatIsMissingIsRefused(Refusal refusal) {
    assertEquals(
        refusal.said(), assertThrows(NullPointerException.class, refusal.call()).getMessage());
  }

  static Stream<Refusal> wrong() {
    return Stream.of(
        new Refusal("waitTimeout is PT-1S" + TIME, () -> new LockOptions().waitTimeout(NEGATIVE)),
        new Refusal(
            "waitTimeout is PT2562047788015215H30M7S" + TIME,
            () -> new LockOptions().waitTimeout(Duration.ofSeconds(Long.MAX_VALUE))),
        new Refusal("lockDelay is PT-1S" + TIME, () -> new LockOptions().lockDelay(NEGATIVE)),
        new Refusal(
            "suspensionGrace is PT-1S" + TIME, () -> new LockOptions().suspensionGrace(NEGATIVE)),
        new Refusal("waitTimeout is PT-1S" + TIME, () -> new LocksOptions().waitTimeout(NEGATIVE)),
        new Refusal(
            "waitTimeout is PT-1S" + TIME, () -> new PermitsOptions().waitTimeout(NEGATIVE)),
        new Refusal("quarantine is PT-1S" + TIME, () -> new PermitsOptions().quarantine(NEGATIVE)),
        new Refusal(
            "waitTimeout is PT-1S" + TIME, () -> new BarrierOptions().waitTimeout(NEGATIVE)),
        new Refusal(
            "waitTimeout is PT-1S" + TIME, () -> new CampaignOptions().waitTimeout(NEGATIVE)),
        new Refusal("waitTimeout is PT-1S" + TIME, () -> new JoinOptions().waitTimeout(NEGATIVE)),
        new Refusal("keep is PT-1S" + TIME, () -> new OnceOptions().keep(NEGATIVE)),
        new Refusal("waitTimeout is PT-1S" + TIME, () -> new OnceOptions().waitTimeout(NEGATIVE)),
        new Refusal("ttl is PT-1S" + TIME, () -> new LeaseOptions().ttl(NEGATIVE)),
        new Refusal("grace is PT-1S" + TIME, () -> CLIENT.revoke("a", "", NEGATIVE)),
        new Refusal("grace is PT-1S" + TIME, () -> CLIENT.resizeSemaphore("a", 1, "", NEGATIVE)),
        new Refusal(
            "grace is PT-1S" + TIME, () -> CLIENT.transferLeadership("a", "b", "", NEGATIVE)),
        new Refusal(
            "waitTimeout is PT-1S" + TIME, () -> CLIENT.awaitBarrier("a", NEGATIVE, () -> {})),
        new Refusal(
            "waitTimeout is PT0S: more than no time",
            () -> CLIENT.awaitBarrier("a", Duration.ZERO, () -> {})));
  }

  @ParameterizedTest
  @MethodSource("wrong")
  void whatIsWrongIsRefused(Refusal refusal) {
    assertEquals(
        refusal.said(), assertThrows(IllegalArgumentException.class, refusal.call()).getMessage());
  }
}
