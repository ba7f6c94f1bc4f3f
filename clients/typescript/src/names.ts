/** Names that are not Sidekeeper's own, such as those of a framework's tasks, as names that it takes. */

import { createHash } from "node:crypto";

const LONGEST_NAME = 200;
const LONGEST_SEGMENT = 64;
const SEGMENT = /^(?!\.{1,2}$)(?!zookeeper$)[A-Za-z0-9._-]{1,64}$/;
const STRANGE = /[^A-Za-z0-9._-]/g;

/** Bytes of a text that is cut which its name shows. */
const READABLE = 37;

/**
 * Gives the name that stands for a text: of a lock, an election or anything else that has a name.
 *
 * A text that is a name stays as it is, so that the name of a name is itself. Otherwise each of its segments becomes one as `segmentOf` says, and an
 * empty one `_-`. A text whose name would be longer than 200 bytes is cut as a long segment is. An empty text stays empty, which no sidecar takes.
 * The clients of all languages give the same names. A text that is not Unicode is a TypeError.
 *
 * Two texts have the same name only if one of them is itself a name with `_-` or `_.` in it, or if both are cut and 96 bits of their SHA-256
 * are the same.
 */
export function nameOf(text: string): string {
  const bytes = encoded(text);
  const parts = text === "" ? [] : text.split("/");
  const segments = parts.map((part, at) => (at > 0 && part === "zookeeper" ? part : segmentOf(part) || "_-"));
  const name = segments.join("/");
  return name.length <= LONGEST_NAME ? name : cut(bytes);
}

/**
 * Gives the one segment that stands for a text: the name of a member or an item, or the key of work that is done once.
 *
 * A text that is a segment stays as it is. Otherwise the segment is `_-` and the text in UTF-8, in which `__` is an underscore and `_3a` a byte that
 * no segment has. A text whose segment would be longer than 64 bytes becomes `_.`, its first 37 bytes with `_` for those that no segment has, `-`
 * and the first 24 hexadecimal digits of its SHA-256. An empty text stays empty. A text that is not Unicode is a TypeError.
 */
export function segmentOf(text: string): string {
  const bytes = encoded(text);
  if (text === "" || SEGMENT.test(text)) {
    return text;
  }
  const doubled = bytes.toString("latin1").replaceAll("_", "__");
  const escaped = `_-${doubled.replaceAll(STRANGE, (byte) => `_${byte.charCodeAt(0).toString(16).padStart(2, "0")}`)}`;
  return escaped.length <= LONGEST_SEGMENT ? escaped : cut(bytes);
}

function encoded(text: string): Buffer {
  if (/\p{Surrogate}/u.test(text)) {
    throw new TypeError(`text is ${JSON.stringify(text)}: Unicode without lone surrogates`);
  }
  return Buffer.from(text);
}

function cut(bytes: Buffer): string {
  const shown = bytes.toString("latin1", 0, READABLE).replaceAll(STRANGE, "_");
  return `_.${shown}-${createHash("sha256").update(bytes).digest("hex").slice(0, 24)}`;
}
