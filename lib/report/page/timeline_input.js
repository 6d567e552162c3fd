// Pointer, wheel and keys.

// The call under a point of the canvas, or the nearest one within a few pixels.
function callAt(x, y) {
  const at = y - AXIS + $("scroller").scrollTop;
  if (y < AXIS) return null;
  const row = view.order.find((r) => at >= r.top && at < r.top + r.height);
  if (!row) return null;
  const lane = at < row.top + STRIP + ROW ? 0 : 1 + Math.floor((at - row.top - STRIP - ROW) / LANE);
  let nearest = null;
  let distance = 4;
  row.lanes.forEach((calls, number) => {
    if (Math.min(number, MOST_LANES) !== lane) return;
    for (let k = firstAfter(row, calls, timeAt(x - 4)); k < calls.length; k++) {
      const i = calls[k];
      const from = Math.max(xOf(row.begin[i]) - x, x - xOf(row.end[i]), 0);
      if (xOf(row.begin[i]) > x + 4) break;
      if (from < distance) {
        distance = from;
        nearest = [row, i];
      }
    }
  });
  return nearest;
}

// Shows the mark or the call under the pointer.
function showTipAt(event) {
  const at = event.offsetY - AXIS + $("scroller").scrollTop;
  const row = view.order.find((r) => at >= r.top && at < r.top + r.height);
  const mark = row?.marks.find(([time]) => Math.abs(xOf(time) - event.offsetX) <= 4);
  if (mark && event.offsetY >= AXIS) return showTip([mark[1], "mark of " + rankName(row) + " at " + duration(mark[0] - timeline.begin)], event);
  const call = callAt(event.offsetX, event.offsetY);
  showTip(call && tipOf(...call), event);
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  drag = { x: event.offsetX, y: event.clientY, begin: view.begin, end: view.end, scroll: $("scroller").scrollTop, moved: false };
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) {
    showTipAt(event);
    return;
  }
  const byX = event.offsetX - drag.x;
  const byY = event.clientY - drag.y;
  if (!drag.moved && Math.abs(byX) + Math.abs(byY) < 4) return;
  drag.moved = true;
  showTip(null);
  canvas.classList.add("dragged");
  const time = (byX / width) * (drag.end - drag.begin);
  $("scroller").scrollTop = drag.scroll - byY;
  setView(drag.begin - time, drag.end - time);
});
canvas.addEventListener("pointerup", (event) => {
  canvas.classList.remove("dragged");
  if (drag && !drag.moved) select(...(callAt(event.offsetX, event.offsetY) ?? [null]));
  drag = null;
});
canvas.addEventListener("pointercancel", () => (drag = null));
canvas.addEventListener("pointerleave", () => showTip(null));
canvas.addEventListener("dblclick", (event) => {
  const call = callAt(event.offsetX, event.offsetY);
  if (call) showCall(...call);
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  showTip(null);
  const lines = event.deltaMode === 1 ? 30 : 1;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(((event.deltaX || event.deltaY) * lines) / width);
  else zoom(Math.exp(Math.max(Math.min(event.deltaY * lines, 300), -300) * 0.002), timeAt(event.offsetX));
}, { passive: false });

// Selects the call before or after the selected one, or one of a neighbouring row at the same time.
function step(byCalls, byRows) {
  if (!view.selected) {
    const row = view.order[0];
    if (row && row.begin.length) select(row, Math.max(currentCall(row), 0), true);
    return;
  }
  const [row, i] = view.selected;
  if (byCalls !== 0) {
    const next = i + byCalls;
    if (next >= 0 && next < row.begin.length) select(row, next, true);
    return;
  }
  const other = view.order[view.order.indexOf(row) + byRows];
  if (!other || other.begin.length === 0) return;
  let best = 0;
  for (let c = 0; c < other.begin.length; c++) if (other.begin[c] <= row.begin[i]) best = c;
  select(other, best, true);
}

function nextMember() {
  if (!view.selected) return;
  const [row, i] = view.selected;
  const calls = membersOf(row, i);
  const at = calls.findIndex(([r, c]) => r === row && c === i);
  select(...calls[(at + 1) % calls.length], true);
}

const keys = {
  w: () => zoom(0.7), "+": () => zoom(0.7), "=": () => zoom(0.7), s: () => zoom(1 / 0.7), "-": () => zoom(1 / 0.7),
  a: () => move(-0.2), d: () => move(0.2), Home: showAll, End: showEnd, n: nextMember,
  ArrowLeft: () => step(-1, 0), ArrowRight: () => step(1, 0), ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1),
  Enter: () => view.selected && showCall(...view.selected), Escape: () => select(null),
};
canvas.addEventListener("keydown", (event) => {
  const action = keys[event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
});

$("scroller").addEventListener("scroll", redraw);
$("show-all").addEventListener("click", showAll);
$("show-end").addEventListener("click", showEnd);
$("zoom-in").addEventListener("click", () => zoom(0.5));
$("zoom-out").addEventListener("click", () => zoom(2));
$("find").addEventListener("input", () => find($("find").value.trim()));
$("families").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  $("find").value = view.find === button.dataset.find ? "" : button.dataset.find;
  find($("find").value);
});
$("order").addEventListener("change", () => {
  arrange($("order").value);
  fillRanks();
  redraw();
});

arrange("node");
fillHead();
fillRanks();
startTheme(() => {
  readColours();
  redraw();
});
new ResizeObserver(resize).observe($("scroller"));
resize();
showEnd();
