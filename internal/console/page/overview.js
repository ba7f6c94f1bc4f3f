// What the page begins with: whether something is wrong, what, and since when; three numbers with their last hour; what callers wait for.
import { at } from "./address.js";
import { chart } from "./chart.js";
import { ending } from "./claims.js";
import { nobody, old } from "./waits.js";
import { element, since, time, visible, who } from "./words.js";

const place = document.getElementById("overview");

export const overview = { id: "overview", title: "Overview" };

const several = (count, one, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
const link = (lock) => element("a", { href: at("locks", lock) }, visible(lock));
const sum = (numbers) => numbers.reduce((all, one) => all + Math.max(0, one), 0);

// show shows what the console has seen, in place of what it showed before.
export function show(seen) {
  const content = element("div", {}, ...verdict(seen), numbers(seen), ...contended(seen), ...sidecar(seen));
  if (place.firstElementChild) become(place.firstElementChild, content);
  else place.replaceChildren(content);
}

// become changes a node into another one where they differ, so that the focus and what is selected stay.
function become(old, made) {
  if (old.nodeName !== made.nodeName) return old.replaceWith(made);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return undefined;
  }
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [before, after] = [[...old.childNodes], [...made.childNodes]];
  after.forEach((one, index) => (before[index] ? become(before[index], one) : old.append(one)));
  before.slice(after.length).forEach((one) => one.remove());
  return undefined;
}

function verdict(seen) {
  const found = wrong(seen);
  const bad = found.filter((one) => one.bad).length;
  const looked = seen.seen ? `${several(seen.seen.locks, "lock")} seen` : "No lock has been seen yet";
  const stale = seen.seen ? old(seen) : "";
  const words = bad > 0 ? `${several(bad, "thing is", "things are")} wrong` : found.length > 0 ? `${several(found.length, "thing")} to look at` : "Nothing is wrong";
  const known = seen.contact !== "" && (seen.seen || bad > 0);
  return [
    element("div", { class: "verdict", role: "status" }, element("h2", { class: bad > 0 ? "bad-text" : "" }, known ? words : "Looking")),
    element("p", { class: seen.failure ? "bad-text" : "quiet" }, `${looked}${stale}. This console has been looking for ${time(seen.watched)}.`),
    element("ul", { class: "wrong", "aria-label": "What is wrong" }, ...found.map((one) =>
      element("li", { class: one.bad ? "bad" : "warn" }, element("span", {}, ...one.what), element("span", { class: "quiet" }, one.since ?? "")))),
  ];
}

// wrong are the things that a person should look at: what is wrong first.
function wrong({ contact, why, since: ago, first, seen, age, failure, stuck, state, lostAgo, chart: hour }) {
  const found = [];
  const tell = (bad, what, words) => found.push({ bad, what, since: words });
  const contactSince = since(ago) + (first ? " or longer" : "");
  if (contact === "sidecar") tell(true, [`The sidecar does not answer: ${why}. Nothing below is known to be so any more.`], contactSince);
  if (contact === "ensemble") tell(true, ["No contact with the ensemble. No lock changes hands until it answers."], contactSince);
  if (contact === "good" && failure) tell(true, [`The locks cannot be read: ${failure}.`]);
  for (const circle of seen?.circles ?? []) {
    tell(true, ["CIRCLE: ", ...circle.parties.flatMap((one, index) => [`${index ? ", " : ""}${who(one)} waits for `, link(one.lock)]),
      circle.guess ? ". Callers of one name are taken for one: if they are, none of them goes on." : ". None of them goes on until one gives something up."], since(circle.age + age));
  }
  const others = stuck - (seen?.circles ?? []).reduce((all, circle) => all + circle.parties.length, 0);
  if (others > 0) tell(true, [`${several(others, "more caller is", "more callers are")} in `, element("a", { href: at("waits") }, "other circles"), "."]);
  for (const one of seen?.contended ?? []) {
    if (one.usual > 0 && one.held > Math.max(60, 10 * one.usual)) {
      tell(false, [link(one.name), ` is held by ${who(one.holder)} for longer than usual, which is at most ${time(one.usual)}. ${several(one.waiting, "caller waits", "callers wait")}.`],
        `${since(one.held + age)} or longer`);
    }
  }
  for (const one of seen?.ending ?? []) if (one.left > age) tell(false, ending({ ...one, left: one.left - age }));
  const suspended = state?.counts.suspended ?? 0;
  if (suspended > 0) tell(false, [element("a", { href: at("leases", undefined, "suspended") }, several(suspended, "lease is", "leases are")), " suspended: no heartbeat was answered in time."]);
  const lost = sum(hour.lost);
  if (lost > 0) tell(false, [`${several(lost, "lease, lock or member was", "leases, locks and members were")} lost within the last hour${reasons(state)}.`], `the last one ${time(lostAgo)} ago`);
  if (state?.draining) tell(false, ["The sidecar is stopping."]);
  if (seen?.refused) tell(false, [`${several(seen.refused, "contended lock")} could not be read: ${seen.why}`]);
  return found.sort((a, b) => b.bad - a.bad);
}

// reasons are those of all losses since the sidecar has begun.
function reasons(state) {
  const counts = {};
  for (const of of Object.values(state?.losses ?? {})) for (const [reason, count] of Object.entries(of ?? {})) counts[reason] = (counts[reason] ?? 0) + count;
  const all = Object.entries(counts).map(([reason, count]) => `${reason} ${count.toLocaleString("en")}`);
  return all.length > 0 ? `. By reason, since the sidecar has begun: ${all.join(", ")}` : "";
}

const unknown = "not known now";

function numbers({ seen, more, failure, absence, state, chart: hour, stuck }) {
  const known = (value, otherwise = "–") => (seen && (seen.waiting || !failure) ? value : otherwise); // that none waited then says nothing of now
  const card = (title, value, more, drawn) => element("section", { class: failure && title !== "Lost" ? "card stale" : "card", "aria-label": title },
    element("h3", {}, title), element("p", { class: "number" }, value), element("p", { class: "quiet" }, more), drawn);
  const least = seen?.refused || seen?.omitted ? "at least " : ""; // of those that were not looked at, nothing is known
  return element("div", { class: "cards" },
    card("Waiting callers", known(`${least}${seen?.waiting.toLocaleString("en")}`), stuck > 0 ? `${stuck} of them in a circle` : known(seen?.waiting ? `at ${several(seen.contended.length + more, "lock")}` : least ? "not all locks were read" : "for no lock", unknown),
      chart(hour.waiting, hour, (value) => value.toLocaleString("en"))),
    card("Longest wait", known(seen?.waiting ? `${least}${time(seen.longest)}` : least ? "–" : "none"), known(failure ? "of those that waited then" : "of those that wait now", unknown), chart(hour.longest, hour, time)),
    card("Lost", state ? sum(hour.lost).toLocaleString("en") : "–", state ? "leases, locks and members, of this sidecar" : absence ? "not known, as is the rest of this sidecar" : "not asked yet",
      chart(hour.lost, hour, (value) => value.toLocaleString("en"), true)));
}

function held({ holder, holders }) {
  if (!holder) return ["–"];
  return [holder.lease ? element("a", { href: at("leases", holder.lease) }, who(holder)) : who(holder), holders > 1 ? ` and ${holders - 1} more` : ""];
}

function contended({ seen, more, failure, age }) {
  if (!seen) return [];
  const rows = seen.contended.map((one) => element("tr", {},
    element("td", {}, link(one.name), one.circle ? " CIRCLE" : ""), element("td", { class: "number" }, one.waiting.toLocaleString("en")), element("td", { class: "number" }, time(one.longest)),
    element("td", {}, ...held(one)),
    element("td", { class: "wide" }, one.usual ? `${time(one.median)}, at most ${time(one.usual)}` : "not known")));
  const head = [["lock"], ["waiting", "number"], ["longest", "number"], ["held by"], ["usually held for", "wide"]];
  const table = element("table", { class: failure ? "stale" : "" }, element("thead", {}, element("tr", {}, ...head.map(([title, of]) => element("th", { scope: "col", class: of }, title)))), element("tbody", {}, ...rows));
  const rest = more + seen.omitted;
  return [element("h2", {}, "Waited for"),
    rows.length ? table : element("p", { class: failure ? "quiet stale" : "quiet" }, nobody({ ...seen, age, failure })),
    element("p", {}, element("a", { href: at("waits") }, "All waits"), rest > 0 ? `, also at ${several(rest, "more lock")}` : "")];
}

const seldom = 0.05; // times a second
const milliseconds = (count) => `${(count * 1000).toFixed(1)} ms`;

function sidecar({ state, absence }) {
  const title = element("h2", {}, "This sidecar");
  if (!state) return [title, element("p", { class: "quiet" }, absence ? `Nothing is known: ${absence}` : "Nothing is known yet.")];
  const c = state.counts;
  const facts = [
    ["version", `${visible(state.version)}, up for ${time(state.uptime)}`], ["leases", `${c.leases} of ${c.maxLeases}, ${c.suspended} of them suspended`],
    ["has", `${several(c.holds, "hold")}, ${several(c.members, "member")}; ${several(c.waiters, "caller waits", "callers wait")}`], ["connections", c.connections], ["late heartbeats", state.late],
    ...(state.latency ?? []).filter((one) => one.rate >= seldom).map((one) => [`ensemble, ${one.operation}`, `${one.rate.toFixed(1)} a second, p50 ${milliseconds(one.p50)}, p99 ${milliseconds(one.p99)}`]),
  ];
  return [title, element("dl", {}, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]))];
}
