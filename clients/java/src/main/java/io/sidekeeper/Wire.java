package io.sidekeeper;

import com.google.protobuf.Any;
import com.google.protobuf.Duration;
import com.google.protobuf.Timestamp;
import com.google.rpc.BadRequest;
import com.google.rpc.Code;
import com.google.rpc.ErrorInfo;
import com.google.rpc.Status;
import io.grpc.StatusException;
import io.grpc.protobuf.StatusProto;
import io.sidekeeper.config.v1.Change;
import io.sidekeeper.errors.SidekeeperException;
import io.sidekeeper.hold.v1.RevocationRequested;
import io.sidekeeper.lease.v1.Ended;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** What calls take and give, from and to messages. */
final class Wire {
  private Wire() {}

  static java.time.Duration duration(Duration wire) {
    return java.time.Duration.ofSeconds(wire.getSeconds(), wire.getNanos());
  }

  static Duration duration(java.time.Duration duration) {
    return Duration.newBuilder()
        .setSeconds(duration.getSeconds())
        .setNanos(duration.getNano())
        .build();
  }

  /** What the single call of a request would fail with; null for OK. */
  static @Nullable SidekeeperException failure(Ended ended) {
    if (ended.getCode() == Code.OK_VALUE) {
      return null;
    }
    ErrorInfo.Builder info =
        ErrorInfo.newBuilder()
            .setDomain("sidekeeper")
            .setReason(ended.getReason())
            .putAllMetadata(ended.getMetadataMap());
    BadRequest.Builder fields = BadRequest.newBuilder();
    if (ended.containsMetadata("field")) {
      fields
          .addFieldViolationsBuilder()
          .setField(ended.getMetadataOrThrow("field"))
          .setDescription(ended.getMetadataOrDefault("rule", ""));
    }
    StatusException told =
        StatusProto.toStatusException(
            Status.newBuilder()
                .setCode(ended.getCode())
                .setMessage(ended.getMessage())
                .addDetails(Any.pack(info.build()))
                .addDetails(Any.pack(fields.build()))
                .build());
    return SidekeeperException.of(told.getStatus(), told.getTrailers());
  }

  static Mode mode(io.sidekeeper.hold.v1.Mode wire) {
    return switch (wire) {
      case MODE_READ -> Mode.READ;
      case MODE_WRITE -> Mode.WRITE;
      default -> Mode.EXCLUSIVE;
    };
  }

  static Revocation revocation(RevocationRequested wire) {
    Optional<java.time.Duration> grace =
        wire.hasGrace() ? Optional.of(duration(wire.getGrace())) : Optional.empty();
    return new Revocation(wire.getRequestedBy(), wire.getReason(), grace);
  }

  static io.sidekeeper.hold.v1.Mode mode(Mode mode) {
    return switch (mode) {
      case EXCLUSIVE -> io.sidekeeper.hold.v1.Mode.MODE_EXCLUSIVE;
      case READ -> io.sidekeeper.hold.v1.Mode.MODE_READ;
      case WRITE -> io.sidekeeper.hold.v1.Mode.MODE_WRITE;
    };
  }

  static io.sidekeeper.once.v1.Policy policy(Policy policy) {
    return switch (policy) {
      case RETRY -> io.sidekeeper.once.v1.Policy.POLICY_RETRY;
      case SKIP -> io.sidekeeper.once.v1.Policy.POLICY_SKIP;
    };
  }

  static io.sidekeeper.once.v1.Outcome outcome(Outcome outcome) {
    return switch (outcome) {
      case SUCCEEDED -> io.sidekeeper.once.v1.Outcome.OUTCOME_SUCCEEDED;
      case FAILED -> io.sidekeeper.once.v1.Outcome.OUTCOME_FAILED;
    };
  }

  static io.sidekeeper.membership.v1.OnConflict conflict(OnConflict conflict) {
    return switch (conflict) {
      case REJECT -> io.sidekeeper.membership.v1.OnConflict.ON_CONFLICT_REJECT;
      case WAIT -> io.sidekeeper.membership.v1.OnConflict.ON_CONFLICT_WAIT;
      case REPLACE -> io.sidekeeper.membership.v1.OnConflict.ON_CONFLICT_REPLACE;
    };
  }

  static Contender contender(io.sidekeeper.hold.v1.Contender wire) {
    return new Contender(
        mode(wire.getMode()),
        wire.getOwner(),
        wire.getMetadataMap(),
        wire.getToken(),
        duration(wire.getAge()),
        wire.getForeign(),
        wire.getRevocationRequested(),
        wire.getIdentity(),
        wire.hasClaim() ? Optional.of(reservation(wire.getClaim())) : Optional.empty());
  }

  private static Reservation reservation(io.sidekeeper.hold.v1.Reservation wire) {
    Optional<Instant> until =
        wire.hasUntil() ? Optional.of(instant(wire.getUntil())) : Optional.empty();
    return new Reservation(wire.getReason(), until);
  }

  static Instant instant(Timestamp wire) {
    return Instant.ofEpochSecond(wire.getSeconds(), wire.getNanos());
  }

  static List<Contender> contenders(List<io.sidekeeper.hold.v1.Contender> wire) {
    return wire.stream().map(Wire::contender).toList();
  }

  static LockView lockView(io.sidekeeper.lock.v1.View wire, boolean stale) {
    return new LockView(
        wire.getName(),
        contenders(wire.getHoldersList()),
        contenders(wire.getWaitersList()),
        wire.getWaitersOmitted(),
        stale);
  }

  static GroupView groupView(io.sidekeeper.membership.v1.View wire, boolean stale) {
    List<GroupMember> members = new ArrayList<>();
    for (io.sidekeeper.membership.v1.Member member : wire.getMembersList()) {
      members.add(
          new GroupMember(
              member.getMember(),
              member.getIncarnation(),
              member.getOwner(),
              member.getMetadataMap(),
              duration(member.getAge()),
              member.getForeign(),
              member.getText(),
              member.getIdentity()));
    }
    return new GroupView(wire.getGroup(), members, wire.getMembersOmitted(), stale);
  }

  static Entry entry(io.sidekeeper.config.v1.Entry wire) {
    return new Entry(
        wire.getKey(),
        wire.getValue().toByteArray(),
        wire.getVersion(),
        wire.getRevision(),
        wire.getCreatedRevision());
  }

  static ConfigChange change(Change wire) {
    if (wire.hasDeleted()) {
      return new ConfigChange(Entry.without(wire.getDeleted().getKey(), 0, 0), true, false, false);
    }
    return new ConfigChange(
        entry(wire.getPut().getEntry()),
        false,
        wire.getPut().getCoalesced(),
        wire.getPut().getRecreated());
  }
}
