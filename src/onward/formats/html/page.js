// The page: which path is shown and how, the bar, the side, keys and links.

const byId = {};
for (const name of ["title", "menu", "side", "about", "branches", "marks", "prompts", "mode", "entries", "find", "query", "count", "previous", "next", "unfold", "events", "theme", "help", "keys"]) {
  byId[name] = document.getElementById(name);
}
const shown = { leaf: data.session.leaf, context: null, items: [], events: false, built: 0, places: new Map(), job: 0 };
const GROUP = 40;
const pieces = segments();
const leaves = pieces.map((piece) => piece.nodes[piece.nodes.length - 1]).filter((node) => !children.has(node.seq));

/** Show the path to a leaf, or (`context` = a node) what the model saw at that node. */
function show(leaf, context = null) {
  shown.leaf = leaf;
  shown.context = context;
  const path = pathTo(context === null ? leaf : context);
  shown.items = context === null ? transcriptItems(path) : contextItems(path);
  shown.places = new Map();
  shown.items.forEach((item, index) => {
    if (item.node) shown.places.set(item.node.seq, [index, null]);
    item.parts.forEach((part) => part.result && shown.places.set(part.result.seq, [index, part]));
  });
  sayMode(path);
  build();
  sidePath(path);
  search(byId.query.value);
}

/** Build the entries anew, a few at once so that the page answers at all times. */
function build() {
  byId.entries.textContent = "";
  shown.built = 0;
  const job = ++shown.job;
  const slice = () => {
    if (job !== shown.job) return;
    const until = performance.now() + 12;
    while (shown.built < shown.items.length && performance.now() < until) buildUpTo(shown.built);
    if (shown.built < shown.items.length) setTimeout(slice);
  };
  slice();
}

/** Entries lie in groups, of which the browser lays out only those in view: scrolling costs the same in any length. */
function buildUpTo(index) {
  for (; shown.built <= index; shown.built++) {
    if (shown.built % GROUP === 0) byId.entries.append(el("div", "group"));
    byId.entries.lastChild.append(entry(shown.items[shown.built]));
  }
}

function sayMode(path) {
  const mode = byId.mode;
  mode.textContent = "";
  mode.hidden = shown.context === null;
  document.body.classList.toggle("context", shown.context !== null);
  if (shown.context === null) return;
  const gone = shown.items.filter((item) => item.kind === "gone").reduce((sum, item) => sum + item.nodes.length, 0);
  const back = el("a", "", "Back to the transcript");
  back.href = `#n${shown.context}`;
  mode.append(
    el("b", "", `What the model saw at #${shown.context}`),
    `: ${counted(surfaceOf(path).surface.length, "node")}` + (gone ? `; ${number(gone)} no longer. ` : ". "),
    back,
  );
}

// --- the side ------------------------------------------------------------------------------------------------------

function section(box, title, ...inside) {
  box.textContent = "";
  box.hidden = inside.length === 0;
  box.append(el("h2", "", title), ...inside);
}

function sideAbout() {
  const { session, totals, models } = data;
  const rows = [["session", session.id]];
  if (session.origin) rows.push(["from", session.origin]);
  rows.push(["project", session.project]);
  if (session.cwd) rows.push(["directory", session.cwd]);
  const list = el("dl", "facts");
  const add = (name, ...value) => list.append(el("dt", "", name), el("dd", "", ...value));
  for (const [name, value] of rows) add(name, visible(value));
  add("created", moment(session.created) || "unknown");
  add("nodes", number(data.nodes.length));
  add("tokens", `${number(totals.input + totals.cache_read + totals.cache_write)} in, ${number(totals.output)} out`);
  if (totals.cache_read) add("from cache", number(totals.cache_read));
  add("requests", number(totals.requests));
  if (totals.cost !== null) add("cost", money(totals.cost));
  if (data.holds) {
    const nodes = data.nodes.filter((node) => holds.has(node.seq));
    add("looked at", standings(nodes.filter((node) => node.type === "tool/result")));
    add("concluded", standings(nodes.filter((node) => !isSource(node))));
  }
  for (const model of models) {
    const used = `${number(model.input + model.cache_read + model.cache_write)} in, ${number(model.output)} out`;
    add(visible(model.name || "model unknown"), used + (model.cost === null ? "" : `, ${money(model.cost)}`));
  }
  section(byId.about, "Session", list);
}

/** How many nodes stand how, when the page was made: those first that do not hold. */
function standings(nodes) {
  const rank = [...FELL, "unverifiable", "superseded", "lead", "fresh"];
  const counts = rank.map((status) => [nodes.filter((node) => holds.get(node.seq) === status).length, status]);
  const said = ([count, status]) => (status === "lead" ? counted(count, status) : `${number(count)} ${status}`);
  return counts.filter(([count]) => count).map((one) => said(one).replace(" ", "\u00a0")).join(", ") || "nothing";
}

function sideBranches() {
  const names = new Map();
  for (const { name, leaf } of data.branches) if (leaf !== null) names.set(leaf, [...(names.get(leaf) || []), name]);
  const list = el("ul", "tree");
  const rows = pieces.map((piece) => {
    const first = piece.nodes.find(byPerson) || piece.nodes.find((node) => preview(node, 10)) || piece.nodes[0];
    const row = button("", "Show the newest path through here", "", () => goTo(newestThrough(piece)));
    row.append(el("span", "gist", preview(first, 80) || visible(first.type)), el("span", "size", number(piece.nodes.length)));
    const here = piece.nodes.flatMap((node) => names.get(node.seq) || []);
    for (const name of here.slice(0, 5)) row.append(el("span", "branch", oneLine(name, 40)));
    if (here.length > 5) row.append(el("span", "branch", `${number(here.length - 5)} more`));
    piece.row = row;
    row.style.paddingLeft = `${0.4 + Math.min(piece.depth, 12) * 0.7}rem`;
    return row;
  });
  inBatches(list, rows, (row) => el("li", "", row));
  section(byId.branches, leaves.length > 1 ? `${number(leaves.length)} branches` : "One branch", list);
}

function newestThrough(piece) {
  return leafFor(piece.nodes[piece.nodes.length - 1].seq);
}

function sideMarks() {
  const links = [...labels].map(([seq, label]) => jump(seq, label));
  section(byId.marks, "Labels", ...(links.length ? [el("ul", "", ...links)] : []));
}

function jump(seq, text) {
  const made = el("a", "", oneLine(text, 90) || `#${seq}`);
  made.href = `#n${seq}`;
  return el("li", "", made);
}

/** What of the side depends on the path that is shown. */
function sidePath(path) {
  const on = new Set(path.map((node) => node.seq));
  for (const piece of pieces) {
    if (on.has(piece.nodes[0].seq)) piece.row.setAttribute("aria-current", "true");
    else piece.row.removeAttribute("aria-current");
  }
  shown.prompts = path.filter(byPerson).filter((node) => shown.places.has(node.seq));
  const list = el("ol", "");
  inBatches(list, shown.prompts, (node) => jump(node.seq, preview(node, 90)));
  section(byId.prompts, "Prompts", ...(shown.prompts.length ? [list] : []));
}

// --- places --------------------------------------------------------------------------------------------------------

/** Show the path to a leaf, from the top. */
function goTo(leaf) {
  history.replaceState(null, "", location.href.split("#")[0]);
  show(leaf);
  scrollTo(0, 0);
}

/** Bring a node into view, on the path that is shown if it is there. */
function reveal(seq) {
  if (!nodes.has(seq)) return;
  if (shown.context !== null || !shown.places.has(seq)) show(pathTo(shown.leaf).some((node) => node.seq === seq) ? shown.leaf : leafFor(seq));
  const place = shown.places.get(seq);
  if (!place) return;
  const [index, part] = place;
  buildUpTo(index);
  const item = shown.items[index];
  if (item.kind === "event") setEvents(true);
  const body = item.element.querySelector(".body");
  while (part && !part.element && body && body.more) body.more();
  let target = item.element;
  if (part) {
    target = part.element;
    openAll(target);
  } else if (item.element.firstChild && item.element.firstChild.fill) {
    open(item.element.firstChild);
  }
  for (const old of document.querySelectorAll(".target")) old.classList.remove("target");
  target.classList.add("target");
  bring(target);
  item.element.focus({ preventScroll: true });
}

/** `#n<seq>`, `#n<seq>&context` (what the model saw there), `#theme=dark` or `light`, `#events`, `#find=<text>`; or several. */
function follow() {
  const words = new URLSearchParams(location.hash.slice(1));
  const seqs = [...words.keys()].map((word) => /^n(\d{1,15})$/.exec(word)).filter(Boolean);
  const seq = seqs.length ? Number(seqs[0][1]) : null;
  if (["dark", "light"].includes(words.get("theme"))) document.documentElement.dataset.theme = words.get("theme");
  if (words.has("events")) setEvents(true);
  if (nodes.has(seq) && words.has("context")) {
    show(shown.leaf, seq);
    scrollTo(0, 0);
  } else if (nodes.has(seq)) {
    reveal(seq);
  }
  if (words.get("find")) {
    byId.query.value = words.get("find");
    search(byId.query.value);
    step(1);
  }
}

/** The item at the top of what is in view. */
function inView() {
  return shown.items.find((item) => item.node && item.element && item.element.getBoundingClientRect().bottom > 80) || null;
}

function otherPrompt(direction) {
  const target = document.querySelector(".target");
  const box = target && target.getBoundingClientRect();
  const near = box && box.bottom > 0 && box.top < innerHeight;
  const item = (near && shown.items.find((one) => one.element === target)) || inView();
  if (!item) return;
  const now = shown.items.indexOf(item);
  const places = shown.prompts.map((node) => [node.seq, shown.places.get(node.seq)[0]]);
  const next = direction > 0 ? places.find(([, index]) => index > now) : places.reverse().find(([, index]) => index < now);
  if (next) location.hash = `#n${next[0]}`;
}

function otherBranch(direction) {
  if (leaves.length < 2) return;
  const at = leaves.findIndex((node) => node.seq === newest.get(shown.leaf));
  goTo(leaves[(at + direction + leaves.length) % leaves.length].seq);
}

// --- the bar -------------------------------------------------------------------------------------------------------

function setEvents(on) {
  shown.events = on;
  document.body.classList.toggle("events", on);
  byId.events.setAttribute("aria-pressed", String(on));
}

function toggleFolds() {
  unfolded = !unfolded;
  byId.unfold.setAttribute("aria-pressed", String(unfolded));
  const item = inView();
  show(shown.leaf, shown.context);
  if (item && shown.context === null) reveal(item.node.seq);
}

function toggleTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}

function toggle(opener, box, className) {
  const on = className ? document.body.classList.toggle(className) : !(box.hidden = !box.hidden);
  opener.setAttribute("aria-expanded", String(on));
}

function toggleContext() {
  const item = inView();
  if (shown.context !== null) location.hash = `#n${shown.context}`;
  else if (item) location.hash = `#n${item.node.seq}&context`;
}

/** What the person asked first on the path that the page opens with; "" when nobody asked anything. */
function firstPrompt() {
  return pathTo(data.session.leaf).filter(byPerson).map((node) => preview(node, 120)).find(Boolean) || "";
}

let typing = 0;
byId.query.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => search(byId.query.value), 120);
});
byId.find.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  if (byId.query.value.toLowerCase() !== found.text) search(byId.query.value);
  step(1);
});
byId.previous.addEventListener("click", () => step(-1));
byId.unfold.addEventListener("click", toggleFolds);
byId.events.addEventListener("click", () => setEvents(!shown.events));
byId.theme.addEventListener("click", toggleTheme);
byId.help.addEventListener("click", () => toggle(byId.help, byId.keys));
byId.menu.addEventListener("click", () => toggle(byId.menu, byId.side, "side"));

const KEYS = {
  "/": () => byId.query.focus(),
  n: () => (found.matches.length ? step(1) : otherPrompt(1)),
  p: () => (found.matches.length ? step(-1) : otherPrompt(-1)),
  "[": () => otherBranch(-1),
  "]": () => otherBranch(1),
  c: toggleContext,
  e: toggleFolds,
  v: () => setEvents(!shown.events),
  t: toggleTheme,
  "?": () => toggle(byId.help, byId.keys),
};
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    byId.query.value = "";
    search("");
    byId.query.blur();
  } else if (event.target !== byId.query && !event.ctrlKey && !event.metaKey && !event.altKey && Object.hasOwn(KEYS, event.key)) {
    event.preventDefault();
    KEYS[event.key]();
  }
});
addEventListener("hashchange", follow);

const title = oneLine(data.session.title || firstPrompt() || `Session ${data.session.id}`, 200);
document.title = title;
byId.title.textContent = title;
byId.title.title = title;
sideAbout();
sideBranches();
sideMarks();
show(data.session.leaf);
follow();
