package io.sidekeeper;

import com.google.protobuf.Duration;
import io.grpc.ManagedChannel;
import io.sidekeeper.dev.v1.DevServiceGrpc;
import io.sidekeeper.dev.v1.ExpireLeaseRequest;
import io.sidekeeper.dev.v1.SuspendRequest;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/**
 * A sidecar for tests: {@code sidekeeper dev}, the real program with an ensemble in memory. It can
 * be frozen, killed, and started again at the same address. Its ensemble ends with it.
 */
final class Sidecar implements AutoCloseable {
  /** Seconds after which something does not happen any more. */
  static final int PATIENT = 30;

  static final Path ROOT = Path.of("").toAbsolutePath().getParent().getParent();

  final String address;

  /** The same sidecar over TCP. */
  final String tcp;

  private final Path directory;
  private final List<String> command = new ArrayList<>();
  private Process process;

  Sidecar(String... flags) {
    try {
      // Short, since a Unix socket's path is at most 107 bytes.
      directory = Files.createTempDirectory(Path.of("/tmp"), "sk");
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
    address = "unix://" + directory.resolve("s.sock");
    command.addAll(List.of(program(), "dev", "--listen", address, "--log-level", "error"));
    tcp = "127.0.0.1:" + freePort();
    command.addAll(List.of("--listen", tcp));
    command.addAll(flags.length == 0 ? List.of("--session-timeout", "4s") : List.of(flags));
    start();
  }

  /**
   * The sidecar's program: SIDEKEEPER_PROGRAM, or the one that `make build` has left in this tree.
   */
  private static String program() {
    String built = System.getenv("SIDEKEEPER_PROGRAM");
    return built == null ? ROOT.resolve("bin/sidekeeper").toString() : built;
  }

  private static int freePort() {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
  }

  void start() {
    try {
      process =
          new ProcessBuilder(command)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start();
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
    until(
        "the sidecar starts",
        () -> {
          if (!process.isAlive()) {
            throw new IllegalStateException("the sidecar does not start");
          }
          return Files.exists(directory.resolve("s.sock"));
        });
  }

  /** Waits until something is so that nobody tells. */
  static void until(String what, BooleanSupplier happened) {
    until(what, PATIENT, happened);
  }

  static void until(String what, double seconds, BooleanSupplier happened) {
    long end = System.nanoTime() + (long) (seconds * 1e9);
    while (!happened.getAsBoolean()) {
      if (System.nanoTime() > end) {
        throw new AssertionError(what + ": it does not happen");
      }
      pause(0.005);
    }
  }

  static void pause(double seconds) {
    try {
      TimeUnit.MICROSECONDS.sleep((long) (seconds * 1e6));
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  /** Sends a signal, such as STOP. */
  void send(String signal) {
    try {
      int code =
          new ProcessBuilder("kill", "-" + signal, String.valueOf(process.pid())).start().waitFor();
      if (code != 0) {
        throw new IllegalStateException("kill ended with " + code);
      }
    } catch (IOException | InterruptedException failed) {
      throw new IllegalStateException(failed);
    }
  }

  /** Kills it, and returns when it is gone. */
  void kill() {
    process.destroyForcibly();
    try {
      if (!process.waitFor(PATIENT, TimeUnit.SECONDS)) {
        throw new IllegalStateException("the sidecar does not end");
      }
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  /** Has the lease of a lock's holder expire. */
  void expire(String lock) {
    dev(stub -> stub.expireLease(ExpireLeaseRequest.newBuilder().setLock(lock).build()));
  }

  /** Has all leases expire. */
  void expireAll() {
    dev(stub -> stub.expireLease(ExpireLeaseRequest.newBuilder().setAll(true).build()));
  }

  /** Silences the ensemble for so long. */
  void suspend(int seconds) {
    Duration duration = Duration.newBuilder().setSeconds(seconds).build();
    dev(stub -> stub.suspend(SuspendRequest.newBuilder().setDuration(duration).build()));
  }

  private interface Call {
    Object make(DevServiceGrpc.DevServiceBlockingStub stub);
  }

  private void dev(Call call) {
    Workers workers = new Workers();
    Transport transport = Transport.open(address, null, workers);
    ManagedChannel channel = transport.channel;
    try {
      call.make(
          DevServiceGrpc.newBlockingStub(channel).withDeadlineAfter(PATIENT, TimeUnit.SECONDS));
    } finally {
      transport.close();
      workers.close();
    }
  }

  @Override
  public void close() {
    kill();
    try (Stream<Path> left = Files.walk(directory)) {
      left.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
  }
}
