// The data, the tree of nodes, and the surface at any node: the rules of Onward's log, folded here.

const data = JSON.parse(document.getElementById("onward-data").textContent);
const nodes = new Map();
const children = new Map(); // seq, or null for the roots -> the nodes below it, oldest first
const newest = new Map(); // seq -> the newest node below it, or itself
const labels = new Map(data.labels);
const notes = new Map();

{
  let before = null;
  for (const node of data.nodes) {
    if (node.parent === undefined) node.parent = before;
    before = node.seq;
    nodes.set(node.seq, node);
    if (!children.has(node.parent)) children.set(node.parent, []);
    children.get(node.parent).push(node);
  }
  for (const node of [...data.nodes].reverse()) {
    if (!newest.has(node.seq)) newest.set(node.seq, node.seq);
    const parent = node.parent;
    if (parent !== null && !newest.has(parent)) newest.set(parent, newest.get(node.seq));
  }
  for (const [seq, text] of data.notes) notes.set(seq, [...(notes.get(seq) || []), text]);
}

/** The nodes from the root to one node. */
function pathTo(seq) {
  const path = [];
  for (let node = nodes.get(seq); node; node = nodes.get(node.parent)) path.push(node);
  return path.reverse();
}

/** The leaf to show for a node: that of the page's own path where the node lies on it, else the newest below. */
function leafFor(seq) {
  return onOpeningPath.has(seq) ? data.session.leaf : newest.get(seq);
}

/**
 * What the model sees at the end of a path: the seqs in order, and for each node off the surface the one that took
 * it off last.
 */
function surfaceOf(path) {
  let surface = [];
  const takenBy = new Map();
  const carriers = [];
  for (const { seq, surface: op } of path) {
    if (op === undefined) continue;
    if (op === 1) {
      surface.push(seq);
    } else if (op.replace) {
      const first = surface.indexOf(op.replace[0]);
      const last = surface.indexOf(op.replace[1]);
      for (const gone of surface.slice(first, last + 1)) takenBy.set(gone, seq);
      surface.splice(first, last - first + 1, seq);
    } else {
      const before = surface;
      surface = op.view.flatMap((item) => {
        if (item === "self") return [seq];
        return Array.isArray(item) ? carriers.filter((one) => item[0] <= one && one <= item[1]) : [item];
      });
      const kept = new Set(surface);
      for (const gone of before) if (!kept.has(gone)) takenBy.set(gone, seq);
      for (const back of surface) takenBy.delete(back);
      if (!kept.has(seq)) takenBy.set(seq, seq);
    }
    carriers.push(seq);
  }
  return { surface, takenBy };
}

const onOpeningPath = new Set(pathTo(data.session.leaf).map((node) => node.seq));

/** The tree in pieces without a fork: the nodes of each, its depth in forks, and whether more hang below it. */
function segments() {
  const out = [];
  const stack = (children.get(null) || []).map((node) => [node, 0]).reverse();
  while (stack.length) {
    const [start, depth] = stack.pop();
    const run = [start];
    let below = children.get(start.seq) || [];
    while (below.length === 1) {
      run.push(below[0]);
      below = children.get(below[0].seq) || [];
    }
    out.push({ nodes: run, depth });
    for (const node of [...below].reverse()) stack.push([node, depth + 1]);
  }
  return out;
}
