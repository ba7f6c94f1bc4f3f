/** What the README and the page about NestJS show compiles and runs. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, symlinkSync } from "node:fs";
import path from "node:path";
import test from "node:test";

import { PACKAGE, Project } from "./project.js";
import { ROOT, Sidecar, program } from "./sidecar.js";

function shownIn(file: string): string[] {
  return [...readFileSync(file, "utf8").matchAll(/^```(?:java|type)script\n(.*?)^```/gms)].map(([, lines]) => lines ?? "");
}

const snippets = [...shownIn(path.join(PACKAGE, "README.md")), ...shownIn(path.join(PACKAGE, "nestjs.md"))];

void test("what the README shows compiles and runs", async (t) => {
  assert.equal(snippets.length, 16);
  const project = new Project(Object.fromEntries(snippets.map((snippet, i) => [`s${i}`, snippet])));
  t.after(() => project.remove());
  for (const [i, snippet] of snippets.entries()) {
    const sidecar = await Sidecar.start();
    symlinkSync(".", path.join(sidecar.folder, "certificates"));
    const address = snippet.includes("credentials:") ? sidecar.secureAddress : sidecar.address;
    const env = { ...process.env, SIDEKEEPER_ADDRESS: address, SIDEKEEPER_PROGRAM: program() };
    const ran = spawnSync(process.execPath, [project.compiled(`s${i}`)], {
      env,
      cwd: sidecar.folder,
      encoding: "utf8",
      timeout: 30_000,
    });
    await sidecar.end();
    assert.equal(ran.status, 0, ran.stderr);
    assert.notEqual(ran.stdout, "");
  }
});

void test("the repository's README shows the same", () => {
  assert.deepEqual(shownIn(path.join(ROOT, "README.md")), [snippets[0]?.replace(/^import .*\n\n/, "")]);
});
