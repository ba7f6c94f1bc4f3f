/** Errors are made from domain and reason. */

import assert from "node:assert/strict";
import test from "node:test";

import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Metadata, type ServiceError, status } from "@grpc/grpc-js";

import { byReason, fromStatus } from "../src/errors.js";
import { Reason } from "../src/gen/sidekeeper/errors/v1/errors.js";
import { KeyNotFoundError, LockHeldError, SidekeeperError } from "../src/index.js";

void test("each reason has a class that is named after it", () => {
  const reasons = Object.keys(Reason).filter((name) => !/^-?\d+$/.test(name) && !["UNSPECIFIED", "UNRECOGNIZED"].includes(name));
  assert.deepEqual([...byReason.keys()].sort(), reasons.sort());
  for (const [reason, kind] of byReason) {
    const words = reason.toLowerCase().split("_");
    assert.equal(kind.name, `${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")}Error`);
    assert.equal(new kind(status.ABORTED, { message: "" }).reason, reason);
  }
});

/** A message of fields that are texts or messages, by their numbers. */
function message(...fields: [number, string | Uint8Array][]): Uint8Array {
  const writer = new BinaryWriter();
  for (const [number, value] of fields) {
    writer.tag(number, WireType.LengthDelimited);
    writer.bytes(typeof value === "string" ? new TextEncoder().encode(value) : value);
  }
  return writer.finish();
}

function failure(code: status, details: string, ...any: [string, Uint8Array][]): ServiceError {
  const metadata = new Metadata();
  if (any.length > 0) {
    const bytes = message(
      ...any.map(([type, value]): [number, Uint8Array] => [
        3,
        message([1, `type.googleapis.com/google.rpc.${type}`], [2, value]),
      ]),
    );
    metadata.set("grpc-status-details-bin", Buffer.from(bytes));
  }
  return Object.assign(new Error(details), { code, details, metadata });
}

void test("whoever has no contact is told so, without what gRPC begins and does not end", () => {
  const error = fromStatus(failure(status.UNAVAILABLE, "Last error: connect ENOENT /nowhere. Resolution note: "));
  assert.match(error.message, /^the sidecar is not reachable \(Last error: connect ENOENT \/nowhere\): see that it runs, /);
});

void test("details decide", () => {
  const info = message([1, "KEY_NOT_FOUND"], [2, "sidekeeper"], [3, message([1, "key"], [2, "a"])]);
  const bad = message([1, message([1, "key"], [2, "is missing"])]);
  const error = fromStatus(failure(status.NOT_FOUND, "LOCK_HELD: no such key", ["ErrorInfo", info], ["BadRequest", bad]));
  assert.ok(error instanceof KeyNotFoundError);
  assert.equal(error.message, "no such key");
  assert.equal(error.name, "KeyNotFoundError");
  assert.deepEqual(error.metadata, { key: "a" });
  assert.deepEqual(error.fields, [{ field: "key", rule: "is missing" }]);
});

void test("another domain does not", () => {
  const info = message([1, "KEY_NOT_FOUND"], [2, "example.org"]);
  const error = fromStatus(failure(status.NOT_FOUND, "nothing there", ["ErrorInfo", info]));
  assert.equal(error.constructor, SidekeeperError);
  assert.equal(error.reason, "");
});

void test("without details the message names the reason", () => {
  const error = fromStatus(failure(status.FAILED_PRECONDITION, "LOCK_HELD: somebody holds it"));
  assert.ok(error instanceof LockHeldError);
  assert.equal(error.message, "somebody holds it");
});

void test("details that cannot be read are left out", () => {
  const metadata = new Metadata();
  metadata.set("grpc-status-details-bin", Buffer.from([0x1a, 0xff]));
  const error = fromStatus(
    Object.assign(new Error(""), { code: status.NOT_FOUND, details: "KEY_NOT_FOUND: no such key", metadata }),
  );
  assert.ok(error instanceof KeyNotFoundError);
});
