/** Names that are not Sidekeeper's own, such as those of a framework's tasks, as names that it takes. */

import { createHash } from "node:crypto";

const LONGEST_NAME = 200;
const LONGEST_SEGMENT = 64;

/** What stays as it is: what it could be taken for otherwise is escaped itself. */
const SEGMENT = /^(?!_[-.])(?!\.{1,2}$)(?!zookeeper$)[A-Za-z0-9._-]{1,64}$/;

/** Bytes of a text that is cut which its name shows. */
const READABLE = 37;

/**
 * Gives the name that stands for a text: of a lock, a semaphore, an election or anything else that has a name.
 *
 * Each of its segments becomes one as `segmentOf` says, so that most texts that are names stay as they are. A text whose name would be longer
 * than 200 bytes is cut as a long segment is. No two texts have the same name, unless both are cut and 96 bits of their SHA-256 are the same.
 * The clients of all languages give the same names. A text that is not Unicode is a TypeError.
 */
export function nameOf(text: string): string {
  const segments = text.split("/").map((part, at) => (at > 0 && part === "zookeeper" ? part : segmentOf(part)));
  const name = segments.join("/");
  return name.length <= LONGEST_NAME ? name : cut(text);
}

/**
 * Gives the one segment that stands for a text: the name of a member or an item, or the key of work that is done once.
 *
 * A text that is a segment stays as it is, unless it begins with `_-` or `_.`. Otherwise the segment is `_-` and the text in UTF-8, in which `__`
 * is an underscore and `_3a` a byte that no segment has. A text whose segment would be longer than 64 bytes becomes `_.`, its first 37 bytes with
 * `_` for those that no segment has, `-` and the first 24 hexadecimal digits of its SHA-256. A text that is not Unicode is a TypeError.
 */
export function segmentOf(text: string): string {
  if (SEGMENT.test(text)) {
    return text;
  }
  const escaped = `_-${replaced(text.replaceAll("_", "__"), (byte) => `_${byte.toString(16).padStart(2, "0")}`)}`;
  return escaped.length <= LONGEST_SEGMENT ? escaped : cut(text);
}

/** Puts something else for each byte that no segment has. */
function replaced(text: string, by: (byte: number) => string): string {
  if (/\p{Surrogate}/u.test(text)) {
    throw new TypeError(`text is ${JSON.stringify(text)}: Unicode without lone surrogates`);
  }
  const bytes = Buffer.from(text).toString("latin1");
  return bytes.replaceAll(/[^A-Za-z0-9._-]/g, (byte) => by(byte.charCodeAt(0)));
}

function cut(text: string): string {
  const shown = replaced(text, () => "_").slice(0, READABLE);
  return `_.${shown}-${createHash("sha256").update(text).digest("hex").slice(0, 24)}`;
}
