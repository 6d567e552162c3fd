// The list of ranks, the tip, and the details of the selected call.

// The calls of all members that belong to a call, itself included.
function membersOf(row, i) {
  if (row.number[i] !== 0) return meetings.get(keyOf(row, i)) ?? [[row, i]];
  const calls = [[row, i]];
  for (const { from, to } of messagesOf.get(row.index + ":" + i) ?? [])
    for (const other of [from, to]) if (other[0] !== row || other[1] !== i) calls.push(other);
  return calls;
}

function lastOf(calls) {
  return calls.reduce((last, call) => (call[0].begin[call[1]] > last[0].begin[last[1]] ? call : last));
}

// A member waits for those before it in the group.
function arrowsOfScan(calls, order) {
  const places = new Map(order.map((rank, place) => [rank, place]));
  const sorted = [...calls].sort(([a], [b]) => places.get(a.rank) - places.get(b.rank));
  return sorted.map((to, at) => [lastOf(sorted.slice(0, at + 1)), to]).filter(([from, to]) => from !== to);
}

// As in the file for Perfetto: from the last member or from the root, or to the root.
function arrowsOf(row, i) {
  if (row.number[i] === 0) return (messagesOf.get(row.index + ":" + i) ?? []).map(({ from, to }) => [from, to]);
  const calls = membersOf(row, i);
  if (calls.length < 2) return [];
  const { operation } = textOf(row, i);
  const root = calls.find(([r, c]) => r.root[c] === 1);
  const others = (from) => calls.filter((call) => call !== from).map((call) => [from, call]);
  if (operation === "broadcast" || operation === "scatter") return root ? others(root) : [];
  const last = lastOf(calls);
  if (operation === "reduce" || operation === "gather") return root && root !== last ? [[last, root]] : [];
  const [size, members] = data.groups[row.group[i]];
  if (calls.length !== size) return [];
  if (operation !== "scan" && operation !== "exscan") return others(last);
  const order = ranksIn(members);
  return order ? arrowsOfScan(calls, order) : []; // the list was cut
}

function stateText(row, i) {
  const carrier = data.carriers[carrierOf(row, i)];
  if (has(row, i, FLAG.wait)) return "not over";
  if (stateOf(row, i) === 0) return "not over: waits for other members";
  if (stateOf(row, i) === 1) return "not over: inside " + carrier;
  return stateOf(row, i) === 3 ? "failed" : "ended";
}

function timesText(row, i) {
  const begin = duration(row.begin[i] - timeline.begin) + (has(row, i, FLAG.beginEstimated) ? " (estimated)" : "");
  const length = duration(row.end[i] - row.begin[i]);
  const estimated = has(row, i, FLAG.endEstimated);
  if (isOpen(row, i)) return { begin, length: "for " + length + " until it was read" };
  return { begin, length: estimated ? "duration not recorded" : length };
}

function describe(row, i) {
  const list = element("dl");
  const add = (name, value) => list.append(element("dt", {}, name), element("dd", {}, value));
  const times = timesText(row, i);
  add("rank", rankName(row).slice(5) + " on " + row.host);
  add("state", stateText(row, i));
  add("begins at", times.begin);
  add("takes", times.length.replace("duration ", ""));
  if (!Number.isNaN(row.arrival[i]) && !isOpen(row, i) && !has(row, i, FLAG.beginEstimated)) add("of this waits", duration(Math.max(0, Math.min(row.arrival[i], row.end[i]) - row.begin[i])));
  if (row.group[i] >= 0) {
    const [size, members] = data.groups[row.group[i]];
    add("group", count(size, "member") + (members ? ": ranks " + members : ""));
    if (textOf(row, i).bytes > 0) add("size", bytesText(textOf(row, i).bytes));
    add("carried by", data.carriers[carrierOf(row, i)]);
  }
  if (has(row, i, FLAG.asynchronous)) add("", "asynchronous");
  if (has(row, i, FLAG.captured)) add("", "part of a CUDA graph");
  return list;
}

// The ranks of the compact form that rankmesh prints, for example "0-3,8,16-120:8".
function ranksIn(text) {
  const ranks = [];
  for (const item of text.split(",")) {
    const found = /^(\d+)(?:-(\d+)(?::(\d+))?)?$/.exec(item);
    if (!found) return null; // the list was cut
    const last = Number(found[2] ?? found[1]);
    for (let rank = Number(found[1]); rank <= last; rank += Number(found[3] ?? 1)) ranks.push(rank);
  }
  return ranks;
}

// Says which members have not made the call, as far as the records tell.
function missingText(row, i, calls) {
  const [size, members] = data.groups[row.group[i]];
  if (calls.length >= size) return "";
  const unknown = "; the others have not made this call, or their records no longer have it";
  const ranks = members ? ranksIn(members) : null;
  if (!ranks) return unknown;
  const present = new Set(calls.map(([r]) => r.rank));
  const names = ranks.filter((rank) => !present.has(rank)).map((rank) => {
    const other = rows.find((r) => r.rank === rank);
    if (!other) return rank + " (no record)";
    // A record that has an older call of the group would have this one too.
    const numbers = other.number.filter((number, c) => number !== 0 && other.group[c] === row.group[i]);
    const isGone = numbers.length > 0 && Math.min(...numbers) > row.number[i];
    return rankName(other).slice(5) + (isGone ? " (its record no longer has the call)" : "");
  });
  return "; without this call: rank " + names.slice(0, 8).join(", ") + (names.length > 8 ? ", \u2026" : "");
}

function memberTable(row, i) {
  const calls = [...membersOf(row, i)].sort((a, b) => a[0].begin[a[1]] - b[0].begin[b[1]]);
  const first = calls[0][0].begin[calls[0][1]];
  const table = element("table");
  const size = row.number[i] ? data.groups[row.group[i]][0] : calls.length;
  const waitedFor = calls.length === size && size > 1 && Number.isFinite(row.arrival[i]);
  table.append(element("caption", {}, calls.length + " of " + size + " members" +
    (waitedFor ? "; the others waited for the last one" : "") + (row.number[i] ? missingText(row, i, calls) : "")));
  const head = element("tr");
  for (const name of ["rank", "host", "begins", "takes", "state"])
    head.append(element("th", name === "begins" || name === "takes" ? { class: "number", scope: "col" } : { scope: "col" }, name));
  table.append(head);
  for (const [other, c] of calls) {
    const line = element("tr");
    const go = button({}, () => select(other, c, true), rankName(other).slice(5));
    line.append(element("td", {}, go), element("td", {}, other.host));
    line.append(element("td", { class: "number" }, "+" + duration(other.begin[c] - first)));
    line.append(element("td", { class: "number" }, has(other, c, FLAG.endEstimated) ? "not recorded" : duration(other.end[c] - other.begin[c])));
    line.append(element("td", {}, textOf(other, c).text === textOf(row, i).text || row.number[i] === 0 ? stateText(other, c) : stateText(other, c) + ", but calls " + textOf(other, c).text));
    table.append(line);
  }
  if (calls.length === size && size > 1) table.lastChild.className = "last";
  return table;
}

function select(row, i, moves = false) {
  view.selected = row ? [row, i] : null;
  const details = $("details");
  details.replaceChildren();
  for (const item of document.querySelectorAll("#ranks .selected")) item.classList.remove("selected");
  if (row) {
    details.append(element("h2", {}, callName(row, i)), describe(row, i), memberTable(row, i));
    $("ranks").children[view.order.indexOf(row)].classList.add("selected");
    announce(rankName(row) + ": " + callName(row, i) + ", " + stateText(row, i) + ", " + timesText(row, i).length);
    if (moves) reveal(row, i);
  } else {
    announce("Nothing is selected");
  }
  resize();
}

function tipOf(row, i) {
  const times = timesText(row, i);
  return [callName(row, i), rankName(row) + " on " + row.host, stateText(row, i) + ", " + times.length, "begins at " + times.begin];
}

// Shows lines of text beside the pointer, or nothing.
function showTip(lines, event) {
  const tip = $("tip");
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(element("b", {}, lines[0]), ...lines.slice(1).map((line) => element("div", {}, line)));
  const box = $("scroller").getBoundingClientRect();
  const x = event.clientX - box.left;
  const y = event.clientY - box.top;
  tip.style.left = Math.max(0, Math.min(x + 14, box.width - tip.offsetWidth - 4)) + "px";
  tip.style.top = (y + 16 + tip.offsetHeight > box.height ? Math.max(0, y - tip.offsetHeight - 10) : y + 16) + "px";
}

function fillRanks() {
  const list = $("ranks");
  list.replaceChildren();
  list.style.height = view.height + "px";
  for (const row of view.order) {
    const item = element("li", row.isFirst ? { class: "first" } : {});
    item.style.top = row.top + "px";
    item.style.height = row.height + "px";
    const call = currentCall(row);
    const open = call >= 0 && isOpen(row, call);
    const since = open ? ", for " + duration(row.end[call] - row.begin[call]) : "";
    const presence = row.presence === "open" ? "in no call" : row.presence === "failed" ? "failed: " + row.reason : row.presence;
    const now = row.activity ? row.activity + since : presence;
    const short = open && row.group[call] >= 0
      ? textOf(row, call).family + "." + textOf(row, call).operation + (row.number[call] ? ", call " + row.number[call] : "")
      : row.activity || presence;
    const kind = open || row.presence === "failed" ? "in open" : "in";
    const title = rankName(row) + " on " + row.host + ", process " + row.pid + " (" + row.process + "): " + now;
    const parts = [["b", "", String(row.rank)], ["span", "place", data.ranks[row.index].coordinates], ["span", "host", row.host]];
    if (row.process === "stopped" || row.process === "ended") parts.push(["span", "process", row.process]);
    parts.push(["span", kind, short]);
    if (open) parts.push(["span", "since", duration(row.end[call] - row.begin[call])]);
    item.append(button({ title, "aria-label": title }, () => call >= 0 && select(row, call, true),
      ...parts.map(([tag, name, text]) => element(tag, name ? { class: name } : {}, text))));
    list.append(item);
  }
}

function fillHead() {
  const ranks = rows.length === data.world_size ? rows.length + " ranks" : rows.length + " of " + data.world_size + " ranks";
  const nodes = new Set(rows.map((row) => row.node)).size;
  const calls = rows.reduce((sum, row) => sum + row.begin.length, 0);
  const lost = rows.some((row) => row.lost > 0);
  $("title").textContent = data.mesh || "rankmesh timeline";
  $("facts").textContent = [ranks, count(nodes, "node"), calls + (lost ? " last calls" : " calls"),
    duration(timeline.end - timeline.begin), data.opened_at ? "opened " + new Date(data.opened_at / 1e6).toLocaleString() : ""].filter(Boolean).join(" \u00b7 ");
  $("diagnosis").hidden = data.diagnosis.length === 0;
  $("diagnosis").classList.toggle("calm", data.diagnosis.every((sentence) => sentence.startsWith("note: ")));
  for (const [value, text] of orders) $("order").append(element("option", { value }, text));
  for (const family of families) {
    const patch = element("i");
    patch.style.background = "var(--c" + colourOf.get(family) + ")";
    $("families").append(element("button", { "data-find": family + ".", "aria-pressed": "false" }, patch, family));
  }
}
