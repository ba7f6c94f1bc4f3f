/** Elections. */

import assert from "node:assert/strict";
import test from "node:test";

import { Observer } from "../src/election.js";
import type { WatchResponse } from "../src/gen/sidekeeper/election/v1/election.js";
import {
  AlreadyContendingError,
  CandidateNotFoundError,
  GuardLostError,
  type Leader,
  LockHeldError,
  LostError,
  type YieldRequest,
} from "../src/index.js";
import { PATIENT, connected, until } from "./sidecar.js";

void test("candidates lead one after the other", async (t) => {
  const { client } = await connected(t);
  const first = await client.campaign("scheduler", "one", { value: "one:80" });
  assert.ok(first.valid);
  await assert.rejects(client.campaign("scheduler", "two", { wait: 0 }), LockHeldError);
  const ahead: [number, Leader | undefined][] = [];
  const waiting = client.campaign("scheduler", "two", { onCandidate: (...told) => ahead.push(told) });
  await until("it waits", PATIENT, () => ahead.length > 0);
  const [position, leader] = ahead[0] ?? [];
  assert.deepEqual([position, leader?.candidate, leader?.value, leader?.term], [1, "one", "one:80", first.term]);
  const view = await client.getElection("scheduler");
  assert.deepEqual([view.leader?.candidate, view.candidates.map(({ candidate }) => candidate)], ["one", ["two"]]);
  await first.resign();
  const second = await waiting;
  assert.ok(second.term.fencingToken > first.term.fencingToken);
  assert.equal(first.error, undefined);
  await assert.rejects(first.proclaim("late"), GuardLostError);
  await second.resign();
  assert.equal((await client.getElection("scheduler")).leader, undefined);
});

void test("an observer sees each leader and its value", async (t) => {
  const { client } = await connected(t);
  const observed = client.observe("observed");
  const next = async (): Promise<unknown> => {
    const { value } = await observed.next();
    return value === undefined ? "the end" : [value.leader?.candidate, value.leader?.value, value.stale];
  };
  assert.deepEqual(await next(), [undefined, undefined, false]);
  const led = await client.campaign("observed", "one");
  assert.deepEqual(await next(), ["one", "", false]);
  await led.proclaim("one:80");
  assert.deepEqual(await next(), ["one", "one:80", false]);
  await led.resign();
  assert.deepEqual(await next(), [undefined, undefined, false]);
  await observed.return();
});

void test("no earlier term is observed after a later one", () => {
  const leader = (term: bigint): WatchResponse => ({
    event: {
      $case: "leader",
      value: {
        candidate: "c",
        value: "",
        ticket: { lock: "x", fencingToken: term },
        metadata: {},
        identity: "",
        foreign: false,
        yieldRequested: false,
      },
    },
  });
  const observer = new Observer();
  const seen: string[] = [];
  const vacant: WatchResponse = { event: { $case: "vacant", value: {} } };
  for (const message of [undefined, leader(3n), leader(5n), undefined, undefined, leader(3n), leader(5n), vacant, leader(7n)]) {
    const told = observer.learn(message);
    if (told !== undefined) {
      seen.push(`${told.leader?.term.fencingToken ?? 0n}${told.stale ? " stale" : ""}`);
    }
  }
  assert.deepEqual(seen, ["3", "5", "5 stale", "5 stale", "5", "0", "7"]);
});

void test("leadership is handed over", async (t) => {
  const { client } = await connected(t);
  const asked: YieldRequest[] = [];
  const first = await client.campaign("handed", "one", { onYieldRequested: (request) => asked.push(request) });
  const others = [];
  for (const name of ["two", "three"]) {
    let stands = false;
    others.push(client.campaign("handed", name, { onCandidate: () => (stands = true) }));
    await until("it waits", PATIENT, () => stands);
  }
  await assert.rejects(client.transferLeadership("handed", "four"), CandidateNotFoundError);
  await client.transferLeadership("handed", "three", { reason: "drained" });
  await until("it is asked", PATIENT, () => asked.length > 0);
  assert.deepEqual([asked[0]?.to, asked[0]?.reason, asked[0]?.grace], ["three", "drained", undefined]);
  assert.equal(first.yieldRequest, asked[0]);
  await first.resign();
  await (await others[1])?.resign();
  await (await others[0])?.resign();
});

void test("a body is told that it leads no more", async (t) => {
  const { client, sidecar } = await connected(t);
  const running = client.withLeadership("body", "one", {}, async (leadership, signal) => {
    assert.ok(leadership.valid);
    const aborted = new Promise((resolve) => {
      signal.addEventListener("abort", resolve, { once: true });
    });
    await sidecar.expire();
    await aborted;
  });
  await assert.rejects(running, LostError);
  const wrote = client.withLeadership("body", "one", {}, async () => client.config.put("led", "by one"));
  assert.equal((await wrote).key, "led");
});

void test("a candidacy stands on a lease", async (t) => {
  const { client } = await connected(t);
  const lease = await client.openLease();
  const led = await client.campaign("leased", "one", { lease });
  await assert.rejects(client.acquire("leased", { lease }), AlreadyContendingError);
  await lease.close();
  await led.ended;
  assert.ok(led.error instanceof LostError);
});
