// The data of the page: ranks, their calls, and the calls that belong together.

const STATES = ["issued", "inside", "ended", "failed"];
const FLAG = { beginEstimated: 4, endEstimated: 8, asynchronous: 16, captured: 32, awaitsAll: 64, wait: 256 };

// Begins are stored as distances, because these are short.
function unpack(rank, index) {
  const count = rank.begin.length;
  const begin = new Float64Array(count);
  const end = new Float64Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    at += rank.begin[i];
    begin[i] = at;
    end[i] = at + rank.length[i];
  }
  const lanes = [];
  for (let i = 0; i < count; i++) (lanes[rank.lane[i]] ??= []).push(i);
  const coordinates = new Map();
  for (const part of rank.coordinates.split(",")) {
    const [name, value] = part.split("=");
    if (value !== undefined) coordinates.set(name.trim(), Number(value));
  }
  return {
    ...rank, index, begin, end, lanes: Array.from(lanes, (lane) => lane ?? []), coordinates,
    arrival: new Float64Array(count).fill(NaN), // when the last member began, if all are known
  };
}

const rows = data.ranks.map(unpack);
const texts = data.texts.map(([family, operation, text, bytes]) => ({ family, operation, text, bytes }));
const families = [...new Set(texts.map((t) => t.family))].filter((f) => f !== "").sort();
const colourOf = new Map(families.map((family, i) => [family, i % 8]));

const stateOf = (row, i) => row.flags[i] & 3;
const isOpen = (row, i) => stateOf(row, i) < 2;
const isFailed = (row, i) => stateOf(row, i) === 3;
const carrierOf = (row, i) => (row.flags[i] >> 9) & 15;
const has = (row, i, flag) => (row.flags[i] & flag) !== 0;
const textOf = (row, i) => texts[row.text[i]];

// The calls of the members by group and number.
const meetings = new Map();
const keyOf = (row, i) => row.number[i] * data.groups.length + row.group[i];
for (const row of rows) {
  for (let i = 0; i < row.begin.length; i++) {
    if (row.number[i] === 0 || has(row, i, FLAG.captured)) continue;
    const key = keyOf(row, i);
    const calls = meetings.get(key);
    if (calls) calls.push([row, i]);
    else meetings.set(key, [[row, i]]);
  }
}
for (const calls of meetings.values()) {
  const [first, at] = calls[0];
  if (calls.length !== data.groups[first.group[at]][0] || !has(first, at, FLAG.awaitsAll)) continue;
  let last = -Infinity;
  for (const [row, i] of calls) last = Math.max(last, row.begin[i]);
  for (const [row, i] of calls) row.arrival[i] = last;
}

// Messages lead from call to call; a call may have two, if it sends and receives.
const messagesOf = new Map();
for (const [fromRow, from, toRow, to] of data.messages) {
  const message = { from: [rows[fromRow], from], to: [rows[toRow], to] };
  for (const [row, i] of [message.from, message.to]) {
    const key = row.index + ":" + i;
    if (messagesOf.has(key)) messagesOf.get(key).push(message);
    else messagesOf.set(key, [message]);
  }
}

const timeline = { begin: Infinity, end: -Infinity };
for (const row of rows) {
  if (row.begin.length) timeline.begin = Math.min(timeline.begin, row.begin[0]);
  for (const end of row.end) timeline.end = Math.max(timeline.end, end);
  for (const [time] of row.marks) {
    timeline.begin = Math.min(timeline.begin, time);
    timeline.end = Math.max(timeline.end, time);
  }
}
if (!(timeline.end > timeline.begin)) {
  timeline.begin = Number.isFinite(timeline.begin) ? timeline.begin : 0;
  timeline.end = timeline.begin + 1000;
}

// The call that the rank is in, or its last one.
function currentCall(row) {
  let current = -1;
  for (let i = 0; i < row.begin.length; i++) {
    if (current < 0 || isOpen(row, i) || !isOpen(row, current)) current = i;
    if (isOpen(row, i) && !has(row, i, FLAG.asynchronous)) return i;
  }
  return current;
}

function duration(nanoseconds) {
  const sign = nanoseconds < 0 ? "-" : "";
  const t = Math.abs(nanoseconds);
  const digits = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
  if (t < 1e3) return sign + t.toFixed(0) + " ns";
  if (t < 1e6) return sign + digits(t / 1e3) + " \u00b5s";
  if (t < 1e9) return sign + digits(t / 1e6) + " ms";
  if (t < 120e9) return sign + digits(t / 1e9) + " s";
  if (t < 7200e9) return sign + Math.floor(t / 60e9) + " min " + Math.floor((t % 60e9) / 1e9) + " s";
  return sign + Math.floor(t / 3600e9) + " h " + Math.floor((t % 3600e9) / 60e9) + " min";
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return (unit === 0 || Number.isInteger(bytes) ? bytes : bytes.toFixed(1)) + " " + units[unit];
}

const rankName = (row) => "rank " + row.rank + (row.coordinates.size ? " (" + data.ranks[row.index].coordinates + ")" : "");
const callName = (row, i) => textOf(row, i).text + (row.number[i] ? ", call " + row.number[i] : "");
