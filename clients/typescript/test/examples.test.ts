/** The examples do what they say. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";

import { Client } from "../src/index.js";
import { Project } from "./project.js";
import { PATIENT, ROOT, Sidecar, until } from "./sidecar.js";

/** The service of the example, when it listens. */
async function serve(compiled: string, sidecar: Sidecar): Promise<{ child: ChildProcess; url: string }> {
  const env = { ...process.env, SIDEKEEPER_ADDRESS: sidecar.address };
  const child = spawn(process.execPath, [compiled], { env, stdio: ["ignore", "pipe", "inherit"] });
  const [said] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  return { child, url: `http://127.0.0.1:${/listening on (\d+)/.exec(said)?.[1] ?? ""}` };
}

void test("feature flags follow the configuration, and stay as they were while the sidecar is away", async (t) => {
  const project = new Project({ service: readFileSync(path.join(ROOT, "examples/flags/service.ts"), "utf8") });
  t.after(() => project.remove());
  const sidecar = await Sidecar.start();
  t.after(() => sidecar.end());
  const client = new Client({ address: sidecar.address });
  t.after(() => client.close());
  const { child, url } = await serve(project.compiled("service"), sidecar);
  t.after(() => child.kill("SIGKILL"));

  const answers = async (text: string): Promise<void> => {
    await until(text, PATIENT, async () => (await (await fetch(`${url}/?user=ada`)).text()) === text);
  };
  await answers("Welcome.\n");
  await client.config.put("flags/greeting", "on");
  await answers("Hello, ada!\n");
  await client.config.put("flags/greeting", "0%");
  await answers("Welcome.\n");
  await client.config.put("flags/greeting", "100%");
  await answers("Hello, ada!\n");

  await sidecar.kill();
  await until("the flags grow old", PATIENT, async () => Number((await fetch(url)).headers.get("X-Flags-Age")) > 0);
  await answers("Hello, ada!\n");
  await sidecar.start(); // with an ensemble that is empty
  await answers("Welcome.\n");
  assert.equal((await fetch(url)).headers.get("X-Flags-Age"), "0.0");

  child.kill("SIGTERM");
  assert.deepEqual(await once(child, "exit"), [0, null]);
});
