package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PrimitiveIterator;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;

/** What scenarios do. */
final class Deeds {
  private final Stage stage;

  Deeds(Stage stage) {
    this.stage = stage;
  }

  void play(Step step) throws Exception {
    switch (step.text("do")) {
      case "acquire" -> acquire(step);
      case "acquire all" -> acquireAll(step);
      case "connect" -> stage.connect(step);
      case "serve" -> stage.sidecar.serve(step.text("flags", ""), step.text("policy", ""));
      case "cancel" -> {
        Stage.Pending pending = stage.thing(step, Stage.Pending.class);
        assertTrue(pending.task.cancel(true));
      }
      case "release" -> give(step, stage.thing(step, Held.class)::close);
      case "open lease" -> openLease(step);
      case "close lease" -> give(step, stage.thing(step, Lease.class)::close);
      case "close" -> stage.client(step).close();
      case "expire" -> {
        if (step.is("all")) {
          stage.sidecar.expireAll();
        } else {
          stage.sidecar.expire(step.text("lock"));
        }
      }
      case "suspend" -> stage.sidecar.suspend(step.whole("for"));
      case "freeze" -> stage.sidecar.send("STOP");
      case "thaw" -> stage.sidecar.send("CONT");
      case "kill" -> stage.sidecar.kill();
      case "stop" -> stage.sidecar.send("TERM");
      case "restart" -> stage.sidecar.start();
      case "pause" -> Sidecar.pause(step.seconds("for", 0));
      case "revoke" ->
          stage.attempt(
              step,
              () ->
                  stage
                      .client(step)
                      .revoke(step.text("lock"), step.text("reason", ""), step.time("grace")));
      case "break" -> stage.sidecar.breakFirst(step.text("lock"), (long) (step.within() * 1e9));
      case "blind" ->
          Clock.count(
              () -> {
                throw new IOException("nobody sees anything");
              });
      case "sight" -> Clock.count(null);
      case "run" -> run(step);
      case "lead" -> lead(step);
      case "observe" -> observe(step);
      case "stay joined" -> stayJoined(step);
      case "finish" -> finish(step);
      default -> playService(step);
    }
  }

  private void playService(Step step) throws Exception {
    switch (step.text("do")) {
      case "create" -> stage.attempt(step, () -> sequence(step).create(step.number("first")));
      case "next" -> {
        Long number = stage.attempt(step, () -> sequence(step).next());
        assertEquals(step.has("is") ? step.number("is") : null, number);
      }
      case "range" -> {
        Numbers numbers = stage.attempt(step, () -> sequence(step).nextRange(step.whole("count")));
        if (numbers != null) {
          assertArrayEquals(
              new long[] {step.number("first"), step.number("last")},
              new long[] {numbers.first(), numbers.last()});
        }
      }
      case "take" -> take(step);
      case "join" -> join(step);
      case "leave" -> leave(step);
      case "put" -> put(step);
      case "get" -> {
        Entry entry =
            stage.attempt(
                step, () -> stage.client(step).config().getLinearizable(step.text("key")));
        if (entry != null) {
          assertEquals(step.text("is"), entry.text());
        }
      }
      case "campaign" -> campaign(step);
      case "resign" -> give(step, stage.thing(step, Leadership.class)::resign);
      case "proclaim" ->
          give(step, () -> stage.thing(step, Leadership.class).proclaim(step.text("value")));
      case "transfer" ->
          give(
              step,
              () ->
                  stage
                      .client(step)
                      .transferLeadership(
                          step.text("election"), step.text("to"), step.text("reason", ""), null));
      case "delete" -> give(step, () -> stage.client(step).config().delete(step.text("key")));
      case "watch" -> watch(step);
      default -> playBarriers(step);
    }
  }

  private void playBarriers(Step step) throws Exception {
    switch (step.text("do")) {
      case "set barrier" -> give(step, () -> stage.client(step).setBarrier(step.text("barrier")));
      case "remove barrier" ->
          give(step, () -> stage.client(step).removeBarrier(step.text("barrier")));
      case "await barrier" -> {
        Client client = stage.client(step);
        Stage.Job job = new Stage.Job();
        carryOut(step, job, () -> client.awaitBarrier(step.text("barrier"), null, job::count));
      }
      case "enter" -> enter(step);
      case "begin" -> begin(step);
      case "finish attempt" ->
          give(
              step,
              () ->
                  stage
                      .thing(step, Recorded.class)
                      .finish(Outcome.valueOf(upper(step.text("outcome"))), step.text("note", "")));
      case "put schedule" -> stage.sidecar.schedules.put(step.text("schedule"));
      case "run schedule" -> stage.sidecar.schedules.run(step.text("schedule"), step.text("run"));
      case "work" -> work(step);
      case "define set" -> {
        String[] items = new String[step.whole("count")];
        Arrays.setAll(items, String::valueOf);
        stage.sidecar.sets.define(step.text("set"), items);
      }
      case "share" -> share(step);
      default -> playClaims(step);
    }
  }

  private void playClaims(Step step) throws Exception {
    switch (step.text("do")) {
      case "claim" -> {
        ClaimOptions options =
            new ClaimOptions().owner(step.text("owner", "")).waitTimeout(step.time("wait"));
        ClaimOptions chosen =
            step.has("of") ? options.claimId(stage.thing(step, LockClaim.class).id()) : options;
        Client client = stage.client(step);
        String lock = step.text("lock");
        stage.attempt(step, () -> client.claim(lock, step.time("for"), "a test", chosen));
      }
      case "extend" ->
          give(step, () -> stage.thing(step, LockClaim.class).extend(step.time("for")));
      case "end claim" -> give(step, () -> stage.thing(step, LockClaim.class).release());
      case "create semaphore" ->
          give(
              step,
              () ->
                  stage.client(step).createSemaphore(step.text("semaphore"), step.whole("count")));
      case "acquire permit" -> acquirePermit(step);
      default -> throw new AssertionError("nobody knows how to do " + step);
    }
  }

  private interface Giving {
    void run() throws Exception;
  }

  private void give(Step step, Giving giving) throws Exception {
    stage.attempt(
        step,
        () -> {
          giving.run();
          return true;
        });
  }

  /** Does it, in the background if it is for later. */
  private void carryOut(Step step, Stage.Job job, Giving giving) throws Exception {
    if (!step.is("later")) {
      give(step, giving);
      return;
    }
    stage.background(
        step,
        job,
        () -> {
          giving.run();
          return true;
        });
  }

  private void leave(Step step) throws Exception {
    Held held = stage.thing(step, Held.class);
    Giving leave = held instanceof BarrierEntry entry ? entry::leave : ((Membership) held)::leave;
    carryOut(step, new Stage.Job(), leave);
  }

  private void enter(Step step) throws Exception {
    Client client = stage.client(step);
    Stage.Pending pending = new Stage.Pending();
    BarrierListener listener =
        new BarrierListener() {
          @Override
          public void waiting(int present) {
            pending.present = present;
          }
        };
    BarrierOptions options =
        new BarrierOptions().lease(lease(step)).waitTimeout(step.time("wait")).listener(listener);
    String barrier = step.text("barrier");
    if (step.is("later")) {
      stage.later(step, pending, client.enterBarrierAsync(barrier, step.whole("size"), options));
    } else {
      stage.attempt(step, () -> client.enterBarrier(barrier, step.whole("size"), options));
    }
  }

  private Sequence sequence(Step step) {
    return stage.client(step).sequence(step.text("sequence"));
  }

  private LockOptions options(Step step) {
    Mode mode = Mode.valueOf(step.text("mode", "exclusive").toUpperCase(Locale.ROOT));
    LockListener listener =
        new LockListener() {
          @Override
          public void revocationRequested(Revocation revocation) {
            stage.revocations.put(step.text("as"), revocation);
          }
        };
    return new LockOptions()
        .mode(mode)
        .owner(step.text("owner", ""))
        .waitTimeout(step.time("wait"))
        .lease(lease(step))
        .listener(listener)
        .suspensionGrace(step.time("suspension grace"))
        .detectDeadlock(step.is("detect deadlock"));
  }

  private static String upper(String word) {
    return word.toUpperCase(Locale.ROOT);
  }

  private OnceOptions onceOptions(Step step) {
    OnceOptions options =
        new OnceOptions()
            .perName(step.text("per", "key").equals("name"))
            .onLoss(Policy.valueOf(upper(step.text("on loss", "retry"))))
            .onFailure(Policy.valueOf(upper(step.text("on failure", "retry"))))
            .lease(lease(step))
            .waitTimeout(step.time("wait"))
            .owner(step.text("owner", ""));
    return step.has("attempts") ? options.attempts(step.whole("attempts")) : options;
  }

  private void begin(Step step) throws Exception {
    Client client = stage.client(step);
    String work = step.text("work");
    String key = step.text("key");
    OnceOptions options = onceOptions(step);
    if (step.is("later")) {
      Stage.Pending pending = new Stage.Pending();
      stage.later(step, pending, client.beginAsync(work, key, options.listener(pending)));
    } else {
      stage.attempt(step, () -> client.begin(work, key, options));
    }
  }

  private void work(Step step) throws Exception {
    Client client = stage.client(step);
    String schedule = step.text("schedule");
    WorkOptions options =
        new WorkOptions()
            .lease(lease(step))
            .waitTimeout(step.time("wait"))
            .owner(step.text("owner", ""));
    if (step.is("later")) {
      Stage.Pending pending = new Stage.Pending();
      stage.later(step, pending, client.workAsync(schedule, options.listener(pending)));
    } else {
      stage.attempt(step, () -> client.work(schedule, options));
    }
  }

  private void acquire(Step step) throws Exception {
    Client client = stage.client(step);
    if (!step.is("later")) {
      stage.attempt(step, () -> client.acquire(step.text("lock"), options(step)));
      return;
    }
    Stage.Pending pending = new Stage.Pending();
    LockOptions options = options(step).listener(pending);
    stage.later(step, pending, client.acquireAsync(step.text("lock"), options));
  }

  private void acquirePermit(Step step) throws Exception {
    Client client = stage.client(step);
    String semaphore = step.text("semaphore");
    PermitsOptions options =
        new PermitsOptions()
            .numbered(step.is("numbered"))
            .quarantine(step.time("quarantine"))
            .waitTimeout(step.time("wait"));
    if (step.is("later")) {
      Stage.Pending pending = new Stage.Pending();
      stage.later(step, pending, client.acquirePermitsAsync(semaphore, options.listener(pending)));
    } else {
      stage.attempt(step, () -> client.acquirePermits(semaphore, options));
    }
  }

  private void acquireAll(Step step) throws Exception {
    Client client = stage.client(step);
    Stage.Pending pending = new Stage.Pending();
    LocksOptions options = options(step, pending);
    if (step.is("later")) {
      stage.later(step, pending, client.acquireAllAsync(locks(step), options));
    } else {
      stage.attempt(step, () -> client.acquireAll(locks(step), options));
    }
  }

  private static List<WantedLock> locks(Step step) {
    return ((List<?>) step.get("locks"))
        .stream().map(name -> new WantedLock((String) name)).toList();
  }

  private LocksOptions options(Step step, Stage.Pending pending) {
    LocksListener listener =
        new LocksListener() {
          @Override
          public void queued(Map<String, Integer> ahead) {
            pending.ahead = ahead;
          }

          @Override
          public void revocationRequested(Revocation revocation) {
            stage.revocations.put(step.text("as"), revocation);
          }
        };
    return new LocksOptions()
        .owner(step.text("owner", ""))
        .waitTimeout(step.time("wait"))
        .lease(lease(step))
        .listener(listener);
  }

  private void campaign(Step step) throws Exception {
    Client client = stage.client(step);
    Stage.Pending pending = new Stage.Pending();
    CampaignOptions options =
        new CampaignOptions()
            .value(step.text("value", ""))
            .waitTimeout(step.time("wait"))
            .listener(pending);
    String election = step.text("election");
    String candidate = step.text("candidate");
    if (step.is("later")) {
      stage.later(step, pending, client.campaignAsync(election, candidate, options));
    } else {
      stage.attempt(step, () -> client.campaign(election, candidate, options));
    }
  }

  private Lease lease(Step step) {
    return step.has("lease") ? (Lease) stage.things.get(step.text("lease")) : null;
  }

  private void openLease(Step step) throws Exception {
    Client client = stage.client(step);
    LeaseOptions options = new LeaseOptions().ttl(step.time("ttl")).waitTimeout(step.time("wait"));
    if (step.is("later")) {
      stage.later(step, new Stage.Pending(), client.openLeaseAsync(options));
    } else {
      stage.attempt(step, () -> client.openLease(options));
    }
  }

  private void join(Step step) throws Exception {
    Client client = stage.client(step);
    String group = step.text("group");
    String conflict = step.text("on conflict", "reject").toUpperCase(Locale.ROOT);
    JoinOptions options =
        new JoinOptions()
            .lease(lease(step))
            .onConflict(OnConflict.valueOf(conflict))
            .waitTimeout(step.time("wait"));
    if (step.is("later")) {
      stage.later(step, new Stage.Pending(), client.joinAsync(group, step.text("member"), options));
    } else {
      stage.attempt(step, () -> client.join(group, step.text("member"), options));
    }
  }

  private void run(Step step) {
    Stage.Job job = new Stage.Job();
    Bodies.Work<Held, Object, RuntimeException> work =
        held -> {
          job.held = held;
          job.count();
          try {
            job.finish.await();
            return "done";
          } finally {
            job.stopped = true;
          }
        };
    Client client = stage.client(step);
    if (step.has("locks")) {
      LocksOptions options = options(step, new Stage.Pending());
      stage.background(
          step, job, () -> client.withLocks(locks(step), options, locks -> work.run(locks)));
    } else if (step.has("work")) {
      OnceOptions options = onceOptions(step);
      stage.background(
          step, job, () -> client.once(step.text("work"), step.text("key"), options, work::run));
    } else {
      stage.background(
          step,
          job,
          () -> client.withLock(step.text("lock"), options(step), lock -> work.run(lock)));
    }
  }

  private void lead(Step step) {
    Stage.Job job = new Stage.Job();
    Body<Object, RuntimeException> body =
        lock -> {
          job.held = lock;
          job.count();
          job.finish.await();
          return "done";
        };
    stage.background(
        step, job, () -> stage.client(step).runWhileLeader(step.text("lock"), options(step), body));
  }

  private void observe(Step step) {
    Stage.Told told = new Stage.Told();
    stage.things.put(step.text("as"), told);
    Client client = stage.client(step);
    if (step.has("election")) {
      client
          .observe(step.text("election"))
          .listen(seen -> told.leader = seen.leader().map(Deeds::shown).orElse(""));
    } else {
      client
          .watchLeader(step.text("lock"))
          .listen(leader -> told.leader = leader.map(Contender::owner).orElse(""));
    }
  }

  private static String shown(Leader leader) {
    return leader.candidate() + (leader.value().isEmpty() ? "" : " at " + leader.value());
  }

  private void stayJoined(Step step) {
    Stage.Job job = new Stage.Job();
    stage.background(
        step,
        job,
        () -> {
          try (StayingMember staying =
              stage
                  .client(step)
                  .stayJoined(
                      step.text("group"),
                      step.text("member"),
                      new JoinOptions(),
                      membership -> job.count())) {
            job.finish.await();
            return staying;
          }
        });
    stage.until(step, () -> job.times > 0);
  }

  private void share(Step step) throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    ItemHandler handler =
        item -> {
          String lock = item.lock().name();
          if (stage.worksOn.putIfAbsent(lock, step.text("as")) != null) {
            stage.workedOnTwice.add(lock);
          }
          try {
            never.await();
          } finally {
            stage.worksOn.remove(lock);
          }
        };
    ShareOptions options = new ShareOptions().member(step.text("member"));
    Client client = stage.client(step);
    if (step.has("error")) {
      give(step, () -> client.share(step.text("set"), options, handler).await());
      return;
    }
    Stage.Job job = new Stage.Job();
    stage.background(
        step,
        job,
        () -> {
          try (Share share = client.share(step.text("set"), options, handler)) {
            job.finish.await();
            return share;
          }
        });
  }

  private void finish(Step step) {
    Stage.Job job = stage.thing(step, Stage.Job.class);
    job.finish.countDown();
    if (!step.is("later")) {
      Sidecar.until(step.toString(), job.task::isDone);
    }
  }

  private void take(Step step) {
    PrimitiveIterator.OfLong numbers = sequence(step).numbers(step.whole("ahead"));
    Set<Long> taken = new HashSet<>();
    for (int i = 0; i < step.whole("count"); i++) {
      taken.add(numbers.nextLong());
    }
    assertEquals(step.whole("count"), taken.size());
  }

  private void put(Step step) throws Exception {
    byte[] value =
        step.has("value")
            ? step.text("value").getBytes(StandardCharsets.UTF_8)
            : new byte[step.whole("size")];
    Precondition precondition =
        switch (step.text("if", "")) {
          case "missing" -> Precondition.missing();
          case "exists" -> Precondition.exists();
          default -> null;
        };
    stage.attempt(
        step, () -> stage.client(step).config().put(step.text("key"), value, precondition));
  }

  private void watch(Step step) {
    Stage.Told told = new Stage.Told();
    stage.things.put(step.text("as"), told);
    Client client = stage.client(step);
    CompletableFuture<Void> done;
    if (step.has("lock")) {
      done = client.watchLock(step.text("lock")).listen(view -> take(told, view.stale()));
    } else if (step.has("group")) {
      done = client.watchGroup(step.text("group")).listen(view -> take(told, view.stale()));
    } else {
      done = client.config().watchPrefix(step.text("prefix")).listen(event -> take(told, event));
    }
    assertTrue(!done.isCompletedExceptionally());
  }

  private static void take(Stage.Told told, boolean stale) {
    told.stale = stale;
    told.state = Map.of();
  }

  private static void take(Stage.Told told, ConfigEvent event) {
    boolean whole = event.kind() == ConfigEvent.Kind.STATE;
    Map<String, String> state = new HashMap<>(whole || told.state == null ? Map.of() : told.state);
    for (ConfigChange change : event.changes()) {
      if (change.deleted()) {
        state.remove(change.entry().key());
      } else {
        state.put(change.entry().key(), change.entry().text());
      }
    }
    boolean changed = event.kind() == ConfigEvent.Kind.CHANGED;
    told.stale = event.kind() == ConfigEvent.Kind.STALE || told.stale && changed;
    told.state = state;
  }
}
