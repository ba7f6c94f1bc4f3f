package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.sidekeeper.config.v1.ConfigServiceGrpc;
import io.sidekeeper.config.v1.Synced;
import io.sidekeeper.config.v1.WatchRequest;
import io.sidekeeper.config.v1.WatchResponse;
import io.sidekeeper.hold.v1.Keepalive;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class WatchTest {
  /** A sidecar that sends a keepalive and a state on each stream, and is silent then. */
  private static final class Silent extends Channel {
    @Override
    @SuppressWarnings("unchecked") // the test makes calls of one method
    public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
      return (ClientCall<Q, R>) new Call();
    }

    @Override
    public String authority() {
      return "silent";
    }
  }

  /** A call that is over as soon as it is cancelled, before the one who cancels it goes on. */
  private static final class Call extends ClientCall<WatchRequest, WatchResponse> {
    private final Queue<WatchResponse> messages =
        new ArrayDeque<>(
            List.of(
                WatchResponse.newBuilder().setKeepalive(Keepalive.getDefaultInstance()).build(),
                WatchResponse.newBuilder().setSynced(Synced.getDefaultInstance()).build()));
    private @Nullable Listener<WatchResponse> listener;

    @Override
    public void start(Listener<WatchResponse> listener, Metadata headers) {
      this.listener = listener;
    }

    @Override
    public void request(int number) {
      WatchResponse next = messages.poll();
      if (next != null) {
        CompletableFuture.runAsync(() -> listener.onMessage(next));
      }
    }

    @Override
    public void cancel(@Nullable String message, @Nullable Throwable cause) {
      listener.onClose(Status.CANCELLED.withDescription(message), new Metadata());
    }

    @Override
    public void halfClose() {}

    @Override
    public void sendMessage(WatchRequest message) {}
  }

  @Test
  void aWatchOfASilentSidecarIsStaleAndGoesOn() throws Exception {
    Workers workers = new Workers();
    Calls calls = new Calls(new Silent(), "silent", workers);
    try (Watch<ConfigEvent> watch =
        new Watch<>(
            calls,
            workers,
            Duration.ofMillis(20),
            ConfigServiceGrpc.getWatchMethod(),
            WatchRequest.getDefaultInstance(),
            new ConfigEvents())) {
      for (ConfigEvent.Kind kind :
          List.of(ConfigEvent.Kind.STATE, ConfigEvent.Kind.STALE, ConfigEvent.Kind.STATE)) {
        assertEquals(kind, watch.take().kind());
      }
    } finally {
      workers.close();
    }
  }
}
