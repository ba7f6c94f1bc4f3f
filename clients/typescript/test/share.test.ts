/** Work that is shared out among the members of a set. */

import assert from "node:assert/strict";
import { once } from "node:events";
import os from "node:os";
import test, { type TestContext } from "node:test";

import {
  AssignmentNotFoundError,
  type Assignment,
  Client,
  InvalidFieldError,
  type Item,
  LeaseLostError,
  LostError,
  type ShareOptions,
  tickets,
} from "../src/index.js";
import { Pauses } from "../src/share.js";
import { PATIENT, connected, until } from "./sidecar.js";

/** Where handlers work, each until it is told to stop. No item is worked on by two at once. */
class Floor {
  readonly working = new Map<string, string>();
  readonly runs = new Map<string, number>();
  readonly reasons: unknown[] = [];
  late = Promise.resolve();

  handler(member: string): (item: Item, signal: AbortSignal) => Promise<void> {
    return async ({ item }, signal) => {
      assert.equal(this.working.get(item), undefined, `${item} is worked on by two`);
      this.working.set(item, member);
      this.runs.set(item, (this.runs.get(item) ?? 0) + 1);
      if (!signal.aborted) {
        await once(signal, "abort");
      }
      this.reasons.push(signal.reason);
      await this.late;
      this.working.delete(item);
    };
  }

  of(member: string): string[] {
    return [...this.working].flatMap(([item, by]) => (by === member ? [item] : [])).sort();
  }

  /** Has handlers that are told to stop go on until what it returns is called. */
  linger(): () => void {
    let go = (): void => undefined;
    this.late = new Promise((resolve) => (go = resolve));
    return go;
  }
}

interface Sharing {
  readonly stop: AbortController;
  readonly over: Promise<unknown>;
  readonly isOver: () => boolean;
}

/** Shares until it is stopped, and tells why it has ended. */
function shares(t: TestContext, client: Client, floor: Floor, member: string, options: ShareOptions = {}): Sharing {
  const stop = new AbortController();
  let done = false;
  const over = client
    .share("orders", { member, signal: stop.signal, ...options }, floor.handler(member))
    .catch((error: unknown) => {
      done = true;
      return error;
    });
  t.after(() => stop.abort());
  return { stop, over, isOver: () => done };
}

async function works(floor: Floor, member: string, ...items: string[]): Promise<void> {
  await until(`${member} works on ${items}`, PATIENT, () => floor.of(member).join() === items.join());
}

const enough = new Error("enough");

void test("items move to another member, and back, when their handlers have settled", async (t) => {
  const { sidecar, client } = await connected(t);
  const other = new Client({ address: sidecar.address });
  t.after(() => other.close());
  await sidecar.define("orders", "a", "b", "c", "d");
  const floor = new Floor();
  const one = shares(t, client, floor, "one");
  await works(floor, "one", "a", "b", "c", "d");
  const go = floor.linger();
  let told: Assignment | undefined;
  shares(t, other, floor, "two", { onAssigned: (assignment) => (told = assignment) });
  await until("some move", PATIENT, () => told?.items.length === 2);
  assert.deepEqual([told?.members, told?.total, told?.unassigned], [2, 4, 0]);
  const moved = told?.items ?? [];
  const views = client.watchLock(`orders/${moved[0]}`);
  for await (const { holders, waiters } of views) {
    if (waiters.length > 0) {
      assert.deepEqual([holders[0]?.metadata["member"], waiters[0]?.metadata["member"]], ["one", "two"]);
      break;
    }
  }
  assert.equal(floor.of("one").length, 4); // those that move have been told to stop, and have not settled
  go();
  await works(floor, "two", ...moved);
  assert.equal(floor.of("one").length, 2);
  one.stop.abort(enough);
  assert.equal(await one.over, enough);
  await works(floor, "two", "a", "b", "c", "d");
  assert.deepEqual([...floor.runs.values()], [2, 2, 2, 2]);
});

void test("a member that drains has its items move first", async (t) => {
  const { sidecar, client } = await connected(t);
  const other = new Client({ address: sidecar.address });
  t.after(() => other.close());
  await sidecar.define("orders", "a", "b");
  const floor = new Floor();
  const one = shares(t, client, floor, "one", { drain: true, drainTimeout: PATIENT });
  shares(t, other, floor, "two");
  await until("both work", PATIENT, () => floor.of("one").length === 1 && floor.of("two").length === 1);
  one.stop.abort(enough);
  await works(floor, "two", "a", "b");
  assert.equal(await one.over, enough);
  const late = shares(t, client, new Floor(), "one", { drain: true, drainTimeout: 0 });
  late.stop.abort(enough);
  assert.equal(await late.over, enough);
});

void test("a handler that fails or settles is run again", async (t) => {
  const { sidecar, client } = await connected(t);
  await sidecar.define("orders", "a", "b");
  const failed: string[] = [];
  const runs = { a: 0, b: 0 };
  const stop = new AbortController();
  const options = {
    member: "one",
    signal: stop.signal,
    onError: (item: string, error: unknown) => failed.push(`${item}: ${error}`),
  };
  const sharing = client.share("orders", options, async (item, signal) => {
    runs[item.item as "a" | "b"]++;
    if (item.item === "a") {
      throw new Error("no disk");
    }
    assert.deepEqual([item.set, item.name, item.valid, signal.aborted], ["orders", "orders/b", true, false]);
    assert.deepEqual(tickets(), [item.ticket()]);
    await client.config.put("made", "x");
  });
  await until("they run twice", PATIENT, () => runs.a === 2 && runs.b === 2);
  stop.abort(enough);
  await assert.rejects(sharing, enough);
  assert.deepEqual(failed, ["a: Error: no disk", "a: Error: no disk"]);
});

void test("what has its lock broken or revoked is told to stop", async (t) => {
  const { sidecar, client } = await connected(t);
  await sidecar.define("orders", "a");
  const floor = new Floor();
  shares(t, client, floor, "one");
  await works(floor, "one", "a");
  await sidecar.break("orders/a", PATIENT);
  await until("it is run again", PATIENT, () => floor.runs.get("a") === 2);
  assert.ok(floor.reasons[0] instanceof LostError);
  assert.equal(await client.revoke("orders/a"), 1);
  await until("it is run again", PATIENT, () => floor.runs.get("a") === 3);
  assert.match(String(floor.reasons[1]), /the release of the item a is asked for/);
  await sidecar.define("orders", "b");
  await works(floor, "one", "b");
  assert.match(String(floor.reasons[2]), /not the member's any more/);
});

void test("a lost lease begins anew, when the handlers have settled", async (t) => {
  const { sidecar, client } = await connected(t);
  await sidecar.define("orders", "a");
  const [floor, lost] = [new Floor(), [] as string[]];
  const one = shares(t, client, floor, "one", { onError: (item, error) => lost.push(`${item}${error}`) });
  await works(floor, "one", "a");
  const go = floor.linger();
  await sidecar.expire("orders/a");
  const lock = await client.acquire("orders/a", { wait: PATIENT });
  await works(floor, "one", "a"); // the lock is lost, though the handler goes on
  await lock.release();
  go();
  await until("it is run again", PATIENT, () => floor.runs.get("a") === 2);
  assert.match(lost.join(), /^LostError: member orders\/one lost/);
  await sidecar.kill();
  await works(floor, "one");
  await sidecar.start(); // with an ensemble that has no such set
  assert.ok((await one.over) instanceof AssignmentNotFoundError);
});

void test("what ends a share is what it rejects with", async (t) => {
  const { sidecar, client } = await connected(t);
  const fail = (): void => assert.fail("nothing is held");
  await assert.rejects(client.share("orders", {}, fail), AssignmentNotFoundError);
  await sidecar.define("orders", "a");
  t.mock.method(os, "hostname", () => "a/b");
  await assert.rejects(client.share("orders", {}, fail), /give a member: by default the host's name is it/);
  await assert.rejects(client.share("orders", { member: "a/b" }, fail), InvalidFieldError);
  await assert.rejects(client.share("orders", { member: "one", capacity: 3_000 }, fail), InvalidFieldError);
  await assert.rejects(client.share("orders", { signal: AbortSignal.abort(enough) }, fail), enough);
  const [lease, floor] = [await client.openLease(), new Floor()];
  const one = shares(t, client, floor, "one", { lease });
  await works(floor, "one", "a");
  await sidecar.expire("orders/a");
  const error = await one.over;
  assert.ok(error instanceof LostError && error.cause instanceof LeaseLostError);
  assert.deepEqual(floor.of("one"), []);
  const other = new Client({ address: sidecar.address });
  t.after(() => other.close());
  await assert.rejects(other.share("orders", { lease: await client.openLease() }, fail), /another client's/);
});

void test("a share ends with its client", async (t) => {
  const { sidecar, client } = await connected(t);
  await sidecar.define("orders", "a");
  const floor = new Floor();
  const one = shares(t, client, floor, "one");
  await works(floor, "one", "a");
  client.close();
  assert.ok((await one.over) instanceof LostError);
  assert.deepEqual(floor.of("one"), []);
});

void test("a pause is twice as long as the one before", () => {
  const pauses = new Pauses();
  const after = (lasted: number): number => pauses.after(lasted);
  assert.deepEqual([0, 0, 0, 0, 0, 0, 0, 0, 60, 59, 61, 0].map(after), [1, 2, 4, 8, 16, 32, 60, 60, 1, 2, 1, 2]);
});

void test("what share is given is checked before anything is sent", async (t) => {
  const fail = (): void => assert.fail("nothing is held");
  const client = new Client({ address: "unix:///nowhere" });
  t.after(() => client.close());
  await assert.rejects(client.share("orders", { timeout: 1 } as never, fail), /there is no option "timeout"/);
  await assert.rejects(client.share(7 as never, {}, fail), /name is 7/);
  await assert.rejects(client.share("orders", {}, undefined as never), /handler is undefined: a function/);
  await assert.rejects(client.share("orders", { capacity: -1 }, fail), /capacity is -1/);
});
