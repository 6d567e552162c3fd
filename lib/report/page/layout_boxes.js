// The boxes and cells in the document. A box that is folded is a cell.

const MOST_CELLS = 600; // that are shown at first
const view = { state: 0, family: null, chosen: -1, open: new Set(), colours: new Map() };
const state = () => picture.states[view.state];
// A family that the other state lacks is kept by its name.
const family = () => state().families.find((f) => f.name === view.family) ?? state().families[0];
const key = (l, unit) => `${l}:${unit}`;

// The level whose boxes are marked if a group leaves them: that of the nodes, or that of the box if it is larger.
const markedLevel = (l) => Math.min(l, picture.node_level);

function wordsOf(l, unit, groups, leaving) {
  const f = family();
  const box = picture.levels[markedLevel(l)].name;
  if (l < LEVELS) return `${unitName(l, unit)}: ${count(ranksIn(state(), l, unit).length, "rank")}` + (f ? ` in ${count(groups.length, "group")} of ${f.name}, of which ${leaving} leave the ${box}` : "");
  const rank = state().rankIn[unit];
  if (rank < 0) return `slot ${unit} is empty`;
  const where = `rank ${rank} on ${unitName(picture.node_level, picture.levels[picture.node_level].unit[unit])}`;
  if (groups.length === 0) return f ? `${where}, in no group of ${f.name}` : where;
  return `${where}, group ${groups[0]} of ${f.name}` + (leaving ? `, which leaves the ${box}` : "");
}

// Equal sets of groups get equal colours.
function colourOf(groups) {
  const name = groups.join();
  if (!view.colours.has(name)) view.colours.set(name, view.colours.size % COLOURS);
  return view.colours.get(name);
}

function paint(cell) {
  const [l, unit] = cell.dataset.unit.split(":").map(Number);
  const f = family();
  const groups = f ? groupsIn(state(), f, l, unit) : [];
  const leaving = f ? groups.filter((group) => spreadOf(state(), f)[markedLevel(l)].leaving.has(group)).length : 0;
  const chosenGroup = f && view.chosen >= 0 ? groupsOf(state(), f)[view.chosen] : -1;
  const ranks = ranksIn(state(), l, unit);
  cell.className = `cell ${l === LEVELS ? "rank" : "fold"}` + (groups.length ? ` k${colourOf(groups)}` : "") + (leaving ? " leaves" : "") +
    (chosenGroup >= 0 && groups.includes(chosenGroup) ? " mate" : "") + (ranks.includes(view.chosen) ? " chosen" : "");
  const words = wordsOf(l, unit, groups, leaving);
  cell.title = words;
  cell.setAttribute("aria-label", words);
}

function makeCell(l, unit) {
  const cell = element("div", { role: "button", tabindex: "-1", "data-unit": key(l, unit) });
  if (l === LEVELS) {
    const rank = state().rankIn[unit];
    cell.append(rank < 0 ? "-" : String(rank));
  } else {
    cell.setAttribute("aria-expanded", "false");
    const ranks = ranksIn(state(), l, unit);
    cell.append(unitName(l, unit), document.createElement("br"), element("small", {}, count(ranks.length, "rank")));
  }
  paint(cell);
  return cell;
}

function makeUnit(l, unit) {
  if (l === LEVELS || !view.open.has(key(l, unit))) return makeCell(l, unit);
  const level = picture.levels[l];
  const children = level.children[unit];
  const inside = element("div", { class: l + 1 === LEVELS ? "inside ranks" : "inside" });
  if (l + 1 === LEVELS) inside.style.setProperty("--columns", children.length <= 4 ? children.length : children.length <= 8 ? 4 : 8);
  for (const child of children) inside.append(makeUnit(l + 1, child));
  const name = unitName(l, unit);
  const fold = element("button", { "aria-expanded": "true", "aria-label": `Fold ${name}`, "data-fold": key(l, unit), tabindex: "-1" }, "\u2212");
  return element("section", { class: "box", role: "group", "aria-label": `${name}: ${count(level.slots[unit].length, "slot")}`, "data-box": key(l, unit) }, element("h2", {}, fold, name), inside);
}

function render() {
  const boxes = $("boxes");
  boxes.replaceChildren(...picture.levels[0].slots.map((_, unit) => makeUnit(0, unit)));
  afterChange();
}

function repaint() {
  view.colours.clear();
  for (const cell of document.querySelectorAll(".cell")) paint(cell);
  afterChange();
}

// One cell can be reached with Tab, the others with the arrow keys.
function afterChange() {
  if (!document.querySelector('.cell[tabindex="0"]')) document.querySelector(".cell")?.setAttribute("tabindex", "0");
  drawLinks();
}

// Shows the units of a level as cells; LEVELS shows all ranks.
function showLevel(depth) {
  view.open.clear();
  for (let l = 0; l < depth; l++) picture.levels[l].slots.forEach((_, unit) => view.open.add(key(l, unit)));
  render();
}

function firstDepth() {
  let depth = 0;
  const cells = (l) => (l === LEVELS ? picture.slots : picture.levels[l].slots.length);
  while (depth < LEVELS && cells(depth + 1) <= MOST_CELLS) depth++;
  return depth;
}

// Unfolds or folds one box, and keeps the rest of the document.
function toggle(l, unit) {
  const name = key(l, unit);
  const old = document.querySelector(`[data-box="${name}"]`) ?? document.querySelector(`[data-unit="${name}"]`);
  if (view.open.has(name)) view.open.delete(name);
  else view.open.add(name);
  const made = makeUnit(l, unit);
  old.replaceWith(made);
  afterChange();
  (made.matches(".cell") ? made : made.querySelector("button, .cell")).focus();
}

// Unfolds all boxes around a slot and returns its cell.
function reveal(slot) {
  let outermost = -1;
  picture.levels.forEach((level, l) => {
    if (!view.open.has(key(l, level.unit[slot])) && outermost < 0) outermost = l;
  });
  if (outermost >= 0) {
    const unit = picture.levels[outermost].unit[slot];
    const old = document.querySelector(`[data-unit="${key(outermost, unit)}"]`);
    picture.levels.forEach((level, l) => view.open.add(key(l, level.unit[slot])));
    old.replaceWith(makeUnit(outermost, unit));
  }
  return document.querySelector(`[data-unit="${key(LEVELS, slot)}"]`);
}

// Lines from the selected rank to the cells of its group that are in other boxes.
function drawLinks() {
  const links = $("links");
  links.replaceChildren();
  const from = document.querySelector(".cell.chosen");
  const mates = [...document.querySelectorAll(".cell.mate")].filter((cell) => cell !== from && cell.parentElement !== from?.parentElement);
  if (!from || mates.length > 200) return;
  const frame = $("drawing").getBoundingClientRect();
  links.setAttribute("width", frame.width);
  links.setAttribute("height", frame.height);
  const centre = (cell) => {
    const b = cell.getBoundingClientRect();
    return [b.left + b.width / 2 - frame.left, b.top + b.height / 2 - frame.top];
  };
  const [x, y] = centre(from);
  for (const mate of mates) {
    const [toX, toY] = centre(mate);
    const path = document.createElementNS(links.namespaceURI, "path");
    path.setAttribute("d", `M${x} ${y}Q${(x + toX) / 2} ${(y + toY) / 2 + 16} ${toX} ${toY}`);
    links.append(path);
  }
}
