package io.sidekeeper;

import com.google.protobuf.Message;
import io.grpc.MethodDescriptor;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Start;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What one recipe is made of.
 *
 * @param core of the client
 * @param open opens a stream of its own
 * @param carried how the stream of its lease carries it; null for a lease
 * @param granted the event of the stream that grants it
 * @param keeper asks for its validity; null if that of another claim counts
 * @param giveUp has the sidecar end what the key names; null if the end of the stream does
 * @param acknowledged whether the sidecar may keep the place after a loss until it is given up
 */
record Kind<Q extends Message, R extends Message>(
    Core core,
    MethodDescriptor<Q, R> open,
    @Nullable Carried<Q, R> carried,
    String granted,
    @Nullable Keeper keeper,
    @Nullable GiveUp giveUp,
    boolean acknowledged) {
  /**
   * How the stream of a lease carries it.
   *
   * @param start makes the message that starts it
   * @param event makes the event that a stream of its own would tell
   */
  record Carried<Q, R>(Function<Q, Start.Builder> start, Function<MultiplexResponse, R> event) {}

  /** Has the sidecar end what a key names. */
  interface GiveUp {
    CompletableFuture<?> ask(String key, Duration timeout);
  }
}
