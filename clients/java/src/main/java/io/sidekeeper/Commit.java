package io.sidekeeper;

import static io.sidekeeper.Rules.given;

import com.google.protobuf.ByteString;
import io.sidekeeper.config.v1.CheckRequest;
import io.sidekeeper.config.v1.CommitRequest;
import io.sidekeeper.config.v1.DeleteRequest;
import io.sidekeeper.config.v1.Operation;
import io.sidekeeper.config.v1.PutRequest;
import org.jspecify.annotations.Nullable;

/**
 * What to do, all or nothing: at most 100 operations, each on a key of its own. It is for one
 * thread at a time.
 */
public final class Commit {
  private final CommitRequest.Builder request = CommitRequest.newBuilder();

  /** Does nothing yet. */
  public Commit() {}

  /**
   * Adds a write.
   *
   * @param key to write
   * @param value to store: at most 1,000,000 bytes
   * @param precondition on the key; null for none
   * @return this
   */
  public Commit put(String key, byte[] value, @Nullable Precondition precondition) {
    request.addOperations(Operation.newBuilder().setPut(putOf(key, value, precondition)));
    return this;
  }

  /**
   * Adds a deletion.
   *
   * @param key to delete
   * @param precondition on the key; null for none
   * @return this
   */
  public Commit delete(String key, @Nullable Precondition precondition) {
    request.addOperations(Operation.newBuilder().setDelete(deleteOf(key, precondition)));
    return this;
  }

  /**
   * Adds a condition on a key that is not written.
   *
   * @param key to look at
   * @param precondition on the key
   * @return this
   */
  public Commit check(String key, Precondition precondition) {
    CheckRequest check =
        CheckRequest.newBuilder()
            .setKey(given("key", key))
            .setPrecondition(given("precondition", precondition).wire())
            .build();
    request.addOperations(Operation.newBuilder().setCheck(check));
    return this;
  }

  CommitRequest.Builder wire() {
    return request.clone();
  }

  static PutRequest.Builder putOf(String key, byte[] value, @Nullable Precondition precondition) {
    PutRequest.Builder put =
        PutRequest.newBuilder()
            .setKey(given("key", key))
            .setValue(ByteString.copyFrom(given("value", value)));
    if (precondition != null) {
      put.setPrecondition(precondition.wire());
    }
    return put;
  }

  static DeleteRequest.Builder deleteOf(String key, @Nullable Precondition precondition) {
    DeleteRequest.Builder delete = DeleteRequest.newBuilder().setKey(given("key", key));
    if (precondition != null) {
      delete.setPrecondition(precondition.wire());
    }
    return delete;
  }
}
