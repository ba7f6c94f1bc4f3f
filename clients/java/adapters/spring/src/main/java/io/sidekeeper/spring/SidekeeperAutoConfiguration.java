package io.sidekeeper.spring;

import io.sidekeeper.Client;
import io.sidekeeper.LockOptions;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.integration.support.locks.LockRegistry;

/**
 * Gives an application a {@link Client}, which is closed with it, and where it has Spring
 * Integration, a {@link SidekeeperLockRegistry}; each unless it has its own.
 */
@AutoConfiguration
@EnableConfigurationProperties(SidekeeperProperties.class)
public class SidekeeperAutoConfiguration {
  SidekeeperAutoConfiguration() {}

  @Bean
  @ConditionalOnMissingBean
  Client sidekeeperClient(SidekeeperProperties properties) {
    String address = properties.address();
    return address == null ? new Client() : new Client(address);
  }

  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(LockRegistry.class)
  static class Locks {
    @Bean
    @ConditionalOnMissingBean(LockRegistry.class)
    SidekeeperLockRegistry sidekeeperLockRegistry(
        Client client,
        SidekeeperProperties properties,
        @Value("${spring.application.name:}") String application) {
      String owner = properties.owner() == null ? application : properties.owner();
      LockOptions options = new LockOptions().owner(owner);
      return new SidekeeperLockRegistry(client, properties.lockPrefix(), options);
    }
  }
}
