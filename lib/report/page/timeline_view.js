// What is visible: the range of time, the order and places of the rows, the calls that are searched for.

const AXIS = 24; // pixels, as the head of the list in page.css
const LANE = 9; // of asynchronous calls
const MOST_LANES = 3; // further ones are drawn over the last
const IS_DENSE = rows.length > 16;
const ROW = IS_DENSE ? 22 : 32; // of the calls that block
const STRIP = !IS_DENSE && rows.some((row) => row.marks.length > 0) ? 14 : 0; // of the texts of marks

const view = { begin: timeline.begin, end: timeline.end, selected: null, find: "" };

const orders = [["node", "node and coordinates"], ["rank", "rank"]];
for (const name of rows.length ? rows[0].coordinates.keys() : []) orders.splice(1, 0, [name, name]);

function compare(a, b) {
  for (let i = 0; i < Math.max(a.length, b.length); i++) if (a[i] !== b[i]) return (a[i] ?? -1) - (b[i] ?? -1);
  return 0;
}

// Places the rows. The rows with the same value of the chosen dimension are next to each other.
function arrange(by) {
  const key = (row) => {
    const rest = [...row.coordinates.values(), row.rank];
    if (by === "rank") return [row.rank];
    return by === "node" ? [row.node, ...rest] : [row.coordinates.get(by) ?? -1, ...rest];
  };
  view.order = [...rows].sort((a, b) => compare(key(a), key(b)));
  let top = 0;
  let before = null;
  for (const row of view.order) {
    const part = by === "rank" ? 0 : key(row)[0];
    row.isFirst = before !== null && part !== before;
    before = part;
    row.top = top;
    row.height = STRIP + ROW + LANE * Math.min(row.lanes.length > 1 ? row.lanes.length - 1 : 0, MOST_LANES);
    top += row.height;
  }
  view.height = top;
}

// Makes a range of times visible, as far as there is something to see.
function setView(begin, end) {
  const whole = Math.max(timeline.end - timeline.begin, 1000);
  const span = Math.min(Math.max(end - begin, 200), whole * 1.2);
  view.begin = Math.min(Math.max(begin, timeline.begin - span * 0.5), timeline.end - span * 0.5);
  view.end = view.begin + span;
  redraw();
}

function zoom(factor, centre = (view.begin + view.end) / 2) {
  setView(centre - (centre - view.begin) * factor, centre + (view.end - centre) * factor);
}

function move(share) {
  const by = (view.end - view.begin) * share;
  setView(view.begin + by, view.end + by);
}

function showAll() {
  const margin = (timeline.end - timeline.begin) * 0.02;
  setView(timeline.begin - margin, timeline.end + margin);
}

// Shows the last calls. Where ranks hang, the time since then is far longer than the calls before: it takes a
// third of the width and continues to the right.
function showEnd() {
  let stuck = Infinity;
  let start = Infinity;
  for (const row of rows) {
    const call = currentCall(row);
    if (call < 0) continue;
    if (isOpen(row, call)) stuck = Math.min(stuck, row.begin[call]);
    start = Math.min(start, row.begin[Math.max(call - 30, 0)]);
  }
  if (start === Infinity) return showAll();
  const hangs = stuck < Infinity && timeline.end - stuck > (stuck - start) * 0.5;
  let latest = -Infinity; // the last begin near the hang
  for (const row of rows) {
    const call = currentCall(row);
    if (call >= 0) latest = Math.max(latest, row.begin[call]);
  }
  const before = Math.max((hangs ? Math.max(stuck, Math.min(latest, stuck + (stuck - start))) : timeline.end) - start, 1000);
  setView(start - before * 0.04, hangs ? start + before * 1.55 : timeline.end + before * 0.04);
}

function showCall(row, i) {
  const length = Math.max(Math.min(row.end[i] - row.begin[i], (view.end - view.begin) * 50), 500);
  setView(row.begin[i] - length * 0.7, row.begin[i] + length * 1.7);
}

// Moves the view so far that the start of the call is visible.
function reveal(row, i) {
  const span = view.end - view.begin;
  if (row.begin[i] > view.end - span * 0.05 || row.end[i] < view.begin + span * 0.05)
    setView(row.begin[i] - span * 0.4, row.begin[i] + span * 0.6);
  const scroller = $("scroller");
  const visible = scroller.clientHeight - AXIS;
  if (row.top < scroller.scrollTop) scroller.scrollTop = row.top;
  else if (row.top + row.height > scroller.scrollTop + visible) scroller.scrollTop = row.top + row.height - visible;
}

// Which texts the search finds, by their numbers.
let found = null;
function find(text) {
  view.find = text;
  const only = families.find((family) => family + "." === text); // "tp." is also a part of "etp.all_reduce"
  found = text === "" ? null : texts.map((t) => only === undefined ? t.text.includes(text) : t.family === only);
  for (const button of $("families").children) button.setAttribute("aria-pressed", String(button.dataset.find === text));
  redraw();
}

// The index of the first call of the lane that ends after a time; the calls of a lane do not overlap.
function firstAfter(row, lane, time) {
  let low = 0;
  let high = lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.end[lane[middle]] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
