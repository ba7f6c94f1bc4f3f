package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.grpc.Status;
import java.io.IOException;
import java.nio.channels.ClosedChannelException;
import org.junit.jupiter.api.Test;

class CallsTest {
  @Test
  void aConnectionThatWasClosedUnderACallIsABrokenOne() {
    Status unknown = Status.UNKNOWN.withDescription("channel closed");
    assertEquals(
        Status.Code.UNAVAILABLE,
        Calls.broken(unknown.withCause(new ClosedChannelException())).getCode());
    assertEquals(Status.Code.UNKNOWN, Calls.broken(unknown.withCause(new IOException())).getCode());
    assertEquals(Status.Code.UNKNOWN, Calls.broken(unknown).getCode());
  }
}
