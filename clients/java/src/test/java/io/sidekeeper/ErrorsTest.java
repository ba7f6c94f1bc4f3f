package io.sidekeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;

import com.google.protobuf.Any;
import com.google.rpc.BadRequest;
import com.google.rpc.Code;
import com.google.rpc.ErrorInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.sidekeeper.errors.AlreadyDoneException;
import io.sidekeeper.errors.AssignmentInUseException;
import io.sidekeeper.errors.AssignmentNotFoundException;
import io.sidekeeper.errors.ClocksDisagreeException;
import io.sidekeeper.errors.EnsembleUnreachableException;
import io.sidekeeper.errors.FieldError;
import io.sidekeeper.errors.GuardLostException;
import io.sidekeeper.errors.ItemsAssignedException;
import io.sidekeeper.errors.KeyNotFoundException;
import io.sidekeeper.errors.LockHeldException;
import io.sidekeeper.errors.MemberExistsException;
import io.sidekeeper.errors.NotRepeatedException;
import io.sidekeeper.errors.OutcomeUnknownException;
import io.sidekeeper.errors.PreconditionFailedException;
import io.sidekeeper.errors.ReleaseUnconfirmedException;
import io.sidekeeper.errors.ScheduleNotFoundException;
import io.sidekeeper.errors.SequenceExistsException;
import io.sidekeeper.errors.SequenceNotFoundException;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.errors.SupersededException;
import io.sidekeeper.errors.TooManyKeysException;
import io.sidekeeper.errors.WaitTimeoutException;
import io.sidekeeper.errors.v1.Reason;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Errors are made from domain and reason. */
class ErrorsTest {
  private static SidekeeperException failure(
      Code code, String message, com.google.protobuf.Message... details) {
    var status = com.google.rpc.Status.newBuilder().setCode(code.getNumber()).setMessage(message);
    Arrays.stream(details).map(Any::pack).forEach(status::addDetails);
    StatusRuntimeException thrown = StatusProto.toStatusRuntimeException(status.build());
    return SidekeeperException.of(thrown.getStatus(), thrown.getTrailers());
  }

  private static ErrorInfo info(String domain, String reason) {
    return ErrorInfo.newBuilder()
        .setDomain(domain)
        .setReason(reason)
        .putMetadata("key", "a")
        .build();
  }

  @ParameterizedTest
  @EnumSource(
      value = Reason.class,
      mode = EnumSource.Mode.EXCLUDE,
      names = {"REASON_UNSPECIFIED", "UNRECOGNIZED"})
  void eachReasonIsKept(Reason reason) {
    String name = reason.name().substring("REASON_".length());
    SidekeeperException made = failure(Code.ABORTED, "why", info("sidekeeper", name));
    assertEquals(name, made.reason());
    assertEquals("why", made.getMessage());
    assertEquals(made.getClass().getName() + ": ABORTED (" + name + "): why", made.toString());
    assertEquals(made.getClass(), made.again().getClass());
    assertSame(made, made.again().getCause());
    SidekeeperException withoutDetails = failure(Code.ABORTED, name + ": why");
    assertEquals(made.toString(), withoutDetails.toString());
  }

  @ParameterizedTest
  @ValueSource(
      classes = {
        AlreadyDoneException.class,
        AssignmentInUseException.class,
        AssignmentNotFoundException.class,
        ClocksDisagreeException.class,
        EnsembleUnreachableException.class,
        GuardLostException.class,
        ItemsAssignedException.class,
        KeyNotFoundException.class,
        LockHeldException.class,
        MemberExistsException.class,
        NotRepeatedException.class,
        OutcomeUnknownException.class,
        PreconditionFailedException.class,
        ReleaseUnconfirmedException.class,
        ScheduleNotFoundException.class,
        SequenceExistsException.class,
        SequenceNotFoundException.class,
        SupersededException.class,
        TooManyKeysException.class,
        WaitTimeoutException.class
      })
  void aClassIsNamedAfterItsReason(Class<?> kind) {
    String words = kind.getSimpleName().replace("Exception", "");
    String name = words.replaceAll("(?<=.)([A-Z])", "_$1").toUpperCase(Locale.ROOT);
    SidekeeperException made = failure(Code.ABORTED, "why", info("sidekeeper", name));
    assertEquals(kind, made.getClass());
    assertEquals(name, made.reason());
  }

  @Test
  void aReasonWithoutAClassIsAnExceptionThatTellsIt() {
    SidekeeperException made =
        failure(Code.RESOURCE_EXHAUSTED, "too many", info("sidekeeper", "LEASE_LIMIT"));
    assertEquals(SidekeeperException.class, made.getClass());
    assertEquals(SidekeeperException.class, made.again().getClass());
    assertEquals("LEASE_LIMIT", made.again().reason());
    assertEquals(Map.of("key", "a"), made.again().metadata());
  }

  @Test
  void detailsDecide() {
    BadRequest bad =
        BadRequest.newBuilder()
            .addFieldViolations(
                BadRequest.FieldViolation.newBuilder().setField("key").setDescription("is missing"))
            .build();
    SidekeeperException made =
        failure(Code.NOT_FOUND, "LOCK_HELD: no such key", info("sidekeeper", "KEY_NOT_FOUND"), bad);
    assertInstanceOf(KeyNotFoundException.class, made);
    assertEquals("no such key", made.getMessage());
    assertEquals(Status.Code.NOT_FOUND, made.code());
    assertEquals(Map.of("key", "a"), made.metadata());
    assertEquals(List.of(new FieldError("key", "is missing")), made.fields());
  }

  @Test
  void anotherDomainDoesNot() {
    SidekeeperException made =
        failure(Code.NOT_FOUND, "nothing there", info("example.org", "KEY_NOT_FOUND"));
    assertEquals(SidekeeperException.class, made.getClass());
    assertEquals("", made.reason());
  }

  @Test
  void withoutDetailsTheMessageNamesTheReason() {
    SidekeeperException made =
        SidekeeperException.of(
            Status.FAILED_PRECONDITION.withDescription("LOCK_HELD: somebody holds it"), null);
    assertInstanceOf(LockHeldException.class, made);
    assertEquals("somebody holds it", made.getMessage());
  }

  @Test
  void detailsThatCannotBeReadAreLeftOut() {
    Metadata trailers = new Metadata();
    trailers.put(
        Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER),
        new byte[] {0x1a, (byte) 0xff});
    SidekeeperException made =
        SidekeeperException.of(
            Status.NOT_FOUND.withDescription("KEY_NOT_FOUND: no such key"), trailers);
    assertInstanceOf(KeyNotFoundException.class, made);
  }

  @Test
  void aReasonThatIsNewerThanTheClientIsKept() {
    SidekeeperException made = failure(Code.ABORTED, "why", info("sidekeeper", "NEWER"));
    assertEquals(SidekeeperException.class, made.getClass());
    assertEquals("NEWER", made.reason());
  }
}
