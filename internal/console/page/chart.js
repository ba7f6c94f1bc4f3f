// A small picture of the last hour: one bar a span, red where there was no contact.
import { clock, element } from "./words.js";

const high = 32; // units, in which the tallest bar is drawn

function drawn(name, attributes, ...content) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

// chart draws numbers, of which those below 0 are not known. Those that are bad in themselves are red, too.
export function chart(numbers, { span, away }, said, bad = false) {
  const most = Math.max(0, ...numbers);
  const bar = (value, index) => (value > 0 ? `M${index} ${high}v${-Math.max(1, (value / most) * high).toFixed(1)}h1V${high}z` : "");
  const line = (value, index) => (value < 0 ? "" : `M${index} ${high}h1`);
  const gone = (is, index) => (is ? `M${index} 0h1V${high}h-1z` : "");
  const words = described(numbers, span, away, said);
  return element("figure", {},
    drawn("svg", { viewBox: `0 0 ${numbers.length} ${high + 1}`, preserveAspectRatio: "none", role: "img", "aria-label": `The last hour: ${words}` },
      drawn("path", { class: "away", d: away.map(gone).join("") }),
      drawn("path", { class: "known", d: numbers.map(line).join("") }),
      drawn("path", { class: bad ? "bar bad" : "bar", d: numbers.map(bar).join("") })),
    element("figcaption", { class: "quiet" }, element("span", {}, clock(before(numbers.length, span))), element("span", {}, words), element("span", {}, "now")));
}

const before = (spans, span) => new Date(Date.now() - spans * span * 1000);

function described(numbers, span, away, said) {
  const most = Math.max(...numbers);
  const lost = away.filter(Boolean).length;
  const words = [];
  if (most < 0) words.push("not known");
  else if (most === 0) words.push("none");
  else words.push(`at most ${said(most)}, at ${clock(before(numbers.length - 1 - numbers.lastIndexOf(most), span))}`);
  if (lost > 0) words.push(`no contact for ${Math.ceil((lost * span) / 60)} min`);
  return words.join("; ");
}
