package io.sidekeeper;

/** What must be true of a key for something to be done. */
public final class Precondition {
  private final io.sidekeeper.config.v1.Precondition wire;

  private Precondition(io.sidekeeper.config.v1.Precondition.Builder wire) {
    this.wire = wire.build();
  }

  /**
   * Demands a version.
   *
   * @param version that the key must have, from {@link Entry#version}
   * @return a precondition
   */
  public static Precondition version(int version) {
    return new Precondition(io.sidekeeper.config.v1.Precondition.newBuilder().setVersion(version));
  }

  /**
   * Demands that there is no such key.
   *
   * @return a precondition
   */
  public static Precondition missing() {
    return new Precondition(
        io.sidekeeper.config.v1.Precondition.newBuilder().setMustNotExist(true));
  }

  /**
   * Demands that there is such a key.
   *
   * @return a precondition
   */
  public static Precondition exists() {
    return new Precondition(io.sidekeeper.config.v1.Precondition.newBuilder().setMustExist(true));
  }

  io.sidekeeper.config.v1.Precondition wire() {
    return wire;
  }
}
