// How words and times are shown. Names and owners are others' words: they are set as text and never as markup.

export function element(name, attributes = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...content.filter((one) => one !== undefined && one !== ""));
  return made;
}

// visible shows characters that turn the direction of text, or have no shape, as their numbers.
export const visible = (words) =>
  !words ? "–" : words.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

// named is what a caller calls itself, beside what the sidecar knows of it. An owner that could be read as both stands in quotes.
export const named = (owner) => visible(/[\p{Ps}\p{Pe}]/u.test(owner) ? JSON.stringify(owner) : owner);

// seconds reads a duration of JSON, such as "1.5s".
export const seconds = (duration) => (duration ? Number(duration.slice(0, -1)) : 0);

export function time(count) {
  if (count < 60) return `${count.toFixed(count < 10 ? 1 : 0)} s`;
  const whole = Math.floor(count);
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes < 10 ? `${minutes} min ${whole % 60} s` : `${minutes} min`;
}

// stamped notes when a view has come, since when those in it have grown older.
export function stamped(view = {}) {
  const at = performance.now();
  for (const one of [...(view.holders ?? []), ...(view.waiters ?? []), ...(view.members ?? [])]) one.at = at;
  return view;
}

export const age = (one) => time(seconds(one.age) + (one.at === undefined ? 0 : (performance.now() - one.at) / 1000));

// who is a caller as it calls itself, and as the sidecar knows it.
export const who = (one) => named(one.owner) + (one.identity ? ` (${visible(one.identity)})` : "");

export const pairs = (metadata) => Object.entries(metadata ?? {}).sort().map(([key, value]) => `${visible(key)}=${visible(value)}`).join(", ");

export const several = (words) => (words.length > 1 ? `${words[0]} and ${words.length - 1} more` : words[0] ?? "");

// since says when something began that many seconds ago, by the clock of the person who reads it, and for how long it has been.
export function since(ago) {
  const then = new Date(Date.now() - ago * 1000);
  const day = ago < 72000 ? "" : `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, `;
  return `since ${day}${clock(then)}, for ${time(ago)}`;
}

// moment is a point in time, of JSON, to the second.
export const moment = (at) => (at ? at.replace(/\.\d+Z$/, "Z") : "–");

export const clock = (then) => then.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
