/** The clock on which validity is counted, where it is coarse or cannot be read. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";

import { Claim } from "../src/claim.js";
import { type Source, before, find, now, use } from "../src/clock.js";

/** A clock that tells what it is told to, rounded down to what it can tell. */
class Told implements Source {
  true = 1000;
  constructor(readonly coarse: number) {}
  read(): number {
    return Math.floor(this.true / this.coarse + 1e-6) * this.coarse;
  }
}

function replaced(t: TestContext, source: Source): void {
  use(source);
  t.after(() => use(undefined));
}

void test("nothing is valid for longer than was told, however coarse the clock is", (t) => {
  for (const coarse of [0.01, 1]) {
    const clock = new Told(coarse);
    replaced(t, clock);
    for (let asked = 0; asked < 2; asked += 0.07) {
      clock.true = 1000 + asked;
      const claim = new Claim("lock orders");
      claim.extend(before(), 3.02);
      clock.true += 3.02;
      assert.equal(claim.validFor(), 0, `asked ${asked} s after a tick of ${coarse} s`);
      assert.equal(claim.lost?.cause.reason, "LEASE_LOST");
    }
  }
});

void test("nothing is valid while the clock cannot be read, nor what was asked for then", (t) => {
  const clock = new Told(0.01);
  const blind: Source = {
    coarse: 0.01,
    read: () => {
      throw new Error("blind");
    },
  };
  replaced(t, clock);
  const claim = new Claim("lock orders");
  claim.extend(before(), 3);
  use(blind);
  assert.equal(claim.validFor(), 0);
  assert.match(String(claim.lost), /clock .* cannot be read/);
  const asked = before();
  use(clock);
  assert.equal(claim.validFor(), 0, "what was over stays so");
  const late = new Claim("lock orders");
  late.extend(asked, 3);
  assert.equal(late.validFor(), 0);
});

void test("the uptime is read from an open file; where it does not tell the time, whole seconds are, for what they are worth", (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "sk"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "uptime");
  writeFileSync(file, "12345.67 99.00\n");
  const fine = find(file, "linux");
  assert.deepEqual([fine.read(), fine.coarse], [12345.67, 0.01]);
  writeFileSync(file, "");
  assert.throws(() => fine.read());
  assert.equal(find(file, "linux").coarse, 1);
  assert.equal(find(path.join(folder, "none"), "linux").coarse, 1);
  assert.equal(find(file, "darwin").coarse, 0);
});

void test("an uptime is as coarse as the finest that it has told: in whole seconds, it is behind by one", (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "sk"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "uptime");
  writeFileSync(file, "12.00 0.00\n");
  const uptime = find(file, "linux");
  replaced(t, uptime);
  assert.deepEqual([before(), now()], [12, 13]);
  writeFileSync(file, "13.50 0.00\n");
  assert.deepEqual([before(), now()], [13.5, 13.6]);
  writeFileSync(file, "14.00 0.00\n");
  assert.deepEqual([before(), now()], [14, 14.1]);
  writeFileSync(file, "15.67 0.00\n");
  assert.deepEqual([uptime.read(), uptime.coarse], [15.67, 0.01]);
});

void test("a moment is not over before it has passed", () => {
  for (let i = 0; i < 1000; i++) {
    assert.ok(before() <= now());
  }
});
