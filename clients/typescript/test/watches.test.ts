/** Watches whose sidecar falls silent. */

import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { Readable } from "node:stream";
import test from "node:test";

import type { ClientReadableStream } from "@grpc/grpc-js";

import type { WatchResponse } from "../src/gen/sidekeeper/lock/v1/lock.js";
import { SILENCE_TIMEOUT, views } from "../src/transport.js";

/** A stream on which a test sends what it likes. */
class Stream extends EventEmitter {
  cancelled = false;

  cancel(): void {
    this.cancelled = true;
  }

  pause(): void {}

  resume(): void {}
}

/** A stream of more messages than there is time for. */
class Flood extends Readable {
  taken = 0;

  constructor() {
    super({ objectMode: true });
  }

  override _read(): void {
    if (this.taken < 1000) {
      this.taken++;
      this.push(SEEN);
    }
  }

  cancel(): void {
    this.destroy();
  }
}

const KEPT: WatchResponse = { view: undefined, stale: false, keepalive: {} };
const SEEN: WatchResponse = { view: undefined, stale: false, keepalive: undefined };

void test("the last view is stale while the sidecar is silent", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const streams: Stream[] = [];
  const open = (): ClientReadableStream<WatchResponse> => {
    const stream = new Stream();
    streams.push(stream);
    return stream as unknown as ClientReadableStream<WatchResponse>;
  };
  const shown = views(open, ({ stale }) => ({ stale }));
  const next = async (): Promise<boolean | undefined> => {
    const { value } = await shown.next();
    return value?.stale;
  };
  let pending = next();
  await new Promise(setImmediate);
  streams[0]?.emit("data", KEPT);
  streams[0]?.emit("data", SEEN);
  assert.equal(await pending, false);

  pending = next();
  await new Promise(setImmediate);
  t.mock.timers.tick(SILENCE_TIMEOUT * 1000 - 1);
  streams[0]?.emit("data", KEPT);
  t.mock.timers.tick(SILENCE_TIMEOUT * 1000 - 1);
  await new Promise(setImmediate);
  assert.equal(streams[0]?.cancelled, false);
  t.mock.timers.tick(1);
  assert.equal(await pending, true);
  assert.equal(streams[0].cancelled, true);

  pending = next();
  await new Promise(setImmediate);
  t.mock.timers.tick(2000); // the pause before it is opened again
  await new Promise(setImmediate);
  t.mock.timers.tick(SILENCE_TIMEOUT * 1000); // nothing came on it, so that it is not timed
  streams[1]?.emit("data", SEEN);
  assert.equal(await pending, false);
  await shown.return();
});

void test("a slow reader leaves the rest with the sidecar", async () => {
  const flood = new Flood();
  const shown = views(
    () => flood as unknown as ClientReadableStream<WatchResponse>,
    ({ stale }) => ({ stale }),
  );
  for (let read = 1; read <= 5; read++) {
    await shown.next();
    await new Promise(setImmediate);
    assert.ok(flood.taken <= read + 2 * flood.readableHighWaterMark, `${flood.taken} were taken when ${read} had been read`);
  }
  await shown.return();
});
