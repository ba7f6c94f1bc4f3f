package io.sidekeeper.testing;

import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import io.sidekeeper.dev.v1.DevServiceGrpc;
import io.sidekeeper.dev.v1.DevServiceGrpc.DevServiceBlockingStub;
import io.sidekeeper.errors.SidekeeperException;
import java.net.UnixDomainSocketAddress;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * The connection on which a sidecar is asked for faults: to its Unix socket as its clients have it,
 * since a lease is shown to the user alone who has opened it.
 */
final class Faults {
  /** Seconds that a fault may take to be done. */
  private static final long PATIENCE = 30;

  private final MultiThreadIoEventLoopGroup loop =
      new MultiThreadIoEventLoopGroup(
          1, new DefaultThreadFactory("sidekeeper-faults", true), NioIoHandler.newFactory());
  private final ManagedChannel channel;

  Faults(String socket) {
    channel =
        NettyChannelBuilder.forAddress(
                UnixDomainSocketAddress.of(socket), InsecureChannelCredentials.create())
            .channelType(NioDomainSocketChannel.class, UnixDomainSocketAddress.class)
            .withOption(ChannelOption.SO_KEEPALIVE, null) // which Unix sockets do not have
            .eventLoopGroup(loop)
            .directExecutor()
            .proxyDetector(server -> null)
            .overrideAuthority("localhost")
            .build();
  }

  /** Asks for one. */
  <T> T ask(Function<DevServiceBlockingStub, T> call) {
    try {
      return call.apply(
          DevServiceGrpc.newBlockingStub(channel).withDeadlineAfter(PATIENCE, TimeUnit.SECONDS));
    } catch (StatusRuntimeException refused) {
      throw SidekeeperException.of(refused.getStatus(), refused.getTrailers());
    }
  }

  void close() {
    channel.shutdownNow();
    loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
  }
}
