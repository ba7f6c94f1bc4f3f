package io.sidekeeper;

import com.google.protobuf.Any;
import com.google.protobuf.Duration;
import com.google.rpc.ErrorInfo;
import io.grpc.BindableService;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Server;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import io.sidekeeper.barrier.v1.BarrierServiceGrpc;
import io.sidekeeper.barrier.v1.LeaveRequest;
import io.sidekeeper.barrier.v1.LeaveResponse;
import io.sidekeeper.lease.v1.Checked;
import io.sidekeeper.lease.v1.Ended;
import io.sidekeeper.lease.v1.Event;
import io.sidekeeper.lease.v1.LeaseServiceGrpc;
import io.sidekeeper.lease.v1.MultiplexRequest;
import io.sidekeeper.lease.v1.MultiplexResponse;
import io.sidekeeper.lease.v1.Opened;
import io.sidekeeper.lease.v1.Resume;
import io.sidekeeper.lock.v1.AcquireRequest;
import io.sidekeeper.lock.v1.AcquireResponse;
import io.sidekeeper.lock.v1.ClaimRequest;
import io.sidekeeper.lock.v1.ClaimResponse;
import io.sidekeeper.lock.v1.Granted;
import io.sidekeeper.lock.v1.LockServiceGrpc;
import io.sidekeeper.lock.v1.ReleaseRequest;
import io.sidekeeper.lock.v1.ReleaseResponse;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A sidecar that says on the stream of one lease what a test has it say. It opens the lease and
 * answers for its validity by itself, unless it is dumb.
 */
final class Scripted implements AutoCloseable {
  /** What it answers for the validity; null for no answer. */
  volatile @Nullable Duration validity = Duration.newBuilder().setSeconds(60).build();

  /** Whether the lease that it opens next outlives its stream. */
  volatile boolean resumable;

  /** What the client has sent on the lease's stream, but what opens and checks it. */
  final BlockingQueue<MultiplexRequest> sent = new LinkedBlockingQueue<>();

  /** How often it was asked for the validity. */
  volatile int checks;

  /** The calls of other kinds, by name. */
  final BlockingQueue<String> calls = new LinkedBlockingQueue<>();

  /** What it answers each Leave with, before it says that all have left; and each Claim. */
  final BlockingQueue<StatusException> refusals = new LinkedBlockingQueue<>();

  /** For how long each Claim waits. */
  final BlockingQueue<java.time.Duration> waits = new LinkedBlockingQueue<>();

  /** What it answers Release with; null if it confirms it. */
  volatile @Nullable Status unreleased;

  /** Until when the client waits for the newest Leave. */
  volatile @Nullable Deadline leaveTime;

  /** With which reason it refuses to open a lease; null if it does not. */
  volatile @Nullable String refusal;

  /** What it takes to open a lease, in milliseconds. */
  volatile long openingTakes;

  private final boolean dumb;
  private final Server server;
  private final String address;
  private final @Nullable MultiThreadIoEventLoopGroup loop;
  private volatile @Nullable StreamObserver<MultiplexResponse> stream;

  /** Listens on TCP, where a lock without a lease is one call. */
  Scripted(boolean dumb) throws IOException {
    this.dumb = dumb;
    loop = null;
    server = start(NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0)));
    address = "127.0.0.1:" + server.getPort();
  }

  /** Listens on a Unix socket, where a lock without a lease gets one of its own. */
  Scripted(Path socket) throws IOException {
    dumb = false;
    loop = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    server =
        start(
            NettyServerBuilder.forAddress(UnixDomainSocketAddress.of(socket))
                .channelType(NioServerDomainSocketChannel.class)
                .bossEventLoopGroup(loop)
                .workerEventLoopGroup(loop)
                .withChildOption(ChannelOption.SO_KEEPALIVE, null)); // which those do not have
    address = "unix://" + socket;
  }

  private Server start(NettyServerBuilder builder) throws IOException {
    return builder.addService(leases()).addService(locks()).addService(barriers()).build().start();
  }

  String address() {
    return address;
  }

  private BindableService leases() {
    return new LeaseServiceGrpc.LeaseServiceImplBase() {
      @Override
      public StreamObserver<MultiplexRequest> multiplex(StreamObserver<MultiplexResponse> told) {
        stream = told;
        return new StreamObserver<>() {
          @Override
          public void onNext(MultiplexRequest request) {
            if (told == stream) { // what comes late over a stream that has ended goes nowhere
              take(request);
            }
          }

          @Override
          public void onError(Throwable cancelled) {
            calls.add("cancelled");
          }

          @Override
          public void onCompleted() {
            calls.add("no more");
            told.onCompleted();
          }
        };
      }
    };
  }

  private void take(MultiplexRequest request) {
    if (dumb) {
      return;
    }
    switch (request.getRequestCase()) {
      case OPEN -> open();
      case CHECK -> {
        checks++;
        Duration told = validity;
        if (told != null) {
          Checked.Builder checked =
              Checked.newBuilder().setCheckId(request.getCheck().getCheckId());
          say(MultiplexResponse.newBuilder().setChecked(checked.setValidFor(told)));
        }
      }
      default -> sent.add(request);
    }
  }

  private void open() {
    String refused = refusal;
    if (refused != null) {
      fail(Status.RESOURCE_EXHAUSTED, refused);
      return;
    }
    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(openingTakes));
    opened();
  }

  private BindableService barriers() {
    return new BarrierServiceGrpc.BarrierServiceImplBase() {
      @Override
      public void leave(LeaveRequest request, StreamObserver<LeaveResponse> told) {
        leaveTime = Context.current().getDeadline();
        calls.add("Leave " + request.getHoldId());
        StatusException refused = refusals.poll();
        if (refused == null) {
          told.onNext(LeaveResponse.getDefaultInstance());
          told.onCompleted();
        } else {
          told.onError(refused);
        }
      }
    };
  }

  private BindableService locks() {
    return new LockServiceGrpc.LockServiceImplBase() {
      @Override
      public void acquire(AcquireRequest request, StreamObserver<AcquireResponse> told) {
        calls.add("Acquire");
      }

      @Override
      public void claim(ClaimRequest request, StreamObserver<ClaimResponse> told) {
        calls.add("Claim " + request.getClaimId());
        waits.add(Wire.duration(request.getWaitTimeout()));
        StatusException refused = refusals.poll();
        if (refused == null) {
          told.onNext(ClaimResponse.newBuilder().setFencingToken(7).build());
          told.onCompleted();
        } else {
          told.onError(refused);
        }
      }

      @Override
      public void release(ReleaseRequest request, StreamObserver<ReleaseResponse> told) {
        calls.add("Release " + request.getHoldId() + request.getClaimId());
        Status refused = unreleased;
        if (refused == null) {
          told.onNext(ReleaseResponse.getDefaultInstance());
          told.onCompleted();
        } else {
          told.onError(refused.asException());
        }
      }
    };
  }

  /** Says that the lease is open, or is again. */
  void opened() {
    Opened.Builder opened = Opened.newBuilder().setLeaseId("lease").setResumable(resumable);
    say(MultiplexResponse.newBuilder().setOpened(opened));
  }

  void say(MultiplexResponse.Builder message) {
    synchronized (sent) {
      Objects.requireNonNull(stream).onNext(message.build());
    }
  }

  void say(long request, AcquireResponse.Builder event) {
    say(
        MultiplexResponse.newBuilder()
            .setEvent(Event.newBuilder().setRequestId(request).setAcquire(event)));
  }

  void grant(long request) {
    say(
        request,
        AcquireResponse.newBuilder()
            .setGranted(
                Granted.newBuilder().setHoldId("hold-" + request).setFencingToken(request)));
  }

  void end(Ended.Builder ended) {
    say(MultiplexResponse.newBuilder().setEnded(ended));
  }

  /** Ends the stream of the lease. */
  void fail(Status status) {
    fail(status.asException());
  }

  /** Ends the stream with a reason of the sidecar's. */
  void fail(Status status, String reason) {
    fail(refusal(status, reason));
  }

  static StatusException refusal(Status status, String reason) {
    ErrorInfo info = ErrorInfo.newBuilder().setDomain("sidekeeper").setReason(reason).build();
    return StatusProto.toStatusException(
        com.google.rpc.Status.newBuilder()
            .setCode(status.getCode().value())
            .setMessage(reason)
            .addDetails(Any.pack(info))
            .build());
  }

  private void fail(Exception status) {
    StreamObserver<MultiplexResponse> ending = Objects.requireNonNull(stream);
    stream = null;
    ending.onError(status);
  }

  /** What the next stream begins with. */
  Resume resume() throws InterruptedException {
    MultiplexRequest request = next();
    if (!request.hasResume()) {
      throw new AssertionError("nothing is resumed: " + request);
    }
    return request.getResume();
  }

  /** The next message of the client that is not about the lease itself. */
  MultiplexRequest next() throws InterruptedException {
    MultiplexRequest request = sent.poll(Sidecar.PATIENT, TimeUnit.SECONDS);
    if (request == null) {
      throw new AssertionError("the client sends nothing");
    }
    return request;
  }

  /** The id of the next message, which starts something. */
  long started() throws InterruptedException {
    MultiplexRequest request = next();
    if (!request.hasStart()) {
      throw new AssertionError("nothing is started: " + request);
    }
    return request.getStart().getRequestId();
  }

  /** The id of the next message, which stops something. */
  long stopped() throws InterruptedException {
    MultiplexRequest request = next();
    if (!request.hasStop()) {
      throw new AssertionError("nothing is stopped: " + request);
    }
    return request.getStop().getRequestId();
  }

  @Override
  public void close() {
    server.shutdownNow();
    if (loop != null) {
      loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }
  }
}
