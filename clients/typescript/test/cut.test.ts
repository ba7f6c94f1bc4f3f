/** What a caller who waits does when its stream is cut without a reason. */

import assert from "node:assert/strict";
import test from "node:test";

import { Client, type Lock, type Queued, type Tick } from "../src/index.js";
import { Proxy } from "./proxy.js";
import { PATIENT, connected, until } from "./sidecar.js";

const waits: { readonly [what: string]: (client: Client, onQueued: (queued: Queued) => void) => Promise<Lock | Tick> } = {
  lock: async (client, onQueued) => client.acquire("reports", { onQueued }),
  tick: async (client, onQueued) => client.work("reports", { onQueued }),
};

for (const [what, wait] of Object.entries(waits)) {
  void test(`a caller that waits for a ${what} asks again after its stream was cut`, async (t) => {
    const { sidecar, client } = await connected(t);
    await sidecar.schedules.put("reports");
    await sidecar.schedules.run("reports", "now");
    const proxy = await Proxy.open(sidecar.address.replace("unix://", ""));
    const away = new Client({ address: proxy.address });
    t.after(() => {
      away.close();
      proxy.close();
    });
    const holder = await client.acquire("reports");
    const told: number[] = [];
    const waiting = wait(away, ({ position }) => told.push(position));
    await until("it waits", PATIENT, () => told.length > 0);
    const cuts = [() => proxy.closeConnections(), () => proxy.resetStreams(), () => proxy.closeConnections()];
    for (const cut of cuts) {
      const before = told.length;
      cut();
      await until("it waits again", PATIENT, () => told.length > before);
    }
    await holder.release();
    const held = await waiting;
    assert.ok(held.valid);
    await held.release();
  });
}
