// A small Markdown: code, headings, lists, quotes, tables, emphasis, links. It makes elements, never HTML.

const LINKS = new Set(["http:", "https:", "mailto:"]);
const BLOCK = /^(?: {0,3}(?:#{1,6}\s|>|`{3}|~{3})|\s*(?:[-*+]|\d{1,9}[.)])\s)/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$/;
const TABLE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const LONGEST = 100000;

/** A link, if its address is one that only leads elsewhere; else the text and the address as text. */
function link(address, ...inside) {
  let url = null;
  try {
    url = new URL(address);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  if (url === null || !LINKS.has(url.protocol)) {
    return el("span", "", ...inside, ` (${visible(address)})`);
  }
  const anchor = el("a", "", ...inside);
  anchor.href = url.href;
  anchor.title = url.href;
  anchor.rel = "noopener noreferrer";
  anchor.target = "_blank";
  return anchor;
}

/** The elements and text nodes of a line of Markdown. */
function inline(text, depth = 0) {
  const out = [];
  let from = 0;
  const take = (start, end, made) => {
    if (start > from) out.push(text.slice(from, start));
    out.push(made);
    from = end;
  };
  const special = /`+|\*\*|[*[]|https?:\/\//g;
  for (let found; (found = special.exec(text)); ) {
    const at = found.index;
    const mark = found[0];
    let end = -1;
    if (mark[0] === "`") {
      end = closing(text, mark, at + mark.length);
      if (end >= 0) take(at, end + mark.length, el("code", "", text.slice(at + mark.length, end)));
    } else if (mark === "**" || mark === "*") {
      const inside = /\S/.test(text[at + mark.length] || "");
      end = inside && depth < 3 ? text.indexOf(mark, at + mark.length) : -1;
      if (end - at > 2000 || (end >= 0 && /\s/.test(text[end - 1]))) end = -1;
      if (end > at + mark.length) {
        take(at, end + mark.length, el(mark === "*" ? "em" : "strong", "", ...inline(text.slice(at + mark.length, end), depth + 1)));
      }
    } else if (mark === "[") {
      const whole = /\[([^[\]\n]{1,500})\]\(([^()\s]{1,2000})\)/y;
      whole.lastIndex = at;
      const got = whole.exec(text);
      if (got) take(at, whole.lastIndex, link(got[2], ...inline(got[1], 3)));
    } else if (depth < 3) {
      const whole = /https?:\/\/[^\s<>"'`()[\]{}*\\]{1,2000}/y;
      whole.lastIndex = at;
      const got = whole.exec(text);
      if (got) {
        const address = got[0].replace(/[.,;:!?]+$/, "");
        take(at, at + address.length, link(address, address));
      }
    }
    special.lastIndex = Math.max(special.lastIndex, from);
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

/** Where a run of backticks of the same length comes next, within the next 2,000 characters; or -1. */
function closing(text, mark, from) {
  for (let at = text.indexOf(mark, from); at >= 0 && at - from < 2000; at = text.indexOf(mark, at)) {
    let end = at;
    while (text[end] === "`") end++;
    if (end - at === mark.length) return at;
    at = end;
  }
  return -1;
}

/** A text as Markdown. What is too long for it, or has a line that is, stays plain. */
function markdown(text, depth = 0) {
  const box = el("div", "md");
  box.dir = "auto";
  if (text.length > LONGEST || depth > 6) {
    box.append(plain(text, "text"));
    return box;
  }
  const lines = (depth ? text : visible(text)).split("\n");
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(line);
    const heading = /^ {0,3}(#{1,6})\s+(.*)$/.exec(line);
    if (!line.trim()) {
      at++;
    } else if (fence) {
      const start = ++at;
      while (at < lines.length && !(lines[at].trim().startsWith(fence[1]) && !lines[at].trim().replace(/[`~]/g, ""))) at++;
      box.append(code(lines.slice(start, at++).join("\n"), fence[2].trim()));
    } else if (heading) {
      box.append(el("h" + Math.min(6, heading[1].length + 2), "", ...inline(heading[2])));
      at++;
    } else if (RULE.test(line)) {
      box.append(el("hr"));
      at++;
    } else if (/^ {0,3}>/.test(line)) {
      const start = at;
      while (at < lines.length && /^ {0,3}>/.test(lines[at])) at++;
      const inside = lines.slice(start, at).map((one) => one.replace(/^ {0,3}> ?/, ""));
      box.append(el("blockquote", "", markdown(inside.join("\n"), depth + 1)));
    } else if (/^\s*(?:[-*+]|\d{1,9}[.)])\s/.test(line)) {
      at = list(lines, at, box, depth);
    } else if (line.includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && TABLE.test(lines[at + 1])) {
      at = table(lines, at, box);
    } else {
      const start = at++;
      while (at < lines.length && lines[at].trim() && !BLOCK.test(lines[at]) && !RULE.test(lines[at])) at++;
      box.append(el("p", "", ...inline(lines.slice(start, at).join("\n"))));
    }
  }
  return box;
}

/** A list from line `at` on, with what is indented below its items; the line after it. */
function list(lines, at, box, depth) {
  const start = /^(\s*)([-*+]|\d{1,9}[.)])\s+/.exec(lines[at] + " ");
  const ordered = /\d/.test(start[2]);
  const made = el(ordered ? "ol" : "ul");
  if (ordered) made.start = Number.parseInt(start[2], 10);
  while (at < lines.length) {
    const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/.exec(lines[at] + " ");
    if (!item || item[1].length !== start[1].length || /\d/.test(item[2]) !== ordered) break;
    const inside = [item[3]];
    at++;
    while (at < lines.length) {
      const blank = !lines[at].trim();
      const next = blank ? lines[at + 1] : lines[at];
      if (next === undefined || !/^\s+\S/.test(next) || /^\s*/.exec(next)[0].length <= start[1].length) break;
      inside.push(lines[at].slice(Math.min(start[1].length + 2, /^\s*/.exec(lines[at])[0].length)));
      at++;
    }
    const li = el("li");
    if (inside.length === 1) li.append(...inline(inside[0].trimEnd()));
    else li.append(...markdown(inside.join("\n"), depth + 1).childNodes);
    made.append(li);
    if (at + 1 < lines.length && !lines[at].trim() && /^\s*(?:[-*+]|\d{1,9}[.)])\s/.test(lines[at + 1])) at++;
  }
  box.append(made);
  return at;
}

function table(lines, at, box) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").slice(0, 50);
  const row = (line, tag) => el("tr", "", ...cells(line).map((cell) => el(tag, "", ...inline(cell.trim()))));
  const body = el("tbody");
  const made = el("table", "", el("thead", "", row(lines[at], "th")), body);
  at += 2;
  while (at < lines.length && lines[at].includes("|")) body.append(row(lines[at++], "td"));
  box.append(el("div", "wide", made));
  return at;
}

function code(text, language) {
  return isDiff(text) || language === "diff" ? diff(text) : plain(text, "code");
}
