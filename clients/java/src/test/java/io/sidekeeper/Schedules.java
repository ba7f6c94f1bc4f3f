package io.sidekeeper;

import io.sidekeeper.schedule.v1.HistoryRequest;
import io.sidekeeper.schedule.v1.Outcome;
import io.sidekeeper.schedule.v1.PutRequest;
import io.sidekeeper.schedule.v1.RunRequest;
import io.sidekeeper.schedule.v1.ScheduleServiceGrpc;
import io.sidekeeper.schedule.v1.ScheduleServiceGrpc.ScheduleServiceBlockingStub;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** Schedules of the sidecar at an address, and what became of their runs. */
final class Schedules {
  private static final String FAR_AWAY = "0 0 29 2 *";

  private final String address;

  Schedules(String address) {
    this.address = address;
  }

  private <T> T ask(Function<ScheduleServiceBlockingStub, T> call) {
    Workers workers = new Workers();
    Transport transport = Transport.open(address, null, workers);
    try {
      return call.apply(
          ScheduleServiceGrpc.newBlockingStub(transport.channel)
              .withDeadlineAfter(Sidecar.PATIENT, TimeUnit.SECONDS));
    } finally {
      transport.close();
      workers.close();
    }
  }

  /** Makes a schedule whose next tick is far away. */
  void put(String name) {
    PutRequest request = PutRequest.newBuilder().setName(name).setCron(FAR_AWAY).build();
    ask(stub -> stub.put(request));
  }

  /** Asks for a run. */
  void run(String name, String id) {
    RunRequest request = RunRequest.newBuilder().setName(name).setId(id).build();
    ask(stub -> stub.run(request));
  }

  /** What became of runs, the newest first. */
  List<String> history(String name) {
    HistoryRequest request = HistoryRequest.newBuilder().setName(name).build();
    return ask(stub -> stub.history(request)).getOutcomesList().stream()
        .map(Schedules::told)
        .toList();
  }

  private static String told(Outcome outcome) {
    String state = outcome.getState().name().replace("STATE_", "").toLowerCase(Locale.ROOT);
    String ended = outcome.getRunId() + " " + state + " " + outcome.getAttempt();
    return outcome.getNote().isEmpty() ? ended : ended + ": " + outcome.getNote();
  }
}
