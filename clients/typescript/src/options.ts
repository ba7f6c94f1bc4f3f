/** What calls may be given: each set of options is a table of rules, and a call is checked by it before anything is sent. */

import { inspect, types } from "node:util";

import { ChannelCredentials } from "@grpc/grpc-js";

/** Throws TypeError for a value of another type, and RangeError for a number that is out of range. Both name the option, the value and the rule. */
export type Rule = (name: string, value: unknown) => void;

/** The rule of each option that a set has. */
export type Rules<Options> = { readonly [Name in keyof Options]-?: Rule };

/** The longest time that a sidecar waits, in seconds: ten years. */
const LONGEST = 10 * 365 * 24 * 3600;

function shown(value: unknown): string {
  return inspect(value, { depth: 0, maxStringLength: 64, breakLength: Infinity });
}

function refuse(name: string, value: unknown, rule: string, Refusal: typeof TypeError | typeof RangeError = TypeError): never {
  throw new Refusal(`${name} is ${shown(value)}: ${rule}`);
}

/** The rule that a value is what the words say. */
export function rule(words: string, holds: (value: unknown) => boolean): Rule {
  return (name, value) => {
    if (!holds(value)) {
      refuse(name, value, words);
    }
  };
}

function ranged(words: string, most: number, holds: (value: number) => boolean): Rule {
  const rule = `${words} from 0 to ${most}`;
  return (name, value) => {
    if (typeof value !== "number") {
      refuse(name, value, rule);
    }
    if (!(value >= 0 && value <= most && holds(value))) {
      refuse(name, value, rule, RangeError);
    }
  };
}

/** An object, and no array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The rule that a value is one of some words. */
export function oneOf(words: Readonly<Record<string, unknown>>): Rule {
  const names = Object.keys(words);
  return rule(`one of ${names.map((name) => `"${name}"`).join(", ")}`, (value) => names.includes(value as string));
}

export const text = rule("a string", (value) => typeof value === "string");
export const flag = rule("true or false", (value) => typeof value === "boolean");
export const callback = rule("a function", (value) => typeof value === "function");
export const timespan = ranged("a number of seconds", LONGEST, Number.isFinite);
/** What can be sent: the sidecar knows the limit of each. */
export const whole = ranged("a whole number", 2 ** 31 - 1, Number.isInteger);
// Not by their classes: another realm, or the package's other form, has classes of its own.
export const abortSignal = rule(
  "an AbortSignal",
  (value) => isObject(value) && "aborted" in value && "addEventListener" in value,
);
export const lease = rule("a Lease, as openLease settles with", (value) => isObject(value) && "awaitValidity" in value);
export const credentials = rule("ChannelCredentials of @grpc/grpc-js", (value) => value instanceof ChannelCredentials);

/** The rule that a value is an object with some functions, as `console` is. */
export function having(...names: string[]): Rule {
  const holds = (value: unknown): boolean => isObject(value) && names.every((name) => typeof value[name] === "function");
  return rule(`an object with functions ${names.join(" and ")}, such as console`, holds);
}

export const texts = rule(
  "an array of strings",
  (value) => Array.isArray(value) && value.every((each) => typeof each === "string"),
);

export const bytes = rule("a string or a Uint8Array", (value) => typeof value === "string" || types.isUint8Array(value));

const object = rule("an object", isObject);

export const labels: Rule = (name, value) => {
  object(name, value);
  for (const [key, label] of Object.entries(value as object)) {
    text(`${name}.${key}`, label);
  }
};

/** What most things that are waited for and held have in common. */
export const HELD_OPTIONS = {
  lease,
  wait: timespan,
  metadata: labels,
  signal: abortSignal,
  onSuspended: callback,
  onResumed: callback,
};

/** How holders are asked to give something back. */
export const ASK_OPTIONS = { reason: text, grace: timespan };

/** Arguments by their names, which are the same for all calls. */
const ARGUMENTS = {
  body: callback,
  candidate: text,
  claimId: text,
  count: whole,
  election: text,
  first: rule("a whole number", (value) => typeof value === "bigint" || Number.isSafeInteger(value)),
  grace: timespan,
  group: text,
  handler: callback,
  job: callback,
  key: text,
  keys: texts,
  limit: whole,
  locks: rule("an array of names and of objects such as { name, mode }", Array.isArray),
  member: text,
  metadata: labels,
  name: text,
  note: text,
  outcome: oneOf({ succeeded: 0, failed: 0 }),
  precondition: rule('"missing", "exists" or { version }, with a whole number', isPrecondition),
  prefix: text,
  reason: text,
  reserveFor: timespan,
  semaphore: text,
  signal: (name: string, value: unknown) => value === undefined || abortSignal(name, value),
  size: whole,
  to: text,
  value: text,
  work: callback,
};

function isPrecondition(value: unknown): boolean {
  const simple = value === undefined || value === "missing" || value === "exists";
  return simple || (isObject(value) && Number.isInteger(value["version"]));
}

/** Throws TypeError or RangeError for arguments that are missing or wrong. */
export function checkArguments(given: { readonly [Name in keyof typeof ARGUMENTS]?: unknown }): void {
  for (const [name, value] of Object.entries(given)) {
    ARGUMENTS[name as keyof typeof ARGUMENTS](name, value);
  }
}

/** Throws TypeError or RangeError for options that there are none of, and for those with a wrong value. What is undefined is left out. */
export function checkOptions<Options extends object>(options: Options, rules: Rules<Options>): void {
  const known = Object.keys(rules) as (keyof Options & string)[];
  if (!isObject(options)) {
    refuse("options", options, `an object with any of ${known.join(", ")}`);
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(rules, name));
  if (unknown !== undefined) {
    throw new TypeError(`there is no option "${unknown}"; the options are ${known.join(", ")}`);
  }
  for (const name of known) {
    if (options[name] !== undefined) {
      rules[name](name, options[name]);
    }
  }
}

/** The options that a table has, of several sets that are given together. */
export function pick<Options extends object>(options: Options, rules: Rules<Options>): Options {
  return Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(rules, name))) as Options;
}
