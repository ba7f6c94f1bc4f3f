/** A project that uses the package as applications do, with the compiler's settings of the package itself. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";

import { ROOT } from "./sidecar.js";

export const PACKAGE = path.join(ROOT, "clients/typescript");

export class Project {
  private readonly folder = mkdtempSync(path.join(os.tmpdir(), "sk"));

  /** Compiles files, given by their names without the ending. */
  constructor(files: Readonly<Record<string, string>>) {
    const { folder } = this;
    mkdirSync(path.join(folder, "node_modules/@types"), { recursive: true });
    symlinkSync(PACKAGE, path.join(folder, "node_modules/sidekeeper"));
    for (const used of ["@types/node", "@types/pg", "@grpc", "@nestjs"]) {
      symlinkSync(path.join(PACKAGE, "node_modules", used), path.join(folder, "node_modules", used));
    }
    writeFileSync(path.join(folder, "package.json"), '{ "type": "module" }');
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(path.join(folder, `${name}.ts`), text);
    }
    const config = JSON.parse(readFileSync(path.join(PACKAGE, "tsconfig.json"), "utf8")) as { compilerOptions: object };
    const compilerOptions = { ...config.compilerOptions, outDir: "out" };
    writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    execFileSync(path.join(PACKAGE, "node_modules/.bin/tsc"), ["-p", folder], { stdio: "inherit" });
  }

  /** Where a file was compiled to. */
  compiled(name: string): string {
    return path.join(this.folder, "out", `${name}.js`);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
