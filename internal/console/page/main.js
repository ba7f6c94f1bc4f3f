// The page: tabs, the list of one kind, its search, and how all of it follows what happens.
import { go, note, where } from "./address.js";
import { again, hasToken, own, Refusal } from "./api.js";
import { close, open } from "./detail.js";
import { kinds as plain } from "./kinds.js";
import { List } from "./list.js";
import { overview, show as showOverview } from "./overview.js";
import { waits } from "./waits.js";
import { element, since, time, visible } from "./words.js";

const $ = (id) => document.getElementById(id);
const kinds = [overview, plain[0], waits, ...plain.slice(1)];
let kind, list, rows;
let listed = 0; // when rows came
let failure = ""; // why they did not come anew; empty if they did
let asked = 0; // which answer is the newest
let deep = false; // whether it is looked into however many, to search them

const shortest = 2000; // milliseconds between two looks at how old things are
const drawAgain = 500; // while it is looked into what is searched
const fewEnough = 1000; // which are looked into without being asked to

const isOpened = (name) => (kind.watch || kind.get) && name !== undefined;

// follow shows what the address says.
function follow() {
  const { id, name, search } = where();
  const inside = $("detail").contains(document.activeElement);
  const next = kinds.find((one) => one.id === id) ?? kinds[0];
  if (next !== kind) select(next);
  if ($("search").value !== search) {
    $("search").value = search;
    show();
  }
  if (isOpened(name)) {
    open(kind, { name }, () => go(kind.id, undefined, $("search").value));
  } else {
    close();
    if (inside) list?.focus();
  }
  document.title = [isOpened(name) && visible(name), kind.title, "Sidekeeper console"].filter(Boolean).join(" – ");
}

function select(next) {
  close();
  kind = next;
  [rows, failure, deep, list] = [undefined, "", false, undefined];
  $("search").value = "";
  $("search").placeholder = kind.words ? "name, owner, identity, lease" : "name";
  for (const tab of $("tabs").children) {
    const chosen = tab.id === `tab-${kind.id}`;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
  }
  $("panel").setAttribute("aria-labelledby", `tab-${kind.id}`);
  $(`tab-${kind.id}`).scrollIntoView({ block: "nearest", inline: "nearest" });
  $("overview").hidden = kind !== overview;
  for (const part of ["bar", "list"]) $(part).hidden = kind === overview;
  $("begin").hidden = !kind.begin;
  $("begin").textContent = kind.begin?.title ?? "";
  asked++;
  if (kind === overview) return;
  list = new List({
    label: kind.title, columns: kind.columns, key: kind.key, order: kind.order, open: openRow,
    seen: kind.seen && ((seen) => seen.forEach((row) => kind.seen(row, redraw))),
  });
  $("list").replaceChildren(list.node);
  show();
  refresh(asked);
}

function openRow(row) {
  if (kind.opens) go(...kind.opens(row));
  else if (isOpened(row.name) && !row.closed) go(kind.id, row.name, $("search").value);
}

// redraw shows what came meanwhile, at most once a frame.
let drawing = false;
function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; list?.draw(); });
}

// searchAgain searches what came meanwhile.
let searching;
function searchAgain() {
  searching ??= setTimeout(() => { searching = undefined; show(); }, drawAgain);
}

const found = (row, words) => (kind.words ? kind.words(row) : [row.name]).some((word) => word?.toLowerCase().includes(words));

// show shows those rows that are searched: all, or those that have come until now. Else it says why there is none.
function show(some = rows ?? []) {
  if (!list) return;
  const words = $("search").value.trim().toLowerCase();
  const many = rows && rows.length > fewEnough && !deep;
  const left = words !== "" && rows && kind.lookInto && !many ? kind.lookInto(rows, searchAgain) : "";
  const shown = words === "" ? some : some.filter((row) => found(row, words));
  $("deeper").hidden = words === "" || !kind.lookInto || !many;
  list.empty = emptiness(some, words);
  list.node.classList.toggle("stale", failure !== "" && rows !== undefined);
  list.show(shown);
  $("count").className = failure ? "bad-text" : "quiet";
  $("count").textContent = failure || counted(shown, some, words) + (left && `, ${left}`);
  showAge();
}

// showAge says for how long what is shown may have been wrong. It stands apart, so that no screen reader is told each second.
function showAge() {
  $("age").textContent = failure && rows ? `as of ${time((performance.now() - listed) / 1000)} ago` : "";
}

function emptiness(some, words) {
  if (rows === undefined || (failure && some.length === 0)) return failure ? `This is not known: ${failure}. The page goes on asking.` : "loading";
  return words !== "" && some.length > 0 ? `None of ${some.length.toLocaleString("en")} matches “${visible(words)}”.` : kind.empty;
}

function counted(shown, some, words) {
  if (rows === undefined && some.length === 0) return "loading";
  const all = `${some.length.toLocaleString("en")}${rows ? "" : " so far"}${kind.note ? ` ${kind.note}` : ""}`;
  return words === "" ? all : `${shown.length.toLocaleString("en")} of ${all}`;
}

// refresh lists again and again, as long as nothing else was chosen.
function refresh(mine) {
  again(() => mine === asked, async () => {
    try {
      const early = rows === undefined && ((some) => { if (mine === asked) show(some); });
      const all = await kind.list(early || undefined);
      if (mine !== asked) return;
      [rows, listed, failure] = [all, performance.now() - 1000 * (all.age ?? 0), reason(all.failure ?? "")];
    } catch (error) {
      if (mine !== asked) return;
      failure = error instanceof Refusal ? reason(error.message) : "the console does not answer";
    }
    show();
    return failure === "";
  });
}

const reason = (words) => words.replace(/\.$/, "");

// watch follows what the console itself sees, whatever is shown.
function watch() {
  let last, came; // what the console said last, and when
  again(() => true, async () => {
    try {
      [last, came] = [await own("/overview"), performance.now()];
      document.body.classList.remove("gone");
      contact(last);
      tell(last);
      document.body.dataset.live = "yes";
      return true;
    } catch (error) {
      const why = error instanceof Refusal ? error.message : "the console has ended";
      const gone = (performance.now() - came) / 1000;
      document.body.classList.add("gone");
      badge(why, "bad");
      if (last) tell({ ...last, age: last.age + gone, since: last.since + gone, failure: why, state: undefined, absence: why });
      return false;
    }
  });
}

function tell(seen) {
  const stuck = seen.contact !== "good" || seen.failure ? "not known" : seen.stuck ? `${seen.stuck} in a circle` : "";
  $("tab-waits").textContent = stuck ? `${waits.title}: ${stuck}` : waits.title;
  showOverview(seen);
}

function contact({ contact: of, since: ago }) {
  if (of === "good") badge("ensemble answers", "good");
  else if (of === "ensemble") badge(`no contact with the ensemble ${since(ago)}`, "bad");
  else if (of === "sidecar") badge(`the sidecar does not answer ${since(ago)}`, "bad");
}

function badge(words, level) {
  $("contact").textContent = words;
  $("contact").className = `badge ${level}`;
}

function turnTab(event) {
  const at = kinds.findIndex((one) => event.target.id === `tab-${one.id}`); // the address, and what is shown, follow
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: kinds.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = kinds[(to + kinds.length) % kinds.length];
  go(next.id);
  $(`tab-${next.id}`).focus();
}

function press(event) {
  if ($("ask").open) return;
  if (event.key === "Escape" && !$("detail").hidden) {
    go(kind.id, undefined, $("search").value);
  } else if (event.key === "/" && event.target.tagName !== "INPUT") {
    event.preventDefault();
    if (list) {
      $("search").focus();
    } else {
      addEventListener("hashchange", () => $("search").focus(), { once: true });
      go("locks");
    }
  }
}

async function begin() {
  if (!hasToken()) {
    badge("open the address that sidekeeper console printed: it has a token", "bad");
    return;
  }
  $("tabs").append(...kinds.map((one) =>
    element("button", { type: "button", role: "tab", id: `tab-${one.id}`, "aria-controls": "panel", onclick: () => go(one.id) }, one.title)));
  $("tabs").addEventListener("keydown", turnTab);
  $("search").addEventListener("input", () => { if (rows) show(); note(kind.id, $("search").value); });
  $("deeper").addEventListener("click", () => { deep = true; show(); $("search").focus(); });
  $("begin").addEventListener("click", () => kind.begin.act());
  document.addEventListener("keydown", press);
  addEventListener("resize", redraw);
  setInterval(() => {
    if (document.visibilityState !== "visible") return;
    redraw();
    showAge();
  }, shortest);
  addEventListener("hashchange", follow);
  follow();
  watch();
  const known = await own("/about");
  $("about").textContent = `${visible(known.address)}, ${visible(known.version)}`;
}

begin();
