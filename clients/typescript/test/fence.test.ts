/** Calls with tickets, and the gates that refuse stale ones. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";

import {
  Client as Channel,
  Metadata,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type ServiceError,
  credentials,
  status,
} from "@grpc/grpc-js";
import { parse } from "yaml";

import { Client, Ticket, type Verification, fence, tickets, unguarded } from "../src/index.js";
import { ROOT, Sidecar } from "./sidecar.js";

interface Step {
  readonly do?: string;
  readonly of?: string;
  readonly refused?: string;
  readonly says?: string;
}

interface Table {
  readonly headers: readonly { readonly values: string[]; readonly tickets?: string[]; readonly malformed?: string }[];
  readonly written: readonly { readonly tickets: string[]; readonly value: string }[];
  readonly gates: readonly {
    readonly name: string;
    readonly locks?: string[];
    readonly without?: boolean;
    readonly held?: Readonly<Record<string, number>>;
    readonly steps: readonly Step[];
  }[];
}

const table = parse(readFileSync(path.join(ROOT, "clients/conformance/fence.yaml"), "utf8")) as Table;

function marksOf(t: TestContext): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), "sk"));
  t.after(() => {
    rmSync(folder, { recursive: true });
  });
  return path.join(folder, "marks");
}

void test("tickets are read and written as in each language", () => {
  for (const { values, tickets = [], malformed } of table.headers) {
    if (malformed === undefined) {
      assert.deepEqual(
        fence.parse(values).map((ticket) => fence.render([ticket])),
        tickets,
      );
    } else {
      assert.throws(() => fence.parse(values), { name: "RefusedError", reason: "malformed", message: malformed }, values.join());
    }
  }
  for (const { tickets, value } of table.written) {
    assert.equal(fence.render(fence.parse(tickets)), value);
  }
});

async function refusal(admitted: Promise<unknown>): Promise<{ reason?: string; message?: string }> {
  try {
    await admitted;
    return {};
  } catch (error) {
    assert.ok(error instanceof fence.RefusedError, String(error));
    return error;
  }
}

for (const of of table.gates) {
  void test(`gates, as in each language: ${of.name}`, async (t) => {
    const marks = marksOf(t);
    let silent = false;
    const logged: string[] = [];
    const logger = { error: (message: string) => logged.push(message) };
    const verify = async ({ lock, fencingToken }: Ticket): Promise<Verification> => {
      const currentToken = BigInt(of.held?.[lock] ?? 0);
      return silent ? Promise.reject(new Error("away")) : Promise.resolve({ held: currentToken === fencingToken, currentToken });
    };
    const opened = (): fence.Gate =>
      new fence.Gate(new fence.FileStore(marks), {
        locks: of.locks ?? [],
        withoutTicket: () => of.without === true,
        logger,
        ...(of.held === undefined ? {} : { verify }),
      });
    let gate = opened();
    for (const step of of.steps) {
      if (step.do === "restart") {
        gate = opened();
      } else if (step.do === "fail") {
        writeFileSync(marks, "orders");
      } else if (step.do === "silence") {
        silent = true;
      } else {
        const { reason, message } = await refusal(gate.admit("/shop.v1.Orders/Put", [step.of ?? ""]));
        assert.equal(reason, step.refused, message);
        assert.equal(message, step.says ?? message);
        assert.deepEqual(logged.splice(0), reason === "undecided" ? ["a call cannot be fenced: /shop.v1.Orders/Put"] : []);
      }
    }
  });
}

void test("of raises at once no smaller one passes after a larger one", async (t) => {
  const marks = marksOf(t);
  let passed = 0n;
  const raise = async (token: bigint): Promise<void> => {
    const before = passed;
    const largest = await new fence.FileStore(marks).raise("orders", token);
    assert.ok(largest >= before && largest >= token);
    passed = largest > passed ? largest : passed;
  };
  await Promise.all(Array.from({ length: 40 }, async (_, at) => raise(BigInt(((at * 7) % 40) + 1))));
  assert.equal(readFileSync(marks, "utf8"), "orders=40\n");
});

void test("tickets are those of who excludes others", async (t) => {
  const sidecar = await Sidecar.start();
  const client = new Client({ address: sidecar.address });
  t.after(async () => {
    client.close();
    await sidecar.end();
  });
  assert.deepEqual(tickets(), []);
  assert.deepEqual(fence.headers(), {});
  await client.withLock("orders", {}, async (orders) => {
    await client.withLock("table", { mode: "read" }, async () => {
      await client.withLock("stock", { mode: "write" }, (stock) =>
        orders.guard(() => {
          assert.deepEqual(tickets(), [orders.ticket(), stock.ticket()]);
        }),
      );
      unguarded(() => {
        assert.deepEqual(tickets(), []);
      });
      new Ticket("other", 7n).guard(() => {
        assert.deepEqual(fence.headers(), { "sidekeeper-fence": `orders=${orders.fencingToken}, other=7` });
      });
    });
  });
});

const bytes = (value: Buffer): Buffer => value;
const methods = { one: false, several: true };
const service: ServiceDefinition = Object.fromEntries(
  Object.entries(methods).map(([name, responseStream]) => [
    name,
    {
      path: `/shop/${name}`,
      requestStream: false,
      responseStream,
      requestSerialize: bytes,
      requestDeserialize: bytes,
      responseSerialize: bytes,
      responseDeserialize: bytes,
    },
  ]),
);

async function served(t: TestContext, gate: fence.Gate): Promise<Channel> {
  const server = new Server({ interceptors: [fence.serverInterceptor(gate)] });
  const carried = (metadata: Metadata): Buffer => Buffer.from(fence.render(fence.ticketsOf(metadata)));
  server.addService(service, {
    one: (call: { metadata: Metadata }, answer: (error: null, value: Buffer) => void) => {
      answer(null, carried(call.metadata));
    },
    several: (call: { metadata: Metadata; end: (value: Buffer) => void; write: (value: Buffer) => void }) => {
      call.write(carried(call.metadata));
      call.end(Buffer.of());
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) {
        resolve(port);
      } else {
        reject(error);
      }
    });
  });
  const channel = new Channel(`127.0.0.1:${port}`, credentials.createInsecure(), { interceptors: [fence.clientInterceptor] });
  t.after(() => {
    channel.close();
    server.forceShutdown();
  });
  return channel;
}

void test("calls and streams carry tickets and are refused", async (t) => {
  const gate = new fence.Gate(new fence.FileStore(marksOf(t)), { withoutTicket: (call) => call === "/shop/one" });
  const channel = await served(t, gate);
  const answered = (error: ServiceError): string => `${status[error.code]} ${error.details}`;
  const asked = {
    one: async () =>
      new Promise<string>((resolve) => {
        channel.makeUnaryRequest("/shop/one", bytes, bytes, Buffer.of(), (error, value) => {
          resolve(error === null ? String(value) : answered(error));
        });
      }),
    several: async () =>
      new Promise<string>((resolve) => {
        const stream = channel.makeServerStreamRequest("/shop/several", bytes, bytes, Buffer.of());
        stream.on("data", (value: Buffer) => {
          resolve(String(value));
        });
        stream.on("error", (error) => {
          resolve(answered(error as ServiceError));
        });
      }),
  };
  for (const ask of [asked.one, asked.several]) {
    assert.equal(await new Ticket("orders", 7n).guard(() => new Ticket("stock", 3n).guard(ask)), "orders=7, stock=3");
    assert.equal(
      await new Ticket("orders", 5n).guard(ask),
      "FAILED_PRECONDITION lock orders: fencing token 5 is stale, since 7 has been seen: the lock was granted to another holder",
    );
    assert.equal(await new Ticket("or ders", 5n).guard(ask), "INVALID_ARGUMENT sidekeeper-fence: not lock=token");
  }
  assert.equal(await asked.one(), "");
  assert.equal(await asked.several(), "FAILED_PRECONDITION sidekeeper-fence: no ticket");
});
