package io.sidekeeper.errors;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads the details that a sidecar gives with a status. What cannot be read is left out. */
final class Details {
  private static final String DOMAIN = "sidekeeper";

  private String reason = "";
  private Map<String, String> metadata = Map.of();
  private final List<FieldError> fields = new ArrayList<>();

  private Details() {}

  static SidekeeperException read(Status status, @Nullable Metadata trailers) {
    Details details = new Details();
    details.takeAll(status, trailers);
    String message = status.getDescription() == null ? "" : status.getDescription();
    String first = firstWord(message);
    if (Reasons.isKnown(first)) {
      message = message.substring(first.length() + 2);
      // What a proxy leaves that drops details.
      details.reason = details.reason.isEmpty() ? first : details.reason;
    }
    SidekeeperException made =
        Reasons.make(
            details.reason, status.getCode(), new Told(message, details.metadata, details.fields));
    if (status.getCause() != null) {
      made.initCause(status.getCause());
    }
    return made;
  }

  private static String firstWord(String message) {
    int end = message.indexOf(": ");
    return message.substring(0, Math.max(end, 0));
  }

  private void takeAll(Status status, @Nullable Metadata trailers) {
    try {
      for (Any detail : StatusProto.fromStatusAndTrailers(status, trailers).getDetailsList()) {
        take(detail);
      }
    } catch (InvalidProtocolBufferException | IllegalArgumentException unreadable) {
      reason = "";
      metadata = Map.of();
      fields.clear();
    }
  }

  private void take(Any detail) throws InvalidProtocolBufferException {
    if (detail.is(ErrorInfo.class)) {
      ErrorInfo info = detail.unpack(ErrorInfo.class);
      if (info.getDomain().equals(DOMAIN)) {
        reason = info.getReason();
        metadata = info.getMetadataMap();
      }
    } else if (detail.is(BadRequest.class)) {
      for (BadRequest.FieldViolation violation :
          detail.unpack(BadRequest.class).getFieldViolationsList()) {
        fields.add(new FieldError(violation.getField(), violation.getDescription()));
      }
    }
  }
}
