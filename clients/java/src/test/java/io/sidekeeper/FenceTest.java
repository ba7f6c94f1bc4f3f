package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.CallOptions;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.InsecureServerCredentials;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.sidekeeper.fence.FenceHeader;
import io.sidekeeper.fence.FileStore;
import io.sidekeeper.fence.Gate;
import io.sidekeeper.fence.GateInterceptor;
import io.sidekeeper.fence.GateOptions;
import io.sidekeeper.fence.Reason;
import io.sidekeeper.fence.RefusedException;
import io.sidekeeper.fence.TicketInterceptor;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.yaml.snakeyaml.Yaml;

/** Calls with tickets, and the gates that refuse stale ones. */
@Timeout(60)
@SuppressWarnings("try") // a scope has no other use than its end
class FenceTest {
  private static final String STALE =
      "lock orders: fencing token 5 is stale, since 7 has been seen: the lock was granted to another"
          + " holder";

  @TempDir private Path folder;

  private static List<Map<String, Object>> table(String part) throws IOException {
    try (var reader =
        Files.newBufferedReader(Sidecar.ROOT.resolve("clients/conformance/fence.yaml"))) {
      Map<String, List<Map<String, Object>>> table = new Yaml().load(reader);
      return table.get(part);
    }
  }

  @SuppressWarnings("unchecked")
  private static <T> List<T> list(Map<String, Object> of, String name) {
    return (List<T>) of.getOrDefault(name, List.of());
  }

  @Test
  void readsAndWritesTicketsAsInEachLanguage() throws IOException {
    for (Map<String, Object> of : table("headers")) {
      List<String> values = list(of, "values");
      if (of.containsKey("malformed")) {
        var refused =
            assertThrows(RefusedException.class, () -> FenceHeader.parse(values), of::toString);
        assertEquals(of.get("malformed"), refused.getMessage());
        assertEquals(Reason.MALFORMED, refused.reason());
      } else {
        var read = FenceHeader.parse(values).stream().map(List::of).map(FenceHeader::render);
        assertEquals(of.get("tickets"), read.toList());
      }
    }
    for (Map<String, Object> of : table("written")) {
      assertEquals(of.get("value"), FenceHeader.render(FenceHeader.parse(list(of, "tickets"))));
    }
  }

  @TestFactory
  Stream<DynamicTest> letsPassWhatGatesDoInEachLanguage() throws IOException {
    return table("gates").stream()
        .map(of -> DynamicTest.dynamicTest((String) of.get("name"), () -> play(of)));
  }

  private void play(Map<String, Object> of) throws IOException {
    Path marks = Files.createTempDirectory(folder, "gate").resolve("marks");
    AtomicBoolean silent = new AtomicBoolean();
    GateOptions options =
        new GateOptions()
            .locks(FenceTest.<String>list(of, "locks").toArray(String[]::new))
            .withoutTicket(call -> of.containsKey("without"));
    if (of.get("held") instanceof Map<?, ?> held) {
      options =
          options.verify(
              ticket -> {
                if (silent.get()) {
                  throw new IOException("away");
                }
                long current = held.get(ticket.lock()) instanceof Integer token ? token : 0;
                return new Verification(current == ticket.fencingToken(), current);
              });
    }
    Gate gate = new Gate(new FileStore(marks), options);
    for (Map<String, Object> step : FenceTest.<Map<String, Object>>list(of, "steps")) {
      switch ((String) step.getOrDefault("do", "")) {
        case "restart" -> gate = new Gate(new FileStore(marks), options);
        case "fail" -> Files.writeString(marks, "orders");
        case "silence" -> silent.set(true);
        default -> assertAnswer(step, gate);
      }
    }
  }

  private static void assertAnswer(Map<String, Object> step, Gate gate) {
    String reason = null;
    try {
      gate.admit("/shop.v1.Orders/Put", List.of((String) step.get("of")));
    } catch (RefusedException refused) {
      reason = refused.reason().name().toLowerCase().replace('_', ' ');
      assertEquals(step.getOrDefault("says", refused.getMessage()), refused.getMessage());
    }
    assertEquals(step.get("refused"), reason, step::toString);
  }

  @Test
  void ofRaisesAtOnceNoSmallerOnePassesAfterALargerOne() throws IOException {
    Path marks = folder.resolve("marks");
    AtomicLong passed = new AtomicLong();
    LongStream.rangeClosed(1, 40)
        .parallel()
        .forEach(
            token -> {
              long before = passed.get();
              try {
                long largest = new FileStore(marks).raise("orders", token);
                assertTrue(largest >= before && largest >= token);
                passed.accumulateAndGet(largest, Math::max);
              } catch (IOException failed) {
                throw new UncheckedIOException(failed);
              }
            });
    assertEquals("orders=40\n", Files.readString(marks));
  }

  @Test
  void hasTheTicketsOfWhoExcludesOthers() throws InterruptedException {
    LockOptions exclusive = new LockOptions();
    try (Sidecar sidecar = new Sidecar();
        Client client = new Client(sidecar.address);
        Lock orders = client.acquire("orders", exclusive);
        Lock table = client.acquire("table", exclusive.mode(Mode.READ));
        Lock stock = client.acquire("stock", exclusive.mode(Mode.WRITE))) {
      assertEquals(List.of(), GuardScope.tickets());
      try (GuardScope first = orders.guard();
          GuardScope second = table.guard();
          GuardScope third = stock.guard();
          GuardScope again = orders.guard()) {
        assertEquals(List.of(orders.ticket(), stock.ticket()), GuardScope.tickets());
        try (GuardScope none = GuardScope.unguarded()) {
          assertEquals("", FenceHeader.held());
        }
      }
    }
  }

  private enum Bytes implements MethodDescriptor.Marshaller<String> {
    TEXT;

    @Override
    public InputStream stream(String value) {
      return new ByteArrayInputStream(value.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public String parse(InputStream stream) {
      try {
        return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
      } catch (IOException failed) {
        throw new UncheckedIOException(failed);
      }
    }
  }

  private static MethodDescriptor<String, String> method(MethodDescriptor.MethodType type) {
    return MethodDescriptor.newBuilder(Bytes.TEXT, Bytes.TEXT)
        .setType(type)
        .setFullMethodName("shop/" + type.name())
        .build();
  }

  private static final MethodDescriptor<String, String> ONE =
      method(MethodDescriptor.MethodType.UNARY);
  private static final MethodDescriptor<String, String> SEVERAL =
      method(MethodDescriptor.MethodType.SERVER_STREAMING);

  private Server served() throws IOException {
    Gate gate =
        new Gate(
            new FileStore(folder.resolve("marks")),
            new GateOptions().withoutTicket("/shop/UNARY"::equals));
    var service =
        ServerServiceDefinition.builder("shop")
            .addMethod(
                ONE,
                ServerCalls.asyncUnaryCall(
                    (asked, answer) -> {
                      answer.onNext(FenceHeader.render(GateInterceptor.TICKETS.get()));
                      answer.onCompleted();
                    }))
            .addMethod(
                SEVERAL,
                ServerCalls.asyncServerStreamingCall(
                    (asked, answer) -> {
                      answer.onNext(FenceHeader.render(GateInterceptor.TICKETS.get()));
                      answer.onCompleted();
                    }))
            .build();
    return Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
        .addService(service)
        .intercept(new GateInterceptor(gate))
        .build()
        .start();
  }

  private static String answer(
      io.grpc.Channel channel, MethodDescriptor<String, String> method, Ticket... tickets) {
    if (tickets.length > 0) {
      try (GuardScope scope = tickets[0].guard()) {
        return answer(
            channel, method, List.of(tickets).subList(1, tickets.length).toArray(Ticket[]::new));
      }
    }
    try {
      return method == ONE
          ? ClientCalls.blockingUnaryCall(channel, method, CallOptions.DEFAULT, "")
          : ClientCalls.blockingServerStreamingCall(channel, method, CallOptions.DEFAULT, "")
              .next();
    } catch (StatusRuntimeException refused) {
      return refused.getStatus().getCode() + " " + refused.getStatus().getDescription();
    }
  }

  @Test
  void sendsTicketsAlongAndRefusesCallsAndStreams() throws IOException, InterruptedException {
    Server server = served();
    ManagedChannel plain =
        Grpc.newChannelBuilder("127.0.0.1:" + server.getPort(), InsecureChannelCredentials.create())
            .build();
    var channel = ClientInterceptors.intercept(plain, new TicketInterceptor());
    try {
      for (MethodDescriptor<String, String> method : List.of(ONE, SEVERAL)) {
        assertEquals(
            "orders=7, stock=3",
            answer(channel, method, new Ticket("orders", 7), new Ticket("stock", 3)));
        assertEquals(
            "FAILED_PRECONDITION " + STALE, answer(channel, method, new Ticket("orders", 5)));
        assertEquals(
            "INVALID_ARGUMENT sidekeeper-fence: not lock=token",
            answer(channel, method, new Ticket("or ders", 5)));
      }
      assertEquals("", answer(channel, ONE));
      assertEquals("FAILED_PRECONDITION sidekeeper-fence: no ticket", answer(channel, SEVERAL));
    } finally {
      plain.shutdownNow();
      server.shutdownNow().awaitTermination();
    }
  }
}
