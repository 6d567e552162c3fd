// Draws the rows on the canvas.

const canvas = $("chart");
const context = canvas.getContext("2d");
let colours = {};
let pattern = null;
let width = 0;
let height = 0;
let isDue = false;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "line", "grid", "text", "faint", "accent", "alarm", "alarm-back", "stripe"])
    colours[name] = style.getPropertyValue("--" + name).trim();
  colours.family = Array.from({ length: 8 }, (_, i) => style.getPropertyValue("--c" + i).trim());
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  pen.fillStyle = colours["alarm-back"];
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = colours.stripe;
  pen.lineWidth = 2;
  for (const x of [-8, 0, 8]) {
    pen.beginPath();
    pen.moveTo(x, 8);
    pen.lineTo(x + 8, 0);
    pen.stroke();
  }
  pattern = context.createPattern(tile, "repeat");
}

function resize() {
  const scale = window.devicePixelRatio || 1;
  width = $("lane").clientWidth;
  height = $("scroller").clientHeight;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  draw();
}

function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(draw);
}

const xOf = (time) => ((time - view.begin) / (view.end - view.begin)) * width;
const timeAt = (x) => view.begin + (x / width) * (view.end - view.begin);

function familyColour(row, i) {
  const family = textOf(row, i).family;
  return family === "" ? colours.faint : colours.family[colourOf.get(family)];
}

// The place of a call in its row: its top and its height.
function boxOf(row, i) {
  const lane = Math.min(row.lane[i], MOST_LANES);
  const top = row.top + STRIP + (lane === 0 ? 3 : ROW + (lane - 1) * LANE);
  const tall = lane === 0 ? ROW - 6 : LANE - 2;
  if (!has(row, i, FLAG.beginEstimated) || isOpen(row, i)) return [top, tall];
  const thin = Math.max(Math.round(tall * 0.4), 3);
  return [top + (tall - thin) / 2, thin];
}

function drawLabel(text, left, right, top, tall, colour) {
  left = Math.max(left, 0) + 4;
  const space = Math.min(right, width) - left - 4;
  if (space < 24 || tall < 12) return;
  if (context.measureText(text).width > space) {
    const letters = Math.floor((space / context.measureText(text).width) * text.length) - 1;
    if (letters < 4) return;
    text = text.slice(0, letters) + "\u2026";
  }
  context.fillStyle = colour;
  context.fillText(text, left, top + tall / 2);
}

function drawCall(row, i, shift, left, right) {
  const [rowTop, tall] = boxOf(row, i);
  const top = rowTop + shift;
  const wide = Math.max(right - left, 1);
  const isFound = found === null || found[row.text[i]];
  context.globalAlpha = isFound ? 1 : 0.12;
  const open = isOpen(row, i);
  if (open) {
    context.fillStyle = pattern;
    context.fillRect(left, top, wide, tall);
    context.strokeStyle = colours.alarm;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, top + 0.5, Math.max(wide - 1, 0.5), tall - 1);
    context.fillStyle = familyColour(row, i);
    context.fillRect(left, top, Math.min(3, wide), tall);
  } else if (isFailed(row, i)) {
    context.fillStyle = colours.alarm;
    context.fillRect(left, top, wide, tall);
  } else {
    const waits = !has(row, i, FLAG.beginEstimated);
    const arrival = waits ? Math.min(Math.max(xOf(row.arrival[i]), left), right) : NaN;
    context.fillStyle = familyColour(row, i);
    if (arrival - left >= 1) {
      context.globalAlpha *= 0.35;
      context.fillRect(left, top, arrival - left, tall);
      context.globalAlpha = isFound ? 1 : 0.12;
      context.fillRect(arrival, top, Math.max(right - arrival, 1), tall);
    } else {
      context.fillRect(left, top, wide, tall);
    }
  }
  if (wide > 30) {
    const { family, operation, text } = textOf(row, i);
    const name = family === "" ? text : family + "." + operation;
    const label = open ? "not over for " + duration(row.end[i] - row.begin[i]) + ": " + callName(row, i)
      : wide > 110 ? name : operation;
    const isPale = open || (!has(row, i, FLAG.beginEstimated) && xOf(row.arrival[i]) > Math.max(left, 0) + 30);
    drawLabel(label, left + (open ? 3 : 0), right, top, tall, isPale ? colours.text : colours.back);
  }
  context.globalAlpha = 1;
}

// Calls that share a pixel are drawn once; calls that are not over or have failed are always drawn.
function drawLane(row, lane, shift) {
  let drawn = -Infinity;
  let k = firstAfter(row, lane, view.begin);
  for (; k < lane.length; k++) {
    const i = lane[k];
    if (row.begin[i] > view.end) break;
    const left = Math.max(xOf(row.begin[i]), -10);
    const right = Math.min(xOf(row.end[i]), width + 10);
    if (right < drawn + 0.5 && stateOf(row, i) === 2) continue;
    drawCall(row, i, shift, left, right);
    drawn = Math.max(right, left + 1);
  }
}

// Dense rows are too low for the texts of marks; the tip shows them.
function drawMarks(row, shift) {
  let free = -Infinity;
  context.fillStyle = colours.text;
  row.marks.forEach(([time, text], number) => {
    if (time < view.begin || time > view.end) return;
    const x = xOf(time);
    context.fillRect(x - 0.5, row.top + shift, 1, row.height - 1);
    context.beginPath();
    context.moveTo(x - 4, row.top + shift);
    context.lineTo(x + 4, row.top + shift);
    context.lineTo(x, row.top + shift + 6);
    context.fill();
    if (STRIP === 0 || x < free) return;
    const next = row.marks[number + 1];
    const right = next && next[0] <= view.end ? xOf(next[0]) - 2 : width;
    drawLabel(text, x + 2, right, row.top + shift, STRIP, colours.text);
    free = Math.min(right, x + context.measureText(text).width + 14);
  });
}

function drawAxis() {
  context.fillStyle = colours.back;
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = colours.faint;
  for (const time of ticks()) {
    const x = xOf(time);
    context.fillRect(x, AXIS - 5, 1, 5);
    context.fillText(tickLabel(time), x + 3, AXIS / 2 - 1);
  }
  context.fillStyle = colours.line;
  context.fillRect(0, AXIS - 1, width, 1);
}

function tickStep() {
  const wanted = ((view.end - view.begin) / Math.max(width, 1)) * 110;
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= wanted);
}

function* ticks() {
  const step = tickStep();
  for (let n = Math.ceil((view.begin - timeline.begin) / step); n * step + timeline.begin < view.end; n++)
    yield n * step + timeline.begin;
}

// Times count from the first call; neighbouring labels differ.
function tickLabel(time) {
  const t = time - timeline.begin;
  const step = tickStep();
  const [unit, name] = Math.abs(t) >= 1e9 || step >= 1e9 ? [1e9, "s"] : Math.abs(t) >= 1e6 || step >= 1e6 ? [1e6, "ms"] : [1e3, "\u00b5s"];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  return (t / unit).toFixed(digits) + " " + name;
}

function drawArrow(fromX, fromY, toX, toY) {
  const angle = Math.atan2(toY - fromY, toX - fromX);
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX, toY);
  context.stroke();
  context.beginPath();
  context.moveTo(toX, toY);
  for (const side of [-0.4, 0.4]) context.lineTo(toX - 9 * Math.cos(angle + side), toY - 9 * Math.sin(angle + side));
  context.fill();
}

// Draws the arrows of the selected call, and frames around the calls of all members.
function drawSelection(shift) {
  if (!view.selected) return;
  const [row, i] = view.selected;
  context.strokeStyle = context.fillStyle = colours.accent;
  context.lineWidth = 1.5;
  const middle = ([r, c]) => {
    const [top, tall] = boxOf(r, c);
    return top + tall / 2 + shift;
  };
  for (const [from, to] of arrowsOf(row, i)) {
    const start = from[0].begin[from[1]];
    const end = Math.min(Math.max(start, to[0].begin[to[1]]), to[0].end[to[1]]);
    drawArrow(xOf(start), middle(from), xOf(end), middle(to));
  }
  for (const [r, c] of membersOf(row, i)) {
    const [top, tall] = boxOf(r, c);
    const left = Math.max(xOf(r.begin[c]), -5);
    const right = Math.min(xOf(r.end[c]), width + 5);
    const own = r === row && c === i;
    context.lineWidth = own ? 2.5 : 1.2;
    context.strokeRect(left - 1, top + shift - 1, Math.max(right - left, 1) + 2, tall + 2);
  }
}

function draw() {
  isDue = false;
  const scroll = $("scroller").scrollTop;
  const shift = AXIS - scroll;
  context.font = "11px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = colours.back;
  context.fillRect(0, 0, width, height);
  context.fillStyle = colours.grid;
  for (const time of ticks()) context.fillRect(xOf(time), AXIS, 1, height);
  for (const row of view.order) {
    if (row.top + row.height < scroll || row.top > scroll + height) continue;
    context.fillStyle = row.isFirst ? colours.faint : colours.grid;
    context.fillRect(0, row.top + shift - (row.isFirst ? 0 : 1), width, 1);
    for (const lane of row.lanes) drawLane(row, lane, shift);
    drawMarks(row, shift);
  }
  drawSelection(shift);
  drawAxis();
}
