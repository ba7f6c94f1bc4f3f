package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.sidekeeper.config.v1.Synced;
import io.sidekeeper.hold.v1.Keepalive;
import io.sidekeeper.lock.v1.WatchResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class ViewsTest {
  @Test
  void theLastViewIsShownAgainAsStaleOnce() {
    Views<WatchResponse, String> views =
        new Views<>((message, stale) -> stale ? "stale" : "fresh", WatchResponse::getStale);
    WatchResponse fresh = WatchResponse.getDefaultInstance();
    WatchResponse stale = WatchResponse.newBuilder().setStale(true).build();
    List<@Nullable String> shown = new ArrayList<>();
    for (WatchResponse message : Arrays.asList(null, fresh, null, null, fresh, stale, null)) {
      shown.add(views.of(message, Duration.ZERO));
    }
    assertEquals(Arrays.asList(null, "fresh", "stale", null, "fresh", "stale", null), shown);
  }

  @Test
  void noLeaderIsToldOfAViewThatIsStale() {
    LeaderChanges changes = new LeaderChanges();
    assertEquals(null, changes.of(new LockView("orders", List.of(), List.of(), 0, true)));
    assertEquals(null, changes.of(null));
    assertEquals(
        Optional.empty(), changes.of(new LockView("orders", List.of(), List.of(), 0, false)));
  }

  @Test
  void aConfigurationIsAsOldAsTheSilenceBeforeItsStreamEnded() {
    ConfigEvents events = new ConfigEvents();
    Duration silent = Duration.ofSeconds(15);
    var synced =
        io.sidekeeper.config.v1.WatchResponse.newBuilder()
            .setSynced(Synced.getDefaultInstance())
            .build();
    var kept =
        io.sidekeeper.config.v1.WatchResponse.newBuilder()
            .setKeepalive(Keepalive.getDefaultInstance())
            .build();
    assertEquals(
        new ConfigEvent(ConfigEvent.Kind.STATE, List.of()), events.of(synced, Duration.ZERO));
    assertEquals(null, events.of(kept, Duration.ZERO));
    assertEquals(
        new ConfigEvent(ConfigEvent.Kind.STALE, List.of(), silent), events.of(null, silent));
    assertEquals(null, events.of(null, silent));
  }
}
