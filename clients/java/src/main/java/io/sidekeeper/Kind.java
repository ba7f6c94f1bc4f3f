package io.sidekeeper;

import com.google.protobuf.Message;
import io.grpc.MethodDescriptor;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * What one recipe is made of.
 *
 * @param core of the client
 * @param open opens the stream
 * @param granted the event of the stream that grants it
 * @param keeper asks for its validity; null if that of another claim counts
 * @param giveUp has the sidecar end what the key names; null if the end of the stream does
 * @param acknowledged whether the sidecar may keep the place after a loss until it is given up
 */
record Kind<Q, R extends Message>(
    Core core,
    MethodDescriptor<Q, R> open,
    String granted,
    @Nullable Keeper keeper,
    @Nullable GiveUp giveUp,
    boolean acknowledged) {
  /** Has the sidecar end what a key names. */
  interface GiveUp {
    CompletableFuture<?> ask(String key, Duration timeout);
  }
}
