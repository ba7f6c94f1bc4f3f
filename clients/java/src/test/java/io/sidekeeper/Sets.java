package io.sidekeeper;

import io.sidekeeper.assignment.v1.AssignmentServiceGrpc;
import io.sidekeeper.assignment.v1.DefineRequest;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Sets of items of the sidecar at an address. */
final class Sets {
  private final String address;

  Sets(String address) {
    this.address = address;
  }

  /** Makes a set of items, or gives it others. */
  void define(String set, String... items) {
    DefineRequest request =
        DefineRequest.newBuilder().setSet(set).addAllItems(List.of(items)).setDrop(true).build();
    Workers workers = new Workers();
    Transport transport = Transport.open(address, null, workers);
    try {
      AssignmentServiceGrpc.newBlockingStub(transport.channel)
          .withDeadlineAfter(Sidecar.PATIENT, TimeUnit.SECONDS)
          .define(request);
    } finally {
      transport.close();
      workers.close();
    }
  }
}
