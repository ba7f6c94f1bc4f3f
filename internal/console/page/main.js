// The page: tabs, the list of one kind, its search, and how all of it follows what happens.
import { go, note, where } from "./address.js";
import { again, call, hasToken, own, Refusal } from "./api.js";
import { close, open } from "./detail.js";
import { kinds as plain } from "./kinds.js";
import { List } from "./list.js";
import { state } from "./state.js";
import { waits } from "./waits.js";
import { element, time, visible } from "./words.js";

const $ = (id) => document.getElementById(id);
const kinds = [plain[0], waits, ...plain.slice(1), state];
let kind, list, rows;
let listed = 0; // when rows came
let failure = ""; // why they did not come anew; empty if they did
let asked = 0; // which answer is the newest

const shortest = 2000; // milliseconds between two looks at the health, and at how old things are
const rarely = 30000; // between two looks for circles

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
  const shown = kind.watch || kind.get ? name : undefined;
  if (shown === undefined) {
    close();
    if (inside) list.focus();
  } else {
    open(kind, { name }, () => go(kind.id, undefined, $("search").value));
  }
  document.title = [shown && visible(shown), kind.title, "Sidekeeper console"].filter(Boolean).join(" – ");
}

function select(next) {
  close();
  kind = next;
  rows = undefined;
  failure = "";
  list = new List({
    label: kind.title, columns: kind.columns, key: kind.key, order: kind.order, open: openRow,
    seen: kind.seen && ((seen) => seen.forEach((row) => kind.seen(row, redraw))),
  });
  $("list").replaceChildren(list.node);
  $("search").value = "";
  for (const tab of $("tabs").children) {
    const chosen = tab.id === `tab-${kind.id}`;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
  }
  $("panel").setAttribute("aria-labelledby", `tab-${kind.id}`);
  $(`tab-${kind.id}`).scrollIntoView({ block: "nearest", inline: "nearest" });
  show();
  refresh(++asked);
}

function openRow(row) {
  if (kind.opens) go(...kind.opens(row));
  else if (kind.watch || kind.get) go(kind.id, row.name, $("search").value);
}

// redraw shows what came meanwhile, at most once a frame.
let drawing = false;
function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; list.draw(); });
}

const matches = (row, words) => (kind.matches ? kind.matches(row, words) : row.name.toLowerCase().includes(words));

// show shows those rows that are searched: all, or those that have come until now. Else it says why there is none.
function show(some = rows ?? []) {
  const words = $("search").value.trim().toLowerCase();
  const found = words === "" ? some : some.filter((row) => matches(row, words));
  list.empty = emptiness(some, words);
  list.node.classList.toggle("stale", failure !== "" && rows !== undefined);
  list.show(found);
  $("count").className = failure ? "bad-text" : "quiet";
  $("count").textContent = failure || counted(found, some, words);
  showAge();
}

// showAge says for how long what is shown may have been wrong. It stands apart, so that no screen reader is told each second.
function showAge() {
  $("age").textContent = failure && rows ? `as of ${time((performance.now() - listed) / 1000)} ago` : "";
}

function emptiness(some, words) {
  if (rows === undefined) return failure ? `This is not known: ${failure}. The page goes on asking.` : "loading";
  return words !== "" && some.length > 0 ? `None of ${some.length.toLocaleString("en")} matches “${visible(words)}”.` : kind.empty;
}

function counted(found, some, words) {
  if (rows === undefined && some.length === 0) return "loading";
  if (kind.uncounted) return kind.note;
  const all = `${some.length.toLocaleString("en")}${rows ? "" : " so far"}${kind.note ? ` ${kind.note}` : ""}`;
  return words === "" ? all : `${found.length.toLocaleString("en")} of ${all}`;
}

// refresh lists again and again, as long as nothing else was chosen.
function refresh(mine) {
  again(() => mine === asked, async () => {
    try {
      const early = rows === undefined && ((some) => { if (mine === asked) show(some); });
      const all = await kind.list(early || undefined);
      if (mine !== asked) return;
      [rows, listed, failure] = [all, performance.now(), ""];
      alarm(kind, kind.alarm?.(all));
    } catch (error) {
      if (mine !== asked) return;
      if (kind.alarm) alarm(kind, "not known");
      failure = error instanceof Refusal ? error.message.replace(/\.$/, "") : "the console does not answer";
    }
    show();
    return failure === "";
  });
}

// alarm says on a tab what a person should look at there.
function alarm(of, words) {
  $(`tab-${of.id}`).textContent = words ? `${of.title}: ${words}` : of.title;
}

// watchFor looks for that also while another tab is chosen.
function watchFor(of) {
  again(() => true, async () => {
    try {
      if (of !== kind) alarm(of, of.alarm(await of.list()));
      return true;
    } catch {
      alarm(of, "not known");
      return false;
    }
  }, rarely);
}

function contact(words, level) {
  $("contact").textContent = words;
  $("contact").className = `badge ${level}`;
}

// health follows the sidecar and its ensemble.
async function health() {
  for (;;) {
    try {
      const { status } = await call("grpc.health.v1.Health/Check", { service: "sidekeeper.readiness" });
      if (status === "SERVING") contact("ensemble answers", "good");
      else contact("no contact with the ensemble", "bad");
      document.body.classList.remove("gone");
      document.body.dataset.live = "yes";
    } catch (error) {
      document.body.classList.add("gone");
      contact(error instanceof Refusal ? error.message : "the console has ended", "bad");
    }
    await new Promise((resolve) => { setTimeout(resolve, shortest); });
  }
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
    $("search").focus();
  }
}

async function begin() {
  if (!hasToken()) {
    contact("open the address that sidekeeper console printed: it has a token", "bad");
    return;
  }
  $("tabs").append(...kinds.map((one) =>
    element("button", { type: "button", role: "tab", id: `tab-${one.id}`, "aria-controls": "panel", onclick: () => go(one.id) }, one.title)));
  $("tabs").addEventListener("keydown", turnTab);
  $("search").addEventListener("input", () => { if (rows) show(); note(kind.id, $("search").value); });
  document.addEventListener("keydown", press);
  addEventListener("resize", redraw);
  setInterval(() => {
    if (document.visibilityState !== "visible") return;
    redraw();
    showAge();
  }, shortest);
  addEventListener("hashchange", follow);
  follow();
  kinds.filter((one) => one.alarm).forEach(watchFor);
  health();
  const known = await own("/about");
  $("about").textContent = `${visible(known.address)}, ${visible(known.version)}`;
}

begin();
