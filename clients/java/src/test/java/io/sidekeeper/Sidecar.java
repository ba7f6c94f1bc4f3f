package io.sidekeeper;

import com.google.protobuf.Duration;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.sidekeeper.dev.v1.DevServiceGrpc;
import io.sidekeeper.dev.v1.ExpireLeaseRequest;
import io.sidekeeper.dev.v1.SuspendRequest;
import io.sidekeeper.lock.v1.BreakRequest;
import io.sidekeeper.lock.v1.GetRequest;
import io.sidekeeper.lock.v1.LockServiceGrpc;
import io.sidekeeper.lock.v1.ReleaseRequest;
import io.sidekeeper.once.v1.OnceServiceGrpc;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A sidecar for tests: {@code sidekeeper dev}, the real program with an ensemble in memory. It can
 * be frozen, killed, and started again at the same address. Its ensemble ends with it.
 */
final class Sidecar implements AutoCloseable {
  /** Seconds after which something does not happen any more. */
  static final int PATIENT = 30;

  private static final Pattern CALLERS = Pattern.compile("callers: .* (127\\.0\\.0\\.1:\\d+)");
  private static final Pattern LISTENING = Pattern.compile("listening on (127\\.0\\.0\\.1:\\d+)");
  private static final Pattern ENSEMBLE = Pattern.compile("ensemble: +(127\\.0\\.0\\.1:\\d+)");

  static final Path ROOT = Path.of("").toAbsolutePath().getParent().getParent();

  final String address;

  final Schedules schedules;

  final Sets sets;

  /** Where the sidecar makes certificates: ca.pem, client.pem, client-key.pem. */
  final Path certificates;

  /** Over TCP, with the certificates. */
  String secureAddress = "";

  /** Where programs of ZooKeeper connect, and no gRPC is spoken. */
  String ensembleAddress = "";

  /** Where the sidecar listens that was served last at this ensemble. */
  String servedAddress = "";

  private final List<Process> served = new ArrayList<>();
  private final Path directory;
  private final List<String> command = new ArrayList<>();
  private Process process;

  Sidecar() {
    this(4);
  }

  /** The leases last for so many seconds. */
  Sidecar(int leases) {
    try {
      // Short, since a Unix socket's path is at most 107 bytes.
      directory = Files.createTempDirectory(Path.of("/tmp"), "sk");
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
    certificates = directory.resolve("certificates");
    address = "unix://" + directory.resolve("s.sock");
    schedules = new Schedules(address);
    sets = new Sets(address);
    command.addAll(List.of(program(), "dev", "--listen", "127.0.0.1:0", "--listen", address));
    command.addAll(
        List.of("--tls-folder", certificates.toString(), "--session-timeout", leases + "s"));
    command.addAll(List.of("--log-level", "error"));
    start();
  }

  /** A client over TCP, with this sidecar's certificates. */
  Client clientOverTcp() throws IOException {
    return clientOverTcp(secureAddress, certificates, certificates.resolve("client.pem"));
  }

  /** A client that trusts one folder's authority, and shows a certificate, or none. */
  static Client clientOverTcp(String address, Path authority, @Nullable Path certificate)
      throws IOException {
    TlsChannelCredentials.Builder credentials =
        TlsChannelCredentials.newBuilder().trustManager(authority.resolve("ca.pem").toFile());
    if (certificate != null) {
      String key = certificate.toString().replace(".pem", "-key.pem");
      credentials.keyManager(certificate.toFile(), new File(key));
    }
    return Client.builder().address(address).credentials(credentials.build()).build();
  }

  /**
   * The sidecar's program: SIDEKEEPER_PROGRAM, or the one that `make build` has left in this tree.
   */
  static String program() {
    String built = System.getenv("SIDEKEEPER_PROGRAM");
    return built == null ? ROOT.resolve("bin/sidekeeper").toString() : built;
  }

  void start() {
    try {
      ProcessBuilder builder = new ProcessBuilder(command);
      // For what it leaves when it is killed.
      builder.environment().put("TMPDIR", directory.toString());
      process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
      awaitWelcome(process.inputReader());
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
  }

  /** Starts a sidecar as in production, in the certificates' folder and at the same ensemble. */
  void serve(String given, String policy) throws IOException {
    List<String> flags = new ArrayList<>(List.of(program(), "serve"));
    flags.addAll(List.of("--zookeeper", ensembleAddress, "--tick-time", "1s"));
    flags.addAll(List.of("--listen", "127.0.0.1:0", "--operator-listen", ""));
    flags.addAll(List.of("--audit-log", "off", "--log-level", "error"));
    if (!given.isEmpty()) {
      flags.addAll(List.of(given.split(" ")));
    }
    if (!policy.isEmpty()) {
      Files.writeString(certificates.resolve("policy.yaml"), policy);
      flags.addAll(List.of("--policy", "policy.yaml"));
    }
    ProcessBuilder builder = new ProcessBuilder(flags).directory(certificates.toFile());
    builder.environment().remove("SIDEKEEPER_TEST_TRACES"); // of one with its own ensemble
    Process started = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
    served.add(started);
    Matcher listening = LISTENING.matcher(String.valueOf(started.inputReader().readLine()));
    if (!listening.find()) {
      throw new IllegalStateException("the sidecar does not start");
    }
    servedAddress = listening.group(1);
  }

  private void awaitWelcome(BufferedReader said) throws IOException {
    for (String line = said.readLine(); line != null; line = said.readLine()) {
      Matcher callers = CALLERS.matcher(line);
      if (callers.find()) {
        secureAddress = callers.group(1);
      }
      Matcher ensemble = ENSEMBLE.matcher(line);
      if (ensemble.find()) {
        ensembleAddress = ensemble.group(1);
      }
      if (line.contains("Ctrl-C here stops it")) {
        return; // it serves
      }
    }
    throw new IllegalStateException("the sidecar does not start");
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

  /** Sends a signal, such as STOP. What is frozen stands still when this returns, or has ended. */
  void send(String signal) {
    try {
      int code =
          new ProcessBuilder("kill", "-" + signal, String.valueOf(process.pid())).start().waitFor();
      if (code != 0) {
        throw new IllegalStateException("kill ended with " + code);
      }
      Path state = Path.of("/proc/" + process.pid() + "/stat");
      while (signal.equals("STOP")
          && Files.exists(state)
          && !Files.readString(state).matches("(?s).*\\) [TZ] .*")) {
        Thread.onSpinWait();
      }
    } catch (IOException | InterruptedException failed) {
      throw new IllegalStateException(failed);
    }
  }

  /** Kills it, and returns when it is gone. */
  void kill() {
    process.destroyForcibly();
    served.forEach(Process::destroyForcibly);
    try {
      if (!process.waitFor(PATIENT, TimeUnit.SECONDS)) {
        throw new IllegalStateException("the sidecar does not end");
      }
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  boolean isRunning() {
    return process.isAlive();
  }

  /** Ends the first hold of a lock by force, as an operator does, within so many nanoseconds. */
  void breakFirst(String lock, long within) {
    call(
        channel -> {
          var stub =
              LockServiceGrpc.newBlockingStub(channel)
                  .withDeadlineAfter(within, TimeUnit.NANOSECONDS);
          var view = stub.get(GetRequest.newBuilder().setName(lock).build()).getView();
          long token = view.getHolders(0).getToken();
          return stub.break_(
              BreakRequest.newBuilder()
                  .setName(lock)
                  .setFencingToken(token)
                  .setReason("stuck")
                  .build());
        });
  }

  /** Releases a hold, as anybody can who knows its id. */
  void release(String holdId) {
    call(
        channel ->
            LockServiceGrpc.newBlockingStub(channel)
                .withDeadlineAfter(PATIENT, TimeUnit.SECONDS)
                .release(ReleaseRequest.newBuilder().setHoldId(holdId).build()));
  }

  /** The record of a key, in words; empty if there is none. */
  String recorded(String name, String key) {
    StringBuilder told = new StringBuilder();
    call(
        channel -> {
          try {
            var request =
                io.sidekeeper.once.v1.GetRequest.newBuilder().setName(name).setKey(key).build();
            var of =
                OnceServiceGrpc.newBlockingStub(channel)
                    .withDeadlineAfter(PATIENT, TimeUnit.SECONDS)
                    .get(request)
                    .getRecord();
            String state = of.getState().name().replace("STATE_", "");
            told.append(state).append(' ').append(of.getAttempt()).append(' ').append(of.getNote());
          } catch (StatusRuntimeException failed) {
            if (failed.getStatus().getCode() != Status.Code.NOT_FOUND) {
              throw failed;
            }
          }
          return told;
        });
    return told.toString().strip();
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

  private interface Call<T> {
    Object make(T of);
  }

  private void dev(Call<DevServiceGrpc.DevServiceBlockingStub> call) {
    call(
        channel ->
            call.make(
                DevServiceGrpc.newBlockingStub(channel)
                    .withDeadlineAfter(PATIENT, TimeUnit.SECONDS)));
  }

  private void call(Call<ManagedChannel> call) {
    Workers workers = new Workers();
    Transport transport = Transport.open(address, null, workers);
    try {
      call.make(transport.channel);
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
