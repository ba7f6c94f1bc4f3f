// Claims: locks that stand without a process, which a person makes, extends and releases.
import { at, go } from "./address.js";
import { call } from "./api.js";
import { ask } from "./ask.js";
import { element, moment, time, visible, who } from "./words.js";

const lock = "sidekeeper.lock.v1.LockService";

// made are the ids of the claims that were made on this page, by lock, until it is left.
const made = new Map();

const drawn = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const forMinutes = { name: "minutes", label: "For so many minutes from now on, at most 43200", type: "number", min: 1, max: 43200, value: 60 };
const idOf = (name) => ({ name: "id", label: "The claim's id, which only its maker has", pattern: "[0-9a-f]{32}", value: made.get(name) });
const duration = (minutes) => `${minutes * 60}s`;

export function askToClaim(name) {
  const id = drawn();
  ask({
    title: name ? `Claim ${visible(name)}?` : "Claim a lock?", yes: "Claim it",
    text: "Programs wait for the claim as for any holder, until it ends or is released. Copy its id, which is a secret: it takes the id to extend and to release the claim.",
    fields: [{ name: "lock", label: "Lock", value: name, maxlength: 200 }, forMinutes, { name: "id", label: "The claim's id", value: id, readonly: true }],
    act: async (given) => {
      await call(`${lock}/Claim`, { name: given.lock, claimId: id, reserveFor: duration(given.minutes), reason: given.reason, waitTimeout: "0s" });
      made.set(given.lock, id);
      go("locks", given.lock);
    },
  });
}

function askToExtend(name) {
  ask({
    title: `Extend the claim of ${visible(name)}?`, yes: "Extend it", withoutReason: true, fields: [idOf(name), forMinutes],
    text: "The claim then ends so many minutes from now, unless it ends later anyway.",
    act: ({ id, minutes }) => call(`${lock}/Extend`, { claimId: id, reserveFor: duration(minutes) }),
  });
}

function askToRelease(name) {
  ask({
    title: `Release the claim of ${visible(name)}?`, yes: "Release it", withoutReason: true, fields: [idOf(name)],
    text: "The lock then goes to the next one that waits for it.",
    act: ({ id }) => call(`${lock}/Release`, { claimId: id }),
  });
}

// claims shows the claims among the holders of a lock, and what can be done: with them, or with a lock that has none.
export function claims(name, buttons, content) {
  const button = (title, act) => element("button", { type: "button", onclick: () => act(name) }, title);
  const others = [button("Claim…", askToClaim)];
  const own = [button("Extend…", askToExtend), button("Release…", askToRelease)];
  const list = element("ul", { "aria-label": "Claims" });
  content.append(list);
  return (view) => {
    const stand = (view.holders ?? []).filter((one) => one.claim);
    for (const one of stand.length ? others : own) one.remove();
    for (const one of stand.length ? own : others) if (!one.parentNode) buttons.append(one, " ");
    list.hidden = stand.length === 0;
    list.replaceChildren(...stand.map((one) => element("li", {}, `${who(one)}: ${claimed(one.claim)}`)));
  };
}

// claimed says until when a claim stands, and why.
export const claimed = (of) => `claimed${of.until ? ` until ${moment(of.until)}` : ""}${of.reason ? `: ${visible(of.reason)}` : ""}`;

// ending says of a claim that it ends within minutes.
export const ending = (of) => [element("a", { href: at("locks", of.name) }, visible(of.name)),
  ` is claimed for another ${time(of.left)}: ${visible(of.reason)}. After that, the lock goes to the next one.`];
