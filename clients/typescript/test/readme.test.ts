/** What the README shows compiles and runs. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";

import { ROOT, Sidecar } from "./sidecar.js";

const PACKAGE = path.join(ROOT, "clients/typescript");

function shownIn(file: string): string[] {
  return [...readFileSync(file, "utf8").matchAll(/^```typescript\n(.*?)^```/gms)].map(([, lines]) => lines ?? "");
}

const snippets = shownIn(path.join(PACKAGE, "README.md"));

void test("what the README shows compiles and runs", async () => {
  assert.equal(snippets.length, 4);
  const folder = mkdtempSync(path.join(os.tmpdir(), "sk"));
  try {
    mkdirSync(path.join(folder, "node_modules"));
    symlinkSync(PACKAGE, path.join(folder, "node_modules", "sidekeeper"));
    mkdirSync(path.join(folder, "node_modules", "@types"));
    symlinkSync(path.join(PACKAGE, "node_modules/@types/node"), path.join(folder, "node_modules/@types/node"));
    writeFileSync(path.join(folder, "package.json"), '{ "type": "module" }');
    for (const [i, snippet] of snippets.entries()) {
      writeFileSync(path.join(folder, `s${i}.ts`), snippet);
    }
    const config = JSON.parse(readFileSync(path.join(PACKAGE, "tsconfig.json"), "utf8")) as { compilerOptions: object };
    const compilerOptions = { ...config.compilerOptions, outDir: "out" };
    writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    execFileSync(path.join(PACKAGE, "node_modules/.bin/tsc"), ["-p", folder], { stdio: "inherit" });
    for (const i of snippets.keys()) {
      const sidecar = await Sidecar.start();
      const env = { ...process.env, SIDEKEEPER_ADDRESS: sidecar.address };
      const ran = spawnSync(process.execPath, [path.join(folder, `out/s${i}.js`)], { env, encoding: "utf8", timeout: 30_000 });
      await sidecar.end();
      assert.equal(ran.status, 0, ran.stderr);
      assert.notEqual(ran.stdout, "");
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

void test("the repository's README shows the same", () => {
  assert.deepEqual(shownIn(path.join(ROOT, "README.md")), [snippets[0]?.replace(/^import .*\n\n/, "")]);
});
