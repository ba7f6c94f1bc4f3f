package io.sidekeeper;

import java.nio.charset.StandardCharsets;

/** A key of the configuration with its value. */
public final class Entry {
  private final String key;
  private final byte[] value;
  private final int version;
  private final long revision;
  private final long createdRevision;

  Entry(String key, byte[] value, int version, long revision, long createdRevision) {
    this.key = key;
    this.value = value;
    this.version = version;
    this.revision = revision;
    this.createdRevision = createdRevision;
  }

  /** Is what is known of an entry whose value is not told. */
  static Entry without(String key, int version, long revision) {
    return new Entry(key, new byte[0], version, revision, 0);
  }

  /**
   * Says which key it is.
   *
   * @return the key
   */
  public String key() {
    return key;
  }

  /**
   * Copies the value.
   *
   * @return the bytes that are stored; none in what put and commit return
   */
  public byte[] value() {
    return value.clone();
  }

  /**
   * Reads the value as text.
   *
   * @return the value, decoded as UTF-8
   */
  public String text() {
    return new String(value, StandardCharsets.UTF_8);
  }

  /**
   * Is what preconditions compare.
   *
   * @return the version, which changes with every put and begins anew when the key is made anew
   */
  public int version() {
    return version;
  }

  /**
   * Orders the writes of all keys.
   *
   * @return a number that is larger than that of every earlier write of any key
   */
  public long revision() {
    return revision;
  }

  /**
   * Tells the making of the key.
   *
   * @return the revision that made the key: another one tells that it was deleted and made anew; 0
   *     in what put and commit return
   */
  public long createdRevision() {
    return createdRevision;
  }

  @Override
  public String toString() {
    return key + " (version " + version + ", " + value.length + " bytes)";
  }
}
