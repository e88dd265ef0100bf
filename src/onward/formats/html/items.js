// What is shown of a path, as a list of items: for people (the transcript), or as the model saw it (the context).

const STAND_INS = new Set(["compaction/summary", "context/edit"]);
const ASIDE = 600; // characters from which on what a program said in the user's place is folded

/** The parts of a node: its blocks, the tool calls of `waiting` ready to be joined by their results. */
function partsOf(node, waiting) {
  const parts = [];
  const add = (blocks) => {
    for (const block of blocks) {
      if (block.type === "reasoning" && !textOf(block.text).trim()) continue;
      if (block.type === "text" && textOf(block.text) === "") continue;
      const part = { block, node, element: null, result: null };
      if (block.type === "tool_call") part.approvals = [];
      parts.push(part);
      if (block.type === "tool_call" && waiting) waiting.set(block.call_id, part);
    }
  };
  for (const message of node.messages || []) {
    parts.push({ block: { type: "role", text: message.role }, node, element: null });
    add(message.blocks);
  }
  add(node.blocks || []);
  if (node.error) parts.push({ block: { type: "error", text: node.error }, node, element: null });
  if (!node.blocks && !node.messages && node.data !== undefined) {
    parts.push({ block: { type: "data", data: node.data }, node, element: null });
  }
  return parts;
}

/**
 * The items of nodes that follow each other; a result joins the call that it answers.
 * `stateOf` gives what became of a node: "current", "replaced", "log-only".
 */
function itemsOf(list, stateOf, standIns = new Set()) {
  const waiting = new Map();
  const items = [];
  for (const node of list) {
    if (node.type === "tool/result" && !standIns.has(node.seq) && waiting.has(node.call_id)) {
      const part = waiting.get(node.call_id);
      part.result = node;
      part.resultState = stateOf(node);
      waiting.delete(node.call_id);
      continue;
    }
    const call = waiting.get(node.call_id);
    if (call && node.type === "tool/call") call.started = node.time;
    if (call && node.type === "tool/approval") call.approvals.push(node);
    const item = { node, kind: "message", state: stateOf(node), parts: partsOf(node, waiting), element: null };
    if (standIns.has(node.seq)) item.kind = "stand-in";
    else if (node.type === "turn/end" && node.reason !== "completed") item.kind = "rule";
    else if (node.type === "assistant/attempt" && node.error) item.kind = "rule";
    else if (!node.blocks && !node.messages && !node.error) item.kind = "event";
    else if (!item.parts.length) item.kind = "empty";
    else if (node.type === "user/message" && !byPerson(node) && lengthOf(node) >= ASIDE) item.kind = "aside";
    items.push(item);
  }
  return items;
}

/** The transcript of a path: its nodes as they were appended; what stands for others is folded. */
function transcriptItems(path) {
  const { surface, takenBy } = surfaceOf(path);
  const seen = new Set(surface);
  const takers = new Set(takenBy.values());
  const standIns = new Set();
  for (const node of path) {
    if (typeof node.surface !== "object") continue;
    if (STAND_INS.has(node.type) || takers.has(node.seq)) standIns.add(node.seq);
  }
  const stateOf = (node) => {
    if (seen.has(node.seq)) return "current";
    return node.surface === undefined ? "log-only" : "replaced";
  };
  return itemsOf(path, stateOf, standIns);
}

/** What the model saw at the end of a path, in its order, and in between what it no longer saw, folded. */
function contextItems(path) {
  const { surface, takenBy } = surfaceOf(path);
  const seen = new Set(surface);
  const gone = new Map();
  for (const node of path) {
    const taker = takenBy.get(node.seq);
    if (taker === undefined) continue;
    if (!gone.has(taker)) gone.set(taker, []);
    gone.get(taker).push(node);
  }
  const group = (taker) => ({ kind: "gone", taker: nodes.get(taker), nodes: gone.get(taker), parts: [], element: null });
  const items = [...gone.keys()].filter((taker) => !seen.has(taker)).map(group);
  for (const item of itemsOf(surface.map((seq) => nodes.get(seq)), () => "current")) {
    if (gone.has(item.node.seq)) items.push(group(item.node.seq));
    if (!item.parts.length) item.kind = "omitted";
    else if (item.kind === "aside") item.kind = "message";
    items.push(item);
  }
  return items;
}

/** The text of a part as it is searched and shown. */
function partText(part) {
  const { block, result } = part;
  if (block.type === "tool_call") {
    return [block.name, ...stringsIn(block.arguments), ...(result ? result.blocks.map((one) => textOf(one.text)) : [])].join("\n");
  }
  if (block.type === "data" || block.type === "other") return stringsIn(block.data).join("\n");
  if (block.type === "tool_result") return block.content.map((one) => textOf(one.text)).join("\n");
  return textOf(block.text) || block.name || block.uri || block.url || "";
}

function stringsIn(value) {
  const out = [];
  const stack = [value];
  while (stack.length) {
    const one = stack.pop();
    if (typeof one === "string") out.push(one);
    else if (one !== null && typeof one === "object") for (const inside of Object.values(one).reverse()) stack.push(inside);
  }
  return out;
}

/** Text of a node for a list: what its first text says. */
function preview(node, width) {
  for (const block of node.blocks || []) {
    const text = textOf(block.text) || (block.type === "tool_call" ? `${block.name} ${gist(block)}` : "");
    if (text.trim()) return oneLine(unmarked(text.slice(0, 8 * width)), width);
  }
  return "";
}

/** A beginning of Markdown for a line: without the marks of headings and of weight. */
function unmarked(text) {
  return text.replace(/^ {0,3}#{1,6} +/gm, "").replace(/\*\*(?=\S)|(?<=\S)\*\*/g, "");
}

function lengthOf(node) {
  return (node.blocks || []).reduce((sum, block) => sum + textOf(block.text).length, 0);
}

const byPerson = (node) => node.type === "user/message" && (node.source === undefined || node.source === "user");
