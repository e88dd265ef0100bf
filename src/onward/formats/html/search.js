// Search in what is shown: over the data, so that nothing need be built before it is looked at.

const MOST = 10000;
const found = { text: "", matches: [], at: -1 };

/** Every place of a text in the items shown. */
function search(text) {
  found.text = text.toLowerCase();
  found.matches = [];
  found.at = -1;
  unmark();
  if (found.text) {
    outer: for (let index = 0; index < shown.items.length; index++) {
      const item = shown.items[index];
      if (item.kind === "event" && !shown.events) continue;
      for (let at = 0; at < item.parts.length; at++) {
        const where = partText(item.parts[at]).toLowerCase();
        let nth = 0;
        for (let place = where.indexOf(found.text); place >= 0; place = where.indexOf(found.text, place + found.text.length)) {
          found.matches.push({ index, at, nth: nth++ });
          if (found.matches.length >= MOST) break outer;
        }
      }
    }
  }
  sayCount();
}

function sayCount() {
  const { matches, at, text } = found;
  const all = matches.length >= MOST ? `${number(MOST)}+` : number(matches.length);
  byId.count.textContent = !text ? "" : matches.length ? `${at + 1} of ${all}` : "nothing";
}

/** Go to the next match (1) or the one before (-1). */
function step(direction) {
  const { matches } = found;
  if (!matches.length) return;
  found.at = found.at < 0 && direction < 0 ? matches.length - 1 : (found.at + direction + matches.length) % matches.length;
  const { index, at, nth } = matches[found.at];
  buildUpTo(index);
  const item = shown.items[index];
  const part = item.parts[at];
  if (part.holder) open(part.holder);
  const body = item.element.querySelector(".body");
  while (!part.element && body && body.more) body.more();
  openAll(part.element);
  const ranges = rangesIn(part.element, found.text);
  mark(ranges, ranges[Math.min(nth, ranges.length - 1)]);
  bring(ranges.length ? ranges[Math.min(nth, ranges.length - 1)] : part.element);
  sayCount();
}

function open(details) {
  details.fill();
  details.open = true;
}

/** Open every fold of a part, and show what is clipped. */
function openAll(element) {
  if (element.fill) open(element);
  for (const details of element.querySelectorAll("details")) if (details.fill) open(details);
  if (element.unclip) element.unclip();
  for (const box of element.querySelectorAll(".clipped")) box.unclip();
}

/** The places of a text in an element, which may lie over several text nodes. */
function rangesIn(element, text) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const starts = [];
  const texts = [];
  let length = 0;
  for (let node; (node = walker.nextNode()); ) {
    starts.push([length, node]);
    texts.push(node.data);
    length += node.data.length;
  }
  const whole = texts.join("").toLowerCase();
  const ranges = [];
  const place = (offset, from) => {
    let at = from;
    while (at + 1 < starts.length && starts[at + 1][0] <= offset) at++;
    return at;
  };
  let at = 0;
  for (let hit = whole.indexOf(text); hit >= 0 && ranges.length < 2000; hit = whole.indexOf(text, hit + text.length)) {
    at = place(hit, at);
    const end = place(hit + text.length - 1, at);
    const range = document.createRange();
    range.setStart(starts[at][1], Math.min(hit - starts[at][0], starts[at][1].length));
    range.setEnd(starts[end][1], Math.min(hit + text.length - starts[end][0], starts[end][1].length));
    ranges.push(range);
  }
  return ranges;
}

const canMark = typeof Highlight === "function" && "highlights" in CSS;

function mark(ranges, current) {
  unmark();
  if (canMark) {
    CSS.highlights.set("found", new Highlight(...ranges));
    if (current) CSS.highlights.set("current", new Highlight(current));
  } else if (current) {
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(current);
  }
}

function unmark() {
  if (canMark) {
    CSS.highlights.delete("found");
    CSS.highlights.delete("current");
  }
}

/** Scroll a range or an element to the middle; again once what comes into view has its size. */
function bring(target) {
  const scroll = () => {
    const box = target.getBoundingClientRect();
    scrollBy(0, box.top - innerHeight / 3);
  };
  scroll();
  requestAnimationFrame(scroll);
}
