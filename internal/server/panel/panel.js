"use strict";
// Shows what /events sends. Names and owners are others' words: they are set as text and never as markup.

const $ = (id) => document.getElementById(id);

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function cell(content, className) {
  const made = element("td", content instanceof Node ? undefined : content, className);
  if (content instanceof Node) made.append(content);
  return made;
}

// visible shows characters that turn the direction of text, or have no shape, as their numbers.
const visible = (words) =>
  words === "" ? "–" : words.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

// named is what a caller calls itself, beside what the sidecar knows of it. An owner that could be read as both stands in quotes.
const named = (owner) => visible(/[\p{Ps}\p{Pe}]/u.test(owner) ? JSON.stringify(owner) : owner);

function time(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.floor(seconds);
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

function fill(id, rows, columns, nothing) {
  const body = document.createDocumentFragment();
  for (const row of rows) {
    const line = element("tr");
    line.append(...row);
    body.append(line);
  }
  if (rows.length === 0) {
    const line = element("tr");
    const none = cell(nothing, "none");
    none.colSpan = columns;
    line.append(none);
    body.append(line);
  }
  $(id).tBodies[0].replaceChildren(body);
}

// validity is a bar of the time that a lease still has. In good health it stays above two thirds.
function validity(lease) {
  if (lease.sleeping) return element("span", "not needed", "quiet");
  const part = lease.ttl > 0 ? lease.validFor / lease.ttl : 0;
  const level = part < 0.2 ? "bad" : lease.suspended || part < 0.4 ? "warn" : "";
  const bar = element("progress", undefined, level);
  bar.max = 1;
  bar.value = part;
  const shown = element("span");
  shown.append(bar, element("span", `${time(lease.validFor)} of ${time(lease.ttl)}`, level && `${level}-text`));
  return shown;
}

function leases(state) {
  fill("leases", state.leases.map((lease) => [
    cell(lease.lease, "mono"), cell(visible(lease.owner)), cell(visible(lease.caller)),
    cell(lease.suspended ? "suspended" : lease.sleeping ? "sleeping" : "connected", lease.suspended ? "warn-text" : ""), cell(validity(lease)),
    cell(lease.holds + lease.members, "n"), cell(lease.waits, "n"), cell(time(lease.age), "n"),
  ]), 8, "No lease is open.");
  more("leases-more", state.leases.length, state.counts.leases, "");
}

const party = (one) => `${named(one.owner)} (${one.lease})`;

function lines(parties, words, most) {
  const all = element("div");
  for (const one of parties.slice(0, most)) all.append(element("div", words(one)));
  if (parties.length > most) all.append(element("div", `and ${parties.length - most} more`, "quiet"));
  return all;
}

function locks(state) {
  fill("locks", state.locks.map((lock) => [
    cell(lock.name), lock.holders.length ? cell(lines(lock.holders, party, 3)) : cell("not held here", "none"),
    cell(lines(lock.holders, (one) => visible(one.caller), 3)),
    cell(lines(lock.holders, (one) => time(one.for), 3), "n"), cell(lines(lock.holders, (one) => one.token, 3), "mono"),
    lock.waiters.length ? cell(lines(lock.waiters, (one) => `${party(one)}, for ${time(one.for)}`, 5)) : cell("–", "none"),
  ]), 6, "No lock is held or waited for.");
}

function members(state) {
  fill("members", state.members.map((member) => [
    cell(member.name), cell(visible(member.owner)), cell(visible(member.caller)), cell(member.joined ? time(member.for) : "joining", "n"),
  ]), 4, "No member.");
}

function losses(state) {
  const rows = [];
  for (const [of, reasons] of Object.entries(state.losses)) {
    for (const [reason, count] of Object.entries(reasons)) rows.push([cell(of), cell(reason, "mono"), cell(count, "n")]);
  }
  if (state.late > 0) rows.push([cell("heartbeats"), cell("late", "mono"), cell(state.late, "n")]);
  fill("losses", rows, 3, "Nothing was lost.");
}

function latency(state) {
  fill("latency", state.latency.map((one) => [
    cell(one.operation, "mono"), cell(one.rate < 10 ? one.rate.toFixed(1) : Math.round(one.rate), "n"),
    cell(time(one.p50), "n"), cell(time(one.p99), "n"),
  ]), 4, "No requests yet.");
  $("latency-over").textContent = `in the last ${time(state.latencyOver)}`;
}

function more(id, shown, all, otherwise) {
  $(id).textContent = shown < all ? `${shown} of ${all} shown` : otherwise;
}

function tile(count, name, level) {
  const made = element("div", undefined, `tile ${level || ""}`);
  made.append(element("b", count), element("span", name, "quiet"));
  return made;
}

function counts(state) {
  const c = state.counts;
  const heartbeat = state.latency.find((one) => one.operation === "heartbeat");
  const lost = Object.values(state.losses).flatMap((reasons) => Object.values(reasons)).reduce((a, b) => a + b, 0);
  $("counts").replaceChildren(
    tile(c.leases, `leases of ${c.maxLeases}`, c.leases > 0.8 * c.maxLeases ? "warn" : ""),
    tile(c.suspended, "suspended", c.suspended ? "warn" : ""), tile(c.holds, "locks held"), tile(c.waiters, "waiting"),
    tile(c.members, "members"), tile(lost, "lost", lost ? "bad" : ""), tile(heartbeat ? time(heartbeat.p99) : "–", "heartbeat p99"),
  );
}

function contact(words, level) {
  $("contact").textContent = words;
  $("contact").className = `badge ${level}`;
}

function show(state) {
  document.body.classList.remove("gone");
  if (state.draining) contact("stopping", "warn");
  else if (state.reachable) contact("ensemble answers", "good");
  else contact("no contact with the ensemble", "bad");
  $("about").textContent = `${visible(state.version)}, up for ${time(state.uptime)}, ${state.counts.connections} connections`;
  counts(state);
  leases(state);
  locks(state);
  members(state);
  losses(state);
  latency(state);
  document.body.dataset.live = "yes";
}

const events = new EventSource("/events");
events.onmessage = (event) => show(JSON.parse(event.data));
events.onerror = () => { // the browser tries again by itself
  document.body.classList.add("gone");
  contact("the sidecar does not answer", "bad");
};
