// Items as elements. What is folded is built when it is opened.

const holds = new Map(data.holds || []); // as it was when the page was made
const FELL = new Set(["stale", "missing", "moved"]);
const STANDING = {
  fresh: "is still so",
  stale: "has changed since",
  missing: "is not there any more",
  moved: "is at another place now",
  superseded: "was looked at or changed again later",
  unverifiable: "cannot be told to be still so",
};
const NAMES = { user: "User", assistant: "Assistant", system: "System", tool: "Tool result" };
const BATCH = 200; // parts of one entry, and entries of one group, that are built before somebody asks for more
let unfolded = false;

/** The element of an item. */
function entry(item) {
  const { node, kind } = item;
  if (kind === "gone") return goneGroup(item);
  const box = el("article", `entry ${kind} ${node.role || ""} ${node.role === "user" && !byPerson(node) ? "machine" : ""} ${item.state}`);
  box.id = `n${node.seq}`;
  box.tabIndex = -1;
  item.element = box;
  const name = nameOf(item);
  box.setAttribute("aria-label", `${name}, #${node.seq}`);
  if (kind === "rule") {
    const why = [node.type === "turn/end" ? `the turn ended: ${node.reason}` : "a request failed", node.error];
    box.append(el("p", "", visible(why.filter(Boolean).join(" — "))), anchor(node));
    return box;
  }
  if (kind === "event" || kind === "stand-in" || kind === "aside" || kind === "empty") {
    const parts = item.parts;
    const summary = [el("span", "who", name), " ", el("span", "gist", preview(node, 120)), anchor(node)];
    const details = folded("node", summary, () => (parts.length ? parts.map((part) => partElement(part)) : [el("p", "none", "nothing in it")]), unfolded && kind !== "event");
    for (const part of parts) part.holder = details;
    box.append(details);
    return box;
  }
  box.append(heading(item, name));
  if (kind === "omitted") {
    box.append(el("p", "none", "on the surface, but without a message"));
    return box;
  }
  const body = el("div", "body");
  box.append(body);
  inBatches(body, item.parts, (part) => partElement(part));
  return box;
}

/** Append elements for a list, a batch at a time when asked. */
function inBatches(body, list, make) {
  let at = 0;
  const more = () => {
    for (const end = Math.min(list.length, at + BATCH); at < end; at++) body.append(make(list[at]));
    if (at < list.length) {
      const next = button("more", "", `Show ${Math.min(BATCH, list.length - at)} more of ${number(list.length)}`, () => {
        next.remove();
        more();
      });
      body.append(next);
      body.more = () => next.click();
    } else {
      body.more = null;
    }
  };
  more();
}

function nameOf({ node, kind }) {
  if (kind === "stand-in" && (node.type === "compaction/summary" || node.compaction !== undefined)) return "Compaction: from here the model sees a summary";
  if (kind === "stand-in" && node.type === "context/edit") return `Edit of what the model sees of #${node.target}`;
  if (kind === "stand-in" && node.type === "system/message") return "System prompt from here on";
  if (kind === "stand-in") return `Change of what the model sees (${node.type})`;
  if (node.type === "compaction/summary") return "Summary of a compaction";
  if (node.type === "branch/summary") return "Summary of a branch that was left";
  if (node.type === "custom/message") return visible(node.kind || "custom");
  if (node.type === "user/message" && !byPerson(node)) return `User (${visible(String(node.source))})`;
  return NAMES[node.role] || visible(node.type);
}

function anchor(node) {
  const made = el("a", "seq", `#${node.seq}`);
  made.href = `#n${node.seq}`;
  made.title = "Link to this place";
  return made;
}

function heading(item, name) {
  const { node, state } = item;
  const head = el("header", "", el("span", "who", name));
  if (node.model) head.append(el("span", "model", visible(node.model)));
  if (labels.has(node.seq)) head.append(el("span", "label", oneLine(labels.get(node.seq), 80)));
  if (node.interrupted) head.append(el("span", "badge", "interrupted"));
  if (holds.has(node.seq)) head.append(standing(node));
  if (node.is_error) head.append(el("span", "badge bad", "error"));
  if (state === "replaced") head.append(el("span", "badge", "no longer seen by the model"));
  if (state === "log-only") head.append(el("span", "badge", "never seen by the model"));
  const end = el("span", "end", node.usage ? el("span", "usage", usageText(node.usage)) : null, moment(node.time));
  const look = el("a", "look", "context");
  look.href = `#n${node.seq}&context`;
  look.title = "What the model saw at this point";
  end.append(look, anchor(node));
  head.append(end);
  for (const note of notes.get(node.seq) || []) head.append(el("p", "note", visible(note)));
  return head;
}

/** Whether something was looked at in a node; else its standing is of what was concluded. */
function isSource(node) {
  return node.type.startsWith("tool/");
}

/** Whether what was looked at in a node, or what its conclusion rests on, still held when the page was made. */
function standing(node) {
  const status = holds.get(node.seq);
  const source = isSource(node);
  const badge = el("span", FELL.has(status) ? "badge bad" : "badge", status === "lead" ? status : `${source ? "source" : "sources"} ${visible(status)}`);
  const what = source ? "What was looked at here" : "What this rests on";
  badge.title = status === "lead" ? "It rests on nothing that was looked at: a lead, not a basis" : `${what} ${STANDING[status] || ""} (when the page was made)`;
  return badge;
}

function usageText(usage) {
  const read = (usage.input || 0) + (usage.cache_read || 0) + (usage.cache_write || 0);
  const parts = read || usage.output ? [`${number(read)} in`, `${number(usage.output || 0)} out`] : [];
  if (usage.cost) parts.push(money(usage.cost));
  return parts.join(" · ");
}

/** Nodes that something took the place of. */
function goneGroup(item) {
  const { taker } = item;
  const what = taker.type === "context/edit" && !taker.blocks ? "taken out by" : "replaced by";
  const summary = [`${counted(item.nodes.length, "node")} not seen: ${what} `, el("b", "", visible(taker.type)), ` #${taker.seq}`];
  const box = folded("entry gone", summary, () => {
    const body = el("div", "body");
    inBatches(body, itemsOf(item.nodes, () => "replaced"), entry);
    return [body];
  });
  item.element = box;
  return box;
}

/** The element of a part, and the way to open it. */
function partElement(part) {
  part.element = blockElement(part.block, part);
  return part.element;
}

function blockElement(block, part) {
  const text = textOf(block.text);
  switch (block.type) {
    case "text":
      return part && part.node.role === "tool" ? resultText(text) : markdown(text);
    case "reasoning":
      return folded("reasoning", ["Reasoning ", el("span", "gist", oneLine(unmarked(text), 100))], () => [markdown(text)], unfolded);
    case "tool_call":
      return callElement(block, part);
    case "image":
      return image(block);
    case "file":
      return el("p", "file", `[file: ${visible(block.name || block.media_type || "unnamed")}] `, ...address(block.url));
    case "context":
      return el("p", "file", `[${visible(block.uri || "")}] `, visible(block.abstract || ""));
    case "tool_result":
      return resultBlocks(block.content);
    case "role":
      return el("p", "role", NAMES[text] || text);
    case "error":
      return el("p", "failure", visible(text));
    case "data":
      return block.data !== null && typeof block.data === "object" ? fields(block.data) : plain(String(block.data), "code");
    default:
      return folded("node", [`[${visible(String(block.kind || block.type))}]`], () => [plain(JSON.stringify(block.data ?? block, null, 1), "code")]);
  }
}

function resultBlocks(blocks) {
  const box = el("div");
  inBatches(box, blocks, (one) => (one.type === "text" ? resultText(textOf(one.text)) : blockElement(one, null)));
  return box;
}

function resultText(text) {
  const output = outputIn(text);
  if (output !== null) return el("div", "", resultText(output.output), output.metadata ? fields(output.metadata) : null);
  const json = jsonIn(text);
  if (json !== null) return Array.isArray(json) ? plain(JSON.stringify(json, null, 1), "code output") : fields(json);
  return isDiff(text) ? diff(text) : plain(text, "code output");
}

function callElement(call, part) {
  const { result, resultState } = part;
  const bad = result && result.is_error;
  const summary = [el("span", "tool", visible(call.name || "?")), " ", el("span", "gist", gist(call))];
  if (part.approvals && part.approvals.length) {
    const outcome = part.approvals[part.approvals.length - 1].data.outcome;
    summary.push(el("span", outcome === "rejected" ? "badge bad" : "badge", visible(`approval ${outcome}`)));
  }
  if (result && holds.has(result.seq)) summary.push(standing(result));
  if (bad) summary.push(el("span", "badge bad", "error"));
  if (!result) summary.push(el("span", "badge", "no result"));
  else if (result.how) summary.push(el("span", "badge", result.how));
  if (resultState === "replaced") summary.push(el("span", "badge", "result no longer seen"));
  const took = result ? duration(result.time - part.started) : "";
  if (took) summary.push(el("span", "took", took));
  const box = folded(
    bad ? "call bad" : "call",
    summary,
    () => {
      const out = showArguments(call);
      for (const { seq, data: approval } of part.approvals || []) {
        const said = `Approval ${approval.outcome}${approval.reason ? `: ${approval.reason}` : ""} `;
        out.push(el("p", "role", visible(said), anchor({ seq })));
      }
      if (result) {
        const head = el("p", "role", "Result ", result.model ? el("span", "model", result.model) : null, anchor(result));
        out.push(head, resultBlocks(result.blocks.filter((one) => one.type !== "image")));
        if (!result.blocks.length) out.push(el("p", "none", "nothing"));
      }
      return out;
    },
    unfolded,
  );
  if (result) box.id = `n${result.seq}`;
  if (!result || !result.blocks.some((one) => one.type === "image")) return box;
  const images = el("div");
  inBatches(images, result.blocks.filter((one) => one.type === "image"), image);
  return el("div", "", box, images);
}

/** An image from the page's own data; one that lies elsewhere is named, never fetched. */
function image(block) {
  const kept = block.sha256 === undefined ? undefined : data.images[block.sha256];
  if (!kept) {
    return el("p", "file", `[image: ${visible(block.name || block.media_type || "not in this page")}] `, ...address(block.url));
  }
  const shown = el("img");
  shown.alt = visible(block.name || "an image of the session");
  shown.loading = "lazy";
  shown.src = `data:${kept[0]};base64,${kept[1]}`;
  return el("figure", "", shown);
}

function address(url) {
  return typeof url === "string" ? [link(url, oneLine(url, 200))] : [];
}
