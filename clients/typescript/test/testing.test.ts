/** The test kit, used as applications use it. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import test, { before } from "node:test";

import { Client, LostError, WaitTimeoutError } from "../src/index.js";
import { startSidecar } from "../src/testing.js";
import { PACKAGE } from "./project.js";
import { PATIENT, program, until } from "./sidecar.js";

before(() => {
  process.env["SIDEKEEPER_PROGRAM"] = program();
});

/** Where the sidecar's socket lies: its own folder, which it removes when it ends. */
function folderOf(address: string): string {
  return path.dirname(address.replace("unix://", ""));
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) {
    await once(signal, "abort");
  }
}

void test("a worker that loses its lock is told", async () => {
  await using sidecar = await startSidecar();
  using client = new Client({ address: sidecar.address });
  const worker = client.withLock("orders", {}, async (_, signal) => {
    await sidecar.expireLock("orders");
    await aborted(signal);
  });
  await assert.rejects(worker, LostError);
});

void test("leases expire in three ways", async () => {
  await using sidecar = await startSidecar();
  const { client } = sidecar;
  const lease = await client.openLease();
  const held = await client.acquire("with-a-lease", { lease });
  const alone = await client.acquire("alone");
  const other = await client.acquire("other");

  await sidecar.expireLease(lease.id);
  await aborted(held.signal);
  await sidecar.expireLock("alone");
  await aborted(alone.signal);
  assert.ok(other.valid);
  assert.equal(await sidecar.expireAll(), 1);
  await aborted(other.signal);
  await assert.rejects(sidecar.expireLock("other"), { reason: "HOLD_NOT_FOUND" });
});

void test("an operator ends a hold", async () => {
  await using sidecar = await startSidecar();
  const lock = await sidecar.client.acquire("orders");
  assert.equal(await sidecar.client.revoke("orders", { grace: 0 }), 1);
  await aborted(lock.signal);
});

void test("a silence that lasts loses the lock", async () => {
  await using sidecar = await startSidecar({ sessionTimeout: 6 });
  const lock = await sidecar.client.acquire("orders");
  await sidecar.suspend(3600);
  await aborted(lock.signal);
  await sidecar.suspend(0);
  await (await sidecar.client.acquire("orders", { wait: PATIENT })).release();
});

void test("grants are late", async () => {
  await using sidecar = await startSidecar();
  await sidecar.delayGrants(3600);
  await assert.rejects(sidecar.client.acquire("orders", { wait: 0.1 }), WaitTimeoutError);
  await sidecar.delayGrants(0);
  await (await sidecar.client.acquire("orders")).release();
});

void test("sidecars do not meet, and nothing is left of them", async () => {
  const [first, second] = await Promise.all([startSidecar(), startSidecar()]);
  await first.client.acquire("orders", { wait: 0 });
  await second.client.acquire("orders", { wait: 0 });
  await Promise.all([first.stop(), second.stop()]);
  await first.stop();
  assert.ok(!existsSync(folderOf(first.address)) && !existsSync(folderOf(second.address)));
});

for (const [how, then] of [
  ["was killed", "process.kill(process.pid, 'SIGKILL')"],
  ["forgot to stop it", ""],
] as const) {
  void test(`nothing is left of the sidecar of a run that ${how}`, async () => {
    const kit = path.join(PACKAGE, "dist/src/testing.js");
    const run = `import { writeSync } from "node:fs"; import { startSidecar } from ${JSON.stringify(kit)};
      writeSync(1, (await startSidecar()).address); ${then}`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", run], { stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
    await once(child, "close");
    assert.match(said, /^unix:\/\//);
    await until("the sidecar ends", PATIENT, () => !existsSync(folderOf(said)));
  });
}

void test("whoever has no program is told where it is", async () => {
  const given = program();
  process.env["SIDEKEEPER_PROGRAM"] = "/nowhere/sidekeeper";
  await assert.rejects(startSidecar(), /"\/nowhere\/sidekeeper".*SIDEKEEPER_PROGRAM.*sidekeeper\/releases/);
  process.env["SIDEKEEPER_PROGRAM"] = given;
});

void test("a program that does not start is an error", async () => {
  await assert.rejects(startSidecar({ sessionTimeout: 1 }), /dev does not start: exit code 64/);
});
