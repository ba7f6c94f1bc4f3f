// The dialog before something is done to others, which takes a reason if the sidecar does.
import { element } from "./words.js";

const $ = (id) => document.getElementById(id);
let asked;

// ask has the person confirm, and says in the dialog why it did not work.
export function ask(what) {
  asked = what;
  $("ask-title").textContent = what.title;
  $("ask-text").textContent = what.text;
  $("ask-yes").textContent = what.yes;
  $("ask-grace-label").hidden = !what.withGrace;
  $("ask-reason-label").hidden = what.withoutReason ?? false;
  $("ask-reason").required = !what.withoutReason;
  $("ask-fields").replaceChildren(...(what.fields ?? []).map(({ label, ...field }) =>
    element("label", {}, label, element("input", { required: true, autocomplete: "off", spellcheck: "false", ...field }))));
  for (const field of ["ask-reason", "ask-grace"]) $(field).value = "";
  $("ask-error").textContent = "";
  $("ask").showModal();
  const first = $("ask-fields").querySelector("input:not([readonly])") ?? $(what.withoutReason ? "ask-yes" : "ask-reason");
  first.focus();
}

$("ask-no").addEventListener("click", () => $("ask").close());
$("ask").querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("ask-yes").disabled = true;
  $("ask-error").textContent = "";
  try {
    const given = [...$("ask-fields").querySelectorAll("input")].map((one) => [one.name, one.value]);
    await asked.act({ reason: $("ask-reason").value, grace: $("ask-grace").value, ...Object.fromEntries(given) });
    $("ask").close();
  } catch (error) {
    $("ask-error").textContent = error.message;
  } finally {
    $("ask-yes").disabled = false;
  }
});
