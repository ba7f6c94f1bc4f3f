package io.sidekeeper;

import static io.sidekeeper.Rules.given;

import io.sidekeeper.config.v1.CommitRequest;
import io.sidekeeper.config.v1.ConfigServiceGrpc;
import io.sidekeeper.config.v1.Consistency;
import io.sidekeeper.config.v1.DeleteRequest;
import io.sidekeeper.config.v1.GetRequest;
import io.sidekeeper.config.v1.ListRequest;
import io.sidekeeper.config.v1.ListResponse;
import io.sidekeeper.config.v1.Operation;
import io.sidekeeper.config.v1.PutRequest;
import io.sidekeeper.config.v1.Result;
import io.sidekeeper.config.v1.WatchRequest;
import io.sidekeeper.errors.GuardLostException;
import io.sidekeeper.errors.KeyNotFoundException;
import io.sidekeeper.errors.OutcomeUnknownException;
import io.sidekeeper.errors.PreconditionFailedException;
import io.sidekeeper.errors.SidekeeperException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The configuration that a client reaches. Values are at most 1,000,000 bytes; strings are written
 * as UTF-8. Its calls take up to ten seconds while the sidecar or the ensemble is away.
 *
 * <p>What a body of {@link Client#withLock} writes is written only while the lock is held (see
 * {@link Lock#guard}); otherwise it is {@link GuardLostException}.
 */
public final class Config {
  private final Core core;

  Config(Core core) {
    this.core = core;
  }

  /**
   * Reads a key as the sidecar's own connection to the ensemble shows it, which may be some ticks
   * old.
   *
   * @param key to read
   * @return its entry
   * @throws InterruptedException if the thread is interrupted
   * @throws KeyNotFoundException if there is no such key
   * @throws SidekeeperException if it cannot be read
   */
  public Entry get(String key) throws InterruptedException {
    return Waiting.await(read(key, Consistency.CONSISTENCY_LOCAL));
  }

  /**
   * Does the same as {@link #get}, without a wait.
   *
   * @param key to read
   * @return its entry, or what get throws
   */
  public CompletableFuture<Entry> getAsync(String key) {
    return core.workers.hand(read(key, Consistency.CONSISTENCY_LOCAL));
  }

  /**
   * Reads a key at least as new as all that anybody had written before. It takes a write of the
   * ensemble.
   *
   * @param key to read
   * @return its entry
   * @throws InterruptedException if the thread is interrupted
   * @throws KeyNotFoundException if there is no such key
   * @throws SidekeeperException if it cannot be read
   */
  public Entry getLinearizable(String key) throws InterruptedException {
    return Waiting.await(read(key, Consistency.CONSISTENCY_LINEARIZABLE));
  }

  private CompletableFuture<Entry> read(String key, Consistency consistency) {
    GetRequest request =
        GetRequest.newBuilder().setKey(given("key", key)).setConsistency(consistency).build();
    return core.calls
        .insist(ConfigServiceGrpc.getGetMethod(), request)
        .thenApply(reply -> Wire.entry(reply.getEntry()));
  }

  /**
   * Writes a key, and makes it if it is missing.
   *
   * @param key to write
   * @param value to store
   * @return the entry without its value
   * @throws InterruptedException if the thread is interrupted; it may be written then
   * @throws OutcomeUnknownException if it may have been written, or may still be in a moment
   * @throws SidekeeperException if it was not written, or the sidecar has not answered
   */
  public Entry put(String key, String value) throws InterruptedException {
    return put(key, given("value", value).getBytes(StandardCharsets.UTF_8), null);
  }

  /**
   * Writes a key if it meets a precondition.
   *
   * @param key to write
   * @param value to store
   * @param precondition on the key
   * @return the entry without its value
   * @throws InterruptedException if the thread is interrupted; it may be written then
   * @throws PreconditionFailedException if it was not written for that; its metadata tell the key's
   *     version
   * @throws OutcomeUnknownException if it may have been written, or may still be in a moment
   * @throws SidekeeperException if it was not written, or the sidecar has not answered
   */
  public Entry put(String key, String value, Precondition precondition)
      throws InterruptedException {
    return put(key, given("value", value).getBytes(StandardCharsets.UTF_8), precondition);
  }

  /**
   * Writes bytes.
   *
   * @param key to write
   * @param value to store
   * @param precondition on the key; null for none
   * @return the entry without its value
   * @throws InterruptedException if the thread is interrupted; it may be written then
   * @throws PreconditionFailedException if it was not written for that; its metadata tell the key's
   *     version
   * @throws OutcomeUnknownException if it may have been written, or may still be in a moment
   * @throws SidekeeperException if it was not written, or the sidecar has not answered
   */
  public Entry put(String key, byte[] value, @Nullable Precondition precondition)
      throws InterruptedException {
    PutRequest request =
        Commit.putOf(key, value, precondition).addAllGuards(GuardScope.guards(core)).build();
    var reply = Waiting.await(core.calls.attempt(ConfigServiceGrpc.getPutMethod(), request));
    return Entry.without(key, reply.getVersion(), reply.getRevision());
  }

  /**
   * Deletes a key.
   *
   * @param key to delete
   * @throws InterruptedException if the thread is interrupted; it may be gone then
   * @throws KeyNotFoundException if there is no such key
   * @throws OutcomeUnknownException if it may be gone, or may still be in a moment
   * @throws SidekeeperException if it was not deleted, with the reason KEY_HAS_CHILDREN if other
   *     keys lie below it, or the sidecar has not answered
   */
  public void delete(String key) throws InterruptedException {
    delete(key, null);
  }

  /**
   * Deletes a key if it meets a precondition.
   *
   * @param key to delete
   * @param precondition on the key; null for none
   * @throws InterruptedException if the thread is interrupted; it may be gone then
   * @throws PreconditionFailedException if it was not deleted for that
   * @throws SidekeeperException as without a precondition
   */
  public void delete(String key, @Nullable Precondition precondition) throws InterruptedException {
    DeleteRequest request =
        Commit.deleteOf(key, precondition).addAllGuards(GuardScope.guards(core)).build();
    Waiting.await(core.calls.attempt(ConfigServiceGrpc.getDeleteMethod(), request));
  }

  /**
   * Carries out a commit. If nothing was done for want of a precondition, the metadata of the
   * exception tell the {@code operation}, counted from 0, the {@code key}, and its {@code version}
   * if it is there.
   *
   * @param commit what to do, all or nothing
   * @return an entry without its value for each operation; only those of puts are filled in
   * @throws InterruptedException if the thread is interrupted; all may be done then
   * @throws PreconditionFailedException if a key does not meet its precondition
   * @throws KeyNotFoundException if a key that is to be deleted is not there
   * @throws OutcomeUnknownException if all may have been done, or may still be in a moment
   * @throws SidekeeperException if nothing was done, or the sidecar has not answered
   */
  public List<Entry> commit(Commit commit) throws InterruptedException {
    CommitRequest request =
        given("commit", commit).wire().addAllGuards(GuardScope.guards(core)).build();
    var reply = Waiting.await(core.calls.attempt(ConfigServiceGrpc.getCommitMethod(), request));
    List<Entry> entries = new ArrayList<>();
    for (int i = 0; i < reply.getResultsCount(); i++) {
      Operation operation = request.getOperations(i);
      Result result = reply.getResults(i);
      String key = operation.hasPut() ? operation.getPut().getKey() : "";
      entries.add(Entry.without(key, result.getVersion(), result.getRevision()));
    }
    return entries;
  }

  /**
   * Shows keys with their values. It shows each key as it was at some moment, not all at the same
   * one.
   *
   * @param prefix whole segments that keys begin with; empty for all
   * @return the entries in the order of keys
   * @throws InterruptedException if the thread is interrupted
   * @throws SidekeeperException if they cannot be read
   */
  public List<Entry> list(String prefix) throws InterruptedException {
    List<Entry> entries = new ArrayList<>();
    String token = "";
    do {
      ListRequest request =
          ListRequest.newBuilder()
              .setPrefix(given("prefix", prefix))
              .setPageSize(1000)
              .setPageToken(token)
              .build();
      ListResponse page =
          Waiting.await(core.calls.insist(ConfigServiceGrpc.getListMethod(), request));
      page.getEntriesList().stream().map(Wire::entry).forEach(entries::add);
      token = page.getNextPageToken();
    } while (!token.isEmpty());
    return entries;
  }

  /**
   * Tells the state of some keys, and then what changes, also across restarts of the sidecar. It
   * always ends up at what is stored.
   *
   * @param keys at most 1,000, none twice
   * @return the events; close it
   */
  public Watch<ConfigEvent> watch(Collection<String> keys) {
    return events(WatchRequest.newBuilder().addAllKeys(Rules.all("keys", keys)));
  }

  /**
   * Tells the state of all keys at and below a prefix, and then what changes, also across restarts
   * of the sidecar. It always ends up at what is stored.
   *
   * @param prefix whole segments that keys begin with; empty for all
   * @return the events; close it
   */
  public Watch<ConfigEvent> watchPrefix(String prefix) {
    return events(WatchRequest.newBuilder().setPrefix(given("prefix", prefix)));
  }

  private Watch<ConfigEvent> events(WatchRequest.Builder asked) {
    WatchRequest request = asked.setKeepalive(Watch.KEEPALIVE).build();
    return new Watch<>(core, ConfigServiceGrpc.getWatchMethod(), request, new ConfigEvents());
  }

  /**
   * Copies all keys at and below a prefix, and follows them.
   *
   * @param prefix whole segments that keys begin with; empty for all
   * @return the copy when it is complete; close it
   * @throws InterruptedException if the thread is interrupted
   * @throws SidekeeperException if the sidecar refuses it; while it is away, this waits
   */
  public ConfigView view(String prefix) throws InterruptedException {
    return ConfigView.of(watchPrefix(prefix));
  }
}
