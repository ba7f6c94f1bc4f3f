package io.sidekeeper;

import io.grpc.ChannelCredentials;
import org.jspecify.annotations.Nullable;

/** How a client reaches the sidecar. Begin with {@link Client#builder}. */
public final class ClientBuilder {
  @Nullable String address;
  @Nullable ChannelCredentials credentials;

  ClientBuilder() {}

  /**
   * Says where the sidecar is. Without it, the environment does, as for {@link Client#Client()}.
   *
   * @param address {@code unix:///path}, a path, or {@code host:port}
   * @return this
   */
  public ClientBuilder address(String address) {
    this.address = Rules.given("address", address);
    return this;
  }

  /**
   * Says how to prove who is who. Addresses that are neither a Unix socket nor loopback need it.
   *
   * @param credentials such as those of {@link io.grpc.TlsChannelCredentials}, which also show a
   *     certificate of the caller's
   * @return this
   */
  public ClientBuilder credentials(ChannelCredentials credentials) {
    this.credentials = Rules.given("credentials", credentials);
    return this;
  }

  /**
   * Makes the client. It does not wait for a connection; the first call does.
   *
   * @return a client; close it
   * @throws IllegalArgumentException for an address that is none, or needs credentials
   */
  public Client build() {
    return new Client(this);
  }
}
