package io.sidekeeper;

import io.sidekeeper.config.v1.WatchResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Makes events of the messages of one watch. */
final class ConfigEvents implements Watch.Tell<WatchResponse, ConfigEvent> {
  private final List<ConfigChange> state = new ArrayList<>();
  private boolean stale;

  /**
   * Says what a message tells; null for a part of a state that is not complete yet, which is kept.
   */
  @Override
  public @Nullable ConfigEvent of(@Nullable WatchResponse message, Duration silent) {
    ConfigEvent event = message == null ? ended(silent) : read(message);
    if (event != null && event.kind() != ConfigEvent.Kind.CHANGED) {
      stale = event.kind() == ConfigEvent.Kind.STALE;
    }
    return event;
  }

  /** The stream has ended and begins anew. */
  private @Nullable ConfigEvent ended(Duration silent) {
    state.clear();
    return stale ? null : new ConfigEvent(ConfigEvent.Kind.STALE, List.of(), silent);
  }

  private @Nullable ConfigEvent read(WatchResponse message) {
    return switch (message.getEventCase()) {
      case ENTRIES -> {
        message.getEntries().getEntriesList().stream()
            .map(entry -> new ConfigChange(Wire.entry(entry), false, false, false))
            .forEach(state::add);
        yield null;
      }
      case SYNCED -> {
        List<ConfigChange> whole = List.copyOf(state);
        state.clear();
        yield new ConfigEvent(ConfigEvent.Kind.STATE, whole);
      }
      case CHANGES -> {
        List<ConfigChange> changes =
            message.getChanges().getChangesList().stream().map(Wire::change).toList();
        yield new ConfigEvent(ConfigEvent.Kind.CHANGED, changes);
      }
      case STALE -> new ConfigEvent(ConfigEvent.Kind.STALE, List.of());
      case FRESH -> new ConfigEvent(ConfigEvent.Kind.FRESH, List.of());
      default -> null; // something newer than this client
    };
  }
}
