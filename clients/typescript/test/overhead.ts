/**
 * What the client costs: the same done through it and through bare stubs, in turns, with a real sidecar.
 *
 *     node dist/test/overhead.js [ROUNDS]
 */

import { promisify } from "node:util";

import {
  type ClientReadableStream,
  type ServiceError,
  credentials,
  makeGenericClientConstructor,
  type ServiceDefinition,
} from "@grpc/grpc-js";

import { AcquireRequest, type AcquireResponse, LockServiceService } from "../src/gen/sidekeeper/lock/v1/lock.js";
import { NextRequest, SequenceServiceService } from "../src/gen/sidekeeper/sequence/v1/sequence.js";
import { Client } from "../src/index.js";
import { Sidecar } from "./sidecar.js";

const IN_A_ROW = 30;

type Unary = (request: object, callback: (error: ServiceError | null, reply: unknown) => void) => void;
type Way = () => Promise<unknown>;

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

/** The median of the microseconds that it takes. */
async function inTurn(way: Way): Promise<number> {
  const took: number[] = [];
  for (let i = 0; i < IN_A_ROW; i++) {
    const began = performance.now();
    await way();
    took.push(1000 * (performance.now() - began));
  }
  return median(took);
}

async function compare(what: string, rounds: number, bare: Way, client: Way): Promise<void> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    // Who begins changes.
    for (const way of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      times[way].push(await inTurn([bare, client][way] ?? bare));
    }
  }
  const ratio = median(times[0].map((before, round) => (times[1][round] ?? NaN) / before));
  const shown = times.map((each) => median(each).toFixed(0).padStart(6));
  console.log(`${what.padEnd(26)} bare ${shown[0]} µs   client ${shown[1]} µs   ratio ${ratio.toFixed(2)}`);
}

/** The stubs that gRPC makes of a service. */
function bareStubs(address: string, service: ServiceDefinition): Record<string, unknown> {
  const Stubs = makeGenericClientConstructor(service, "");
  return new Stubs(address, credentials.createInsecure());
}

const rounds = Number(process.argv[2] ?? 30);
const sidecar = await Sidecar.start();
const client = new Client({ address: sidecar.address });
const locks = bareStubs(sidecar.address, LockServiceService) as unknown as {
  acquire: (request: object) => ClientReadableStream<AcquireResponse>;
  release: Unary;
  close: () => void;
};
const sequences = bareStubs(sidecar.address, SequenceServiceService) as unknown as { next: Unary; close: () => void };
const release = promisify(locks.release.bind(locks));
const next = promisify(sequences.next.bind(sequences));
const numbers = client.sequence("numbers");
await numbers.create(1n);

async function lockBare(): Promise<void> {
  for await (const answer of locks.acquire(AcquireRequest.fromPartial({ name: "orders" })) as AsyncIterable<AcquireResponse>) {
    if (answer.event?.$case === "granted") {
      await release({ holdId: answer.event.value.holdId });
    }
  }
}

try {
  await compare("lock and release", rounds, lockBare, async () => (await client.acquire("orders")).release());
  await compare(
    "number",
    rounds,
    () => next(NextRequest.fromPartial({ name: "numbers" })),
    () => numbers.next(),
  );
} finally {
  client.close();
  locks.close();
  sequences.close();
  await sidecar.end();
}
