// Tool calls and their results: commands, changes of files and diffs are shown as what they are, the rest as JSON.

/** Whether a text has a unified diff or a patch in it. */
function isDiff(text) {
  const start = text.slice(0, 20000);
  return /^@@ .*@@/m.test(start) || /^\*\*\* Begin Patch/m.test(start) || /^--- .*\n\+\+\+ /m.test(start);
}

/** A diff, each line coloured by what it does. */
function diff(text) {
  return plain(text, "code diff", (pre, shown) => {
    for (const line of shown.split("\n")) {
      let kind = "";
      if (/^(?:@@|\*\*\* |diff |index |--- |\+\+\+ )/.test(line)) kind = "at";
      else if (line[0] === "+") kind = "add";
      else if (line[0] === "-") kind = "del";
      pre.append(kind ? el("span", kind, line + "\n") : line + "\n");
    }
  });
}

/** An old and a new text as a diff: what both begin and end with is context. */
function changed(old, fresh) {
  const a = old === "" ? [] : old.split("\n");
  const b = fresh === "" ? [] : fresh.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const lines = (part, sign) => part.map((line) => sign + line);
  return [
    ...lines(a.slice(Math.max(0, head - 3), head), " "),
    ...lines(a.slice(head, a.length - tail), "-"),
    ...lines(b.slice(head, b.length - tail), "+"),
    ...lines(a.slice(a.length - tail, a.length - tail + 3), " "),
  ].join("\n");
}

const OLD = ["old_string", "oldText", "old_str", "old_text", "search"];
const NEW = ["new_string", "newText", "new_str", "new_text", "replace"];
const PATH = ["file_path", "path", "filePath", "filename", "notebook_path"];
const SHORT = [...PATH, "pattern", "query", "url", "description", "prompt"];

function firstOf(object, names) {
  for (const name of names) {
    const value = object[name];
    if (typeof value === "string") return value;
    if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(" ");
  }
  return null;
}

/** The arguments of a call as an object where they are one, else the text. */
function argumentsOf(call) {
  const given = call.arguments ?? {};
  if (typeof given !== "string") return given;
  try {
    const parsed = JSON.parse(given);
    return parsed !== null && typeof parsed === "object" && !Array.isArray(parsed) ? parsed : given;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return given;
  }
}

/** The command of a call that runs one: a text, or words of which a shell's own are left out. */
function commandOf(given) {
  const command = given.command ?? given.cmd;
  if (typeof command === "string") return command;
  if (!Array.isArray(command) || !command.every((one) => typeof one === "string")) return null;
  return command.length === 3 && /^-l?c$/.test(command[1]) ? command[2] : command.join(" ");
}

/** A result that is JSON around what a command printed; null for others. */
function outputIn(text) {
  if (!text.startsWith('{"output":')) return null;
  try {
    const parsed = JSON.parse(text);
    return typeof parsed.output === "string" ? parsed : null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return null;
  }
}

/**
 * A result that is JSON without a space, as programs print it; null for others, and for JSON that reading changes
 * (numbers beyond what JavaScript holds, a name twice).
 */
function jsonIn(text) {
  if (!/^(?:\{"|\[[\[{"\d-])/.test(text) || text.length > 200000) return null;
  try {
    const parsed = JSON.parse(text);
    return JSON.stringify(parsed) === text.trim() ? parsed : null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return null;
  }
}

/** What a call is about, on one line. */
function gist(call) {
  const given = argumentsOf(call);
  if (typeof given === "string") return oneLine(given, 160);
  const patch = patchIn(given);
  if (patch !== null) return (/^\*\*\* (?:Update|Add|Delete) File: (.+)$/m.exec(patch) || [, ""])[1].slice(0, 160);
  const short = commandOf(given) ?? firstOf(given, SHORT);
  if (short !== null) return oneLine(short, 160);
  const rest = Object.keys(given);
  return rest.length ? oneLine(rest.map((name) => `${name}=${typeof given[name] === "string" ? given[name].trim() : JSON.stringify(given[name])}`.slice(0, 80)).join(", "), 160) : "";
}

function patchIn(given) {
  for (const value of Object.values(given)) {
    const text = Array.isArray(value) ? value.find((one) => typeof one === "string" && one.includes("*** Begin Patch")) : value;
    if (typeof text === "string" && text.includes("*** Begin Patch")) return text.slice(text.indexOf("*** Begin Patch"));
  }
  return null;
}

/** The elements that show a call's arguments. */
function showArguments(call) {
  const given = argumentsOf(call);
  if (typeof given === "string") return given ? [isDiff(given) ? diff(given) : plain(given, "code")] : [];
  const out = [];
  const rest = { ...given };
  const path = firstOf(given, PATH);
  const edits = Array.isArray(given.edits) ? given.edits : [given];
  const patch = patchIn(given);
  const diffs = edits
    .filter((one) => one !== null && typeof one === "object")
    .map((one) => [firstOf(one, OLD), firstOf(one, NEW)])
    .filter(([old, fresh]) => old !== null && fresh !== null);
  if (diffs.length && diffs.length === edits.length) {
    for (const [old, fresh] of diffs) out.push(diff(changed(old, fresh)));
    for (const name of [...OLD, ...NEW, "edits"]) delete rest[name];
  } else if (path !== null && typeof given.content === "string") {
    out.push(diff(changed("", given.content)));
    delete rest.content;
  } else if (patch !== null) {
    out.push(diff(patch));
    for (const name of Object.keys(rest)) if (JSON.stringify(rest[name]).includes("*** Begin Patch")) delete rest[name];
  } else if (commandOf(given) !== null) {
    out.push(plain(commandOf(given), "code command"));
    delete rest.command;
    delete rest.cmd;
  }
  if (Object.keys(rest).length) out.unshift(fields(rest));
  return out;
}

const PROGRAM = ["code", "script", "source", "program"];

/** An object as a list of its fields: strings as text, programs as code, others as JSON. */
function fields(object) {
  const made = el("dl", "fields");
  for (const [name, value] of Object.entries(object).slice(0, 200)) {
    const text = typeof value === "string" ? value.replace(/^(?:[ \t]*\n)+/, "") : JSON.stringify(value, null, 1);
    const isCode = typeof value === "string" ? PROGRAM.includes(name) && value.includes("\n") : text?.includes("\n");
    made.append(el("dt", "", visible(name)), el("dd", "", plain(text ?? "", isCode ? "code" : "")));
  }
  return made;
}
