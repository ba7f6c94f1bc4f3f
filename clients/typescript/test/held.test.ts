/** The mechanism by which all is held. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";

import { Claim } from "../src/claim.js";
import { before } from "../src/clock.js";
import { ROOT } from "./sidecar.js";

const RECIPES = new Set(
  (
    "lock locks group groups member members membership joined semaphore permit permits " +
    "election leader candidate barrier entry sequence config queue queued"
  ).split(" "),
);

void test("the mechanism names no recipe", () => {
  for (const file of ["held.ts", "claim.ts"]) {
    const text = readFileSync(path.join(ROOT, "clients/typescript/src", file), "utf8");
    const words = text.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
    assert.deepEqual(
      words.filter((word) => RECIPES.has(word.toLowerCase())),
      [],
      file,
    );
  }
});

void test("a listener that throws keeps the end from nobody, and is logged", async () => {
  const logged: unknown[] = [];
  const logger = { debug: () => undefined, error: (_: string, error: unknown) => logged.push(error) };
  const claim = new Claim("permit", undefined, logger);
  let [cancelled, heard] = [false, false];
  claim.cancel = () => (cancelled = true);
  claim.onEnd(() => {
    throw new RangeError("mine");
  });
  claim.onEnd(() => (heard = true));
  claim.abandon();
  await claim.ended;
  assert.deepEqual([cancelled, heard, String(logged)], [true, true, "RangeError: mine"]);
});

void test("a lease whose time is over is lost once something stands on it", () => {
  const [lease, hold] = [new Claim("lease"), new Claim("permit")];
  lease.carries = () => false;
  lease.extend(before() - 2, 1);
  assert.deepEqual([lease.validFor(), lease.lost], [0, undefined]);
  lease.extend(before(), 60);
  assert.ok(lease.validFor() > 0);
  const late = new Claim("lease");
  late.carries = () => false;
  late.extend(before() - 2, 1);
  hold.dependsOn(late);
  assert.equal(late.lost?.cause.reason, "LEASE_LOST");
});
