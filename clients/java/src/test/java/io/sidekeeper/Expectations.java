package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** What scenarios expect. */
final class Expectations {
  private final Stage stage;

  Expectations(Stage stage) {
    this.stage = stage;
  }

  void play(Step step) throws Exception {
    switch (step.text("expect")) {
      case "valid" -> {
        assertTrue(held(step).isValid(), step::toString);
        assertTrue(held(step).error().isEmpty(), step::toString);
      }
      case "invalid" -> Stage.assertInvalid(held(step));
      case "given up" -> {
        Stage.assertInvalid(held(step));
        assertTrue(held(step).error().isEmpty(), step::toString);
      }
      case "lost" -> {
        stage.until(step, () -> held(step).error().isPresent());
        stage.checkError(step, held(step).error().orElseThrow());
        held(step).ended().toCompletableFuture().get(Sidecar.PATIENT, TimeUnit.SECONDS);
      }
      case "suspended" -> stage.until(step, () -> held(step).isSuspended());
      case "resumed" -> stage.until(step, () -> !held(step).isSuspended());
      case "revocation" -> revocation(step);
      case "queued" -> stage.until(step, () -> pending(step).position == step.whole("position"));
      case "ahead" -> stage.until(step, () -> step.get("is").equals(pending(step).ahead));
      case "yield request" -> {
        Leadership led = stage.thing(step, Leadership.class);
        stage.until(step, () -> led.yieldRequest().isPresent());
        assertEquals(step.text("reason"), led.yieldRequest().orElseThrow().reason());
      }
      case "granted" -> {
        Stage.Pending pending = pending(step);
        stage.until(step, pending.task::isDone);
        stage.things.put(step.text("of"), pending.task.get());
      }
      case "failed" -> {
        stage.until(step, pending(step).task::isDone);
        stage.checkError(step, Stage.failureOf(pending(step).task));
      }
      case "larger token" -> {
        Held other = (Held) stage.things.get(step.text("than"));
        assertTrue(token(step, held(step)) > token(step, other));
      }
      default -> playViews(step);
    }
  }

  private void playViews(Step step) throws Exception {
    switch (step.text("expect")) {
      case "holders" ->
          assertEquals(
              step.get("are"), view(step).holders().stream().map(Contender::owner).toList());
      case "name" -> assertEquals(step.get("is"), Names.nameOf(step.text("of")));
      case "segment" -> assertEquals(step.get("is"), Names.segmentOf(step.text("of")));
      case "waiters" -> eventually(step, () -> view(step).waiters().size() == step.whole("number"));
      case "running" -> stage.until(step, () -> job(step).times == 1);
      case "stopped" -> {
        stage.until(step, () -> job(step).stopped);
        Sidecar.until(step.toString(), job(step).task::isDone); // it gives up the lock first
        stage.checkError(step, Stage.failureOf(job(step).task));
      }
      case "exited" -> stage.until(step, () -> !stage.sidecar.isRunning());
      case "done" -> {
        stage.until(step, job(step).task::isDone);
        Throwable failure = Stage.failureOf(job(step).task);
        if (step.has("error")) {
          stage.checkError(step, failure);
        } else {
          assertNull(failure);
        }
      }
      case "releasing" -> {
        Held held = job(step).held;
        stage.until(step, () -> !held.isValid() && held.error().isEmpty());
      }
      case "leading", "joined" -> stage.until(step, () -> job(step).times == step.whole("times"));
      case "leader" -> stage.until(step, () -> step.text("is").equals(told(step).leader));
      case "members" -> eventually(step, () -> members(step).equals(step.get("are")));
      case "picked" -> eventually(step, () -> picked(step).equals(step.text("is")));
      case "state" ->
          stage.until(step, () -> step.get("is").equals(told(step).state) && !told(step).stale);
      case "stale" -> stage.until(step, () -> told(step).stale);
      case "fresh" -> stage.until(step, () -> told(step).state != null && !told(step).stale);
      case "ran" -> assertEquals(step.whole("times"), job(step).times, step::toString);
      case "attempt" ->
          assertEquals(
              step.whole("number"), stage.thing(step, Recorded.class).number(), step::toString);
      case "tick" -> {
        Tick tick = stage.thing(step, Tick.class);
        assertEquals(step.text("run"), tick.runId(), step::toString);
        Duration late = Duration.between(tick.at(), Instant.now()).abs();
        assertTrue(late.compareTo(Duration.ofMinutes(1)) < 0, step::toString);
      }
      case "history" ->
          assertEquals(step.get("are"), stage.sidecar.schedules.history(step.text("schedule")));
      case "number" -> assertEquals(OptionalInt.of(step.whole("number")), permits(step).number());
      case "no number" -> assertEquals(OptionalInt.empty(), permits(step).number());
      case "rests" -> {
        List<Quarantine> rests =
            stage.client(step).getSemaphore(step.text("semaphore")).quarantines();
        assertEquals(
            List.of(step.whole("number")), rests.stream().map(Quarantine::number).toList());
        assertLeft(step, rests.get(0).until().orElseThrow());
      }
      case "works on" -> {
        stage.until(
            step,
            () ->
                stage.worksOn.values().stream().filter(step.text("of")::equals).count()
                    == step.whole("number"));
        assertEquals(List.of(), stage.workedOnTwice, step::toString);
      }
      case "same token" -> {
        long token = stage.thing(step, LockClaim.class).fencingToken();
        assertEquals(((LockClaim) stage.things.get(step.text("than"))).fencingToken(), token);
        assertTrue(token > 0, step::toString);
      }
      case "claimed" -> {
        LockClaim claim = stage.thing(step, LockClaim.class);
        long counts = claim.check().toMillis();
        assertTrue(counts > 0 && counts <= 58_000, step::toString);
        assertLeft(step, claim.until().orElseThrow());
      }
      case "going on" -> assertFalse(job(step).task.isDone(), step::toString);
      case "waiting" -> stage.until(step, () -> isWaiting(step));
      case "round" -> {
        long than = ((BarrierEntry) stage.things.get(step.text("than"))).round();
        long round = stage.thing(step, BarrierEntry.class).round();
        assertTrue(step.text("is").equals("same") ? round == than : round > than, step::toString);
      }
      default -> throw new AssertionError("nobody knows how to expect " + step);
    }
  }

  /** Sees that something ends in about as many seconds as the step says. */
  private static void assertLeft(Step step, Instant until) {
    Duration left = Duration.between(Instant.now(), until);
    assertTrue(
        left.minus(step.time("for")).abs().compareTo(Duration.ofSeconds(30)) < 0, step::toString);
  }

  private Permits permits(Step step) {
    return stage.thing(step, Permits.class);
  }

  private boolean isWaiting(Step step) {
    return step.has("number") ? pending(step).present == step.whole("number") : job(step).times > 0;
  }

  private interface Look {
    boolean happened() throws InterruptedException;
  }

  private static void eventually(Step step, Look look) {
    BooleanSupplier happened =
        () -> {
          try {
            return look.happened();
          } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
          }
        };
    Sidecar.until(step.toString(), happened);
  }

  private Held held(Step step) {
    return stage.thing(step, Held.class);
  }

  private Stage.Pending pending(Step step) {
    return stage.thing(step, Stage.Pending.class);
  }

  private Stage.Job job(Step step) {
    return stage.thing(step, Stage.Job.class);
  }

  private Stage.Told told(Step step) {
    return stage.thing(step, Stage.Told.class);
  }

  private static long token(Step step, Held held) {
    if (held instanceof Lock lock) {
      return lock.fencingToken();
    }
    if (held instanceof Recorded<?, ?> attempt) {
      return attempt.fencingToken();
    }
    return held instanceof Locks locks
        ? locks.fencingToken(step.text("lock"))
        : ((Leadership) held).term().fencingToken();
  }

  private LockView view(Step step) throws InterruptedException {
    return stage.client(step).getLock(step.text("lock"));
  }

  private String picked(Step step) throws InterruptedException {
    GroupView view = stage.client(step).getGroup(step.text("group"));
    return view.pick(step.text("key")).map(GroupMember::member).orElse("");
  }

  private List<String> members(Step step) throws InterruptedException {
    GroupView view = stage.client(step).getGroup(step.text("group"));
    return view.members().stream().map(GroupMember::member).sorted().toList();
  }

  private void revocation(Step step) {
    stage.until(step, () -> stage.revocations.containsKey(step.text("of")));
    Revocation asked = stage.revocations.get(step.text("of"));
    assertEquals(step.text("reason"), asked.reason());
    assertEquals(step.has("grace"), asked.grace().isPresent());
    asked
        .grace()
        .ifPresent(
            grace -> {
              assertTrue(!grace.isNegative() && !grace.isZero());
              assertTrue(grace.compareTo(step.time("grace")) <= 0);
            });
  }
}
