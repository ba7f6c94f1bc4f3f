package io.sidekeeper;

import io.grpc.ChannelCredentials;
import io.grpc.ConnectivityState;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioSocketChannel;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import java.net.UnixDomainSocketAddress;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The connection to a sidecar.
 *
 * <p>Unix sockets are Java's own, so that they work wherever Java has them, without native
 * libraries.
 */
final class Transport {
  /** Where a sidecar listens when nothing else is said. */
  static final String DEFAULT_ADDRESS = "unix:///run/sidekeeper/sidekeeper.sock";

  /** The environment variable that says where the sidecar is to a client that is not told. */
  static final String ADDRESS_VARIABLE = "SIDEKEEPER_ADDRESS";

  /** How many bytes of answers are on their way before the client has read some. */
  private static final int WINDOW = 1 << 20;

  /** Where the sidecar is, as it was told. */
  final String address;

  /** Whether it is a Unix socket. */
  final boolean onSocket;

  final ManagedChannel channel;
  private final MultiThreadIoEventLoopGroup loop;
  private final Workers workers;
  private final Pause pause = new Pause();

  private Transport(String text, Address address, ChannelCredentials credentials, Workers workers) {
    this.address = text;
    this.onSocket = address.path() != null;
    this.workers = workers;
    DefaultThreadFactory threads = new DefaultThreadFactory("sidekeeper-io", true);
    loop = new MultiThreadIoEventLoopGroup(1, threads, NioIoHandler.newFactory());
    channel = configure(address, credentials).eventLoopGroup(loop).build();
    channel.notifyWhenStateChanged(ConnectivityState.IDLE, this::follow);
  }

  /**
   * Does not connect yet. Throws IllegalArgumentException for an address that is none or needs
   * credentials.
   */
  static Transport open(
      @Nullable String target, @Nullable ChannelCredentials credentials, Workers workers) {
    String text = target == null ? System.getenv(ADDRESS_VARIABLE) : target;
    if (text == null || text.isEmpty()) {
      text = DEFAULT_ADDRESS;
    }
    Address address = Address.parse(text);
    if (credentials == null && !address.isLocal()) {
      throw new IllegalArgumentException(
          "sidecar \""
              + text
              + "\": an address that is neither a Unix socket nor loopback needs credentials");
    }
    return new Transport(
        text,
        address,
        credentials == null ? InsecureChannelCredentials.create() : credentials,
        workers);
  }

  // gRPC's own defaults would repeat calls that must not be repeated, and notice a dropped network
  // after hours. A Unix socket drops nothing: it breaks with the sidecar's process, and only then
  // may a lease be resumed, so that it must not be given up here. With a window that changes gRPC
  // would ask the sidecar for a PING with each answer, which costs both more than a small answer.
  private static NettyChannelBuilder configure(Address address, ChannelCredentials credentials) {
    NettyChannelBuilder builder;
    if (address.path() == null) {
      builder =
          NettyChannelBuilder.forAddress(address.host(), address.port(), credentials)
              .channelType(NioSocketChannel.class)
              .keepAliveTime(10, TimeUnit.SECONDS)
              .keepAliveTimeout(5, TimeUnit.SECONDS)
              .keepAliveWithoutCalls(true);
    } else {
      builder =
          NettyChannelBuilder.forAddress(UnixDomainSocketAddress.of(address.path()), credentials)
              .channelType(NioDomainSocketChannel.class, UnixDomainSocketAddress.class)
              .withOption(ChannelOption.SO_KEEPALIVE, null) // which Unix sockets do not have
              .overrideAuthority("localhost");
    }
    return builder
        .directExecutor()
        .disableRetry()
        .disableServiceConfigLookUp()
        .flowControlWindow(WINDOW)
        .proxyDetector(server -> null);
  }

  /**
   * Connects again soon: gRPC itself would wait up to two minutes for a sidecar that was restarted.
   */
  private void follow() {
    ConnectivityState state = channel.getState(false);
    if (state == ConnectivityState.SHUTDOWN) {
      return;
    }
    if (state == ConnectivityState.TRANSIENT_FAILURE) {
      workers.after(pause.next(), this::connectAgain);
      return;
    }
    if (state == ConnectivityState.READY) {
      pause.reset();
    }
    channel.notifyWhenStateChanged(state, this::follow);
  }

  private void connectAgain() {
    channel.resetConnectBackoff();
    follow();
  }

  /** Ends the connection and the streams on it. */
  void close() {
    channel.shutdownNow();
    loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
  }
}
