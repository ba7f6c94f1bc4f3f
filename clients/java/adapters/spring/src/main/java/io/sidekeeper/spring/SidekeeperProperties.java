package io.sidekeeper.spring;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * What an application's configuration says, below {@code sidekeeper}.
 *
 * @param address Where the sidecar is: unix:///path, a path, or host:port of this machine. The
 *     environment variable SIDEKEEPER_ADDRESS is this property, too. Without either, it is
 *     unix:///run/sidekeeper/sidekeeper.sock.
 * @param owner Who holds the locks of the LockRegistry, for people: at most 128 bytes. Without it,
 *     the name of the application.
 * @param lockPrefix What the names of the LockRegistry's locks begin with, before the key, such as
 *     billing/.
 */
@ConfigurationProperties("sidekeeper")
public record SidekeeperProperties(
    @Nullable String address, @Nullable String owner, @DefaultValue("") String lockPrefix) {}
