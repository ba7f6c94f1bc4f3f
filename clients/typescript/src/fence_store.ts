/** Marks in a file. */

import { open, readFile, rename } from "node:fs/promises";
import path from "node:path";

import type { Store } from "./fence_gate.js";
import { parseTicket } from "./fence_header.js";

/** What is being done to each file of this process. */
const underWay = new Map<string, Promise<unknown>>();

/**
 * Keeps marks in a file, which is replaced as a whole, when it is safe on the disk. It is for one process at a time, since Node.js cannot
 * lock a file: several processes, as those of a cluster are, share a SqlStore. Do not delete the file: without it late calls pass.
 */
export class FileStore implements Store {
  private readonly file: string;

  constructor(file: string) {
    this.file = path.resolve(file);
  }

  /** See Store. */
  async raise(lock: string, token: bigint): Promise<bigint> {
    const before = underWay.get(this.file) ?? Promise.resolve();
    const raised = before.catch(() => undefined).then(async () => this.raiseAlone(lock, token));
    underWay.set(this.file, raised);
    return raised;
  }

  private async raiseAlone(lock: string, token: bigint): Promise<bigint> {
    const marks = await this.read();
    const mark = marks.get(lock) ?? 0n;
    if (mark >= token) {
      return mark;
    }
    await this.replace(marks.set(lock, token));
    return token;
  }

  private async read(): Promise<Map<string, bigint>> {
    let text: string;
    try {
      text = await readFile(this.file, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") {
        return new Map();
      }
      throw error;
    }
    const lines = text.split("\n").filter((line) => line !== "");
    try {
      return new Map(lines.map(parseTicket).map(({ lock, fencingToken }) => [lock, fencingToken]));
    } catch {
      throw new Error(`marks: ${this.file} has a line that is not lock=token`); // which is no fault of a call
    }
  }

  private async replace(marks: ReadonlyMap<string, bigint>): Promise<void> {
    const text = [...marks].map(([lock, token]) => `${lock}=${token}\n`).join("");
    await synced(`${this.file}.new`, "w", text);
    await rename(`${this.file}.new`, this.file);
    await synced(path.dirname(this.file), "r");
  }
}

async function synced(name: string, flags: string, text?: string): Promise<void> {
  const file = await open(name, flags, 0o600);
  try {
    if (text !== undefined) {
      await file.writeFile(text);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}
