// Elements and text. Everything that a session says comes into the page through `el` and `visible`, as text nodes.

/** An element with a class and children; strings become text nodes. */
function el(tag, className, ...inside) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...inside.filter((one) => one !== null && one !== undefined));
  return element;
}

function button(className, title, text, act) {
  const element = el("button", className, text);
  element.type = "button";
  element.title = title;
  element.addEventListener("click", act);
  return element;
}

const CONTROLS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]/g;
const COLOURS = /\u001b\[[0-9;]*m/g;

/** Text with control characters and changes of direction made visible; the colours of terminals are left out. */
function visible(text) {
  return text
    .replace(COLOURS, "")
    .replace(/\r\n/g, "\n")
    .replace(CONTROLS, (char) => {
      const code = char.charCodeAt(0);
      if (code < 0x20) return String.fromCharCode(0x2400 + code);
      return code === 0x7f ? "\u2421" : "\\u" + code.toString(16).padStart(4, "0");
    });
}

/** A text of a block: itself, or its place among the texts that are kept once. */
function textOf(text) {
  return typeof text === "number" ? data.texts[text] : typeof text === "string" ? text : "";
}

function oneLine(text, width) {
  const short = visible(text.slice(0, 4 * width).replace(/\s+/g, " ").trim());
  return short.length > width ? short.slice(0, width - 1) + "…" : short;
}

const LINES = 60;
const CHARS = 8000;

/**
 * A block of plain text, which shows its beginning and the rest when asked.
 * `fill` puts text into the element (default: a text node).
 */
function plain(text, className, fill = (into, shown) => into.append(shown)) {
  const shown = visible(text).replace(/\n+$/, "");
  const pre = el("pre", className);
  pre.dir = "auto";
  let cut = CHARS;
  for (let at = -1, line = 0; line < LINES; line++) {
    at = shown.indexOf("\n", at + 1);
    if (at < 0) break;
    if (line === LINES - 1) cut = Math.min(cut, at);
  }
  if (shown.length <= cut * 1.2) {
    fill(pre, shown);
    return pre;
  }
  fill(pre, shown.slice(0, cut));
  const box = el("div", "clipped", pre);
  const more = button("more", "", `Show all (${number(shown.length)} characters)`, () => box.unclip());
  box.unclip = () => {
    if (!more.isConnected && more.parentNode !== box) return;
    pre.textContent = "";
    fill(pre, shown);
    more.remove();
  };
  box.append(more);
  return box;
}

function number(value) {
  return value.toLocaleString("en-US");
}

function counted(count, thing) {
  return `${number(count)} ${thing}${count === 1 ? "" : "s"}`;
}

function money(value) {
  return "$" + (value >= 1 ? value.toFixed(2) : String(Number(value.toPrecision(2))));
}

/** How long something took, from milliseconds; "" where that is not known. */
function duration(milliseconds) {
  if (!(milliseconds > 0)) return "";
  if (milliseconds < 1000) return `${milliseconds} ms`;
  if (milliseconds < 60000) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours ? `${number(hours)} h ${minutes} min` : `${minutes} min ${seconds % 60} s`;
}

/** Unix milliseconds as a time element, in the reader's zone; some foreign logs hold times that no calendar has. */
function moment(milliseconds) {
  const time = new Date(milliseconds);
  if (!(milliseconds > 0) || Number.isNaN(time.getTime())) return null;
  const two = (part) => String(part).padStart(2, "0");
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const element = el("time", "", `${day} ${two(time.getHours())}:${two(time.getMinutes())}`);
  element.dateTime = time.toISOString();
  return element;
}

/** A part that is folded until somebody opens it; what is in it is built then. */
function folded(className, summary, build, open = false) {
  const details = el("details", className, el("summary", "", ...summary));
  let built = false;
  details.fill = () => {
    if (built) return;
    built = true;
    details.append(...build().filter(Boolean));
  };
  details.addEventListener("toggle", () => details.open && details.fill());
  if (open) {
    details.fill();
    details.open = true;
  }
  return details;
}
