package io.sidekeeper.fence;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;

/**
 * Sends along the tickets of the locks that are held around a call on the thread that makes it; see
 * {@link io.sidekeeper.GuardScope#tickets}.
 */
public final class TicketInterceptor implements ClientInterceptor {
  static final Metadata.Key<String> KEY =
      Metadata.Key.of(FenceHeader.NAME, Metadata.ASCII_STRING_MARSHALLER);

  /** Makes one. */
  public TicketInterceptor() {}

  @Override
  public <A, B> ClientCall<A, B> interceptCall(
      MethodDescriptor<A, B> method, CallOptions options, Channel next) {
    String held = FenceHeader.held();
    return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
      @Override
      public void start(Listener<B> listener, Metadata headers) {
        if (!held.isEmpty()) {
          headers.put(KEY, held);
        }
        super.start(listener, headers);
      }
    };
  }
}
