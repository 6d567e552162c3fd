// The buttons, the search, the selected rank, and the keys.

function fillButtons(place, names, pressed, press) {
  place.replaceChildren(...names.map((name, i) => button({ "aria-pressed": String(i === pressed) }, () => press(i), name)));
}

function showTools() {
  const names = picture.states.map((s) => s.name);
  fillButtons($("states"), names.length > 1 ? names : [], view.state, (i) => {
    view.state = i;
    if (view.chosen >= state().ranks) view.chosen = -1;
    showTools();
    view.colours.clear();
    render();
    showDetails();
    announce(`state ${names[i]}`);
  });
  const families = state().families;
  fillButtons($("families"), families.map((f) => f.name), families.indexOf(family()), (i) => chooseFamily(families[i].name));
  const f = family();
  $("spread").textContent = f
    ? `${f.name}: ${count(f.groups, "group")} of ${count(f.size, "rank")}; ` +
      picture.levels.map((level, l) => { const s = spreadOf(state(), f)[l]; return `${s.inside} in one ${level.name}, a group touches up to ${count(s.most, level.name, level.plural)}`; }).join("; ")
    : "no name has groups of several ranks";
}

function chooseFamily(name) {
  view.family = name;
  showTools();
  repaint();
  showDetails();
  announce(`coloured by ${name}`);
}

function nodesOf(ranks) {
  return new Set(ranks.map((rank) => picture.levels[picture.node_level].unit[state().slotOf[rank]])).size;
}

function whereText(of, rank) {
  const slot = of.slotOf[rank];
  return `slot ${slot}: ` + picture.levels.map((level, l) => unitName(l, level.unit[slot])).join(", ");
}

function showDetails() {
  const panel = $("details");
  panel.replaceChildren();
  if (view.chosen < 0) return;
  const rank = view.chosen;
  const others = picture.states.filter((other) => other !== state() && rank < other.ranks);
  panel.append(element("h2", {}, `rank ${rank}`), element("p", {}, coordinates(state(), rank) || "outside the mesh"), element("p", {}, whereText(state(), rank)),
    ...others.map((other) => element("p", {}, `${other.name}: ${whereText(other, rank)}`)));
  const rows = state().families.map((f) => {
    const groups = groupsOf(state(), f);
    const members = groups[rank] < 0 ? [] : [...groups.keys()].filter((r) => groups[r] === groups[rank]);
    const choose = button({ "aria-pressed": String(f === family()) }, () => chooseFamily(f.name), f.name);
    const node = picture.levels[picture.node_level];
    return element("tr", {}, element("td", {}, choose), element("td", {}, groups[rank] < 0 ? "-" : String(groups[rank])),
      element("td", {}, ranksText(members)), element("td", {}, members.length ? count(nodesOf(members), node.name, node.plural) : ""));
  });
  panel.append(element("table", {}, element("tr", {}, ...["name", "group", "ranks", "in"].map((title) => element("th", {}, title))), ...rows));
}

function choose(rank) {
  view.chosen = rank;
  const cell = rank < 0 ? null : reveal(state().slotOf[rank]);
  repaint();
  showDetails();
  drawLinks(); // the panel may have moved the boxes
  if (cell) {
    cell.scrollIntoView({ block: "center" });
    focusCell(cell);
    announce(cell.getAttribute("aria-label"));
  }
}

function focusCell(cell) {
  document.querySelector('.cell[tabindex="0"]')?.setAttribute("tabindex", "-1");
  cell.setAttribute("tabindex", "0");
  cell.focus({ preventScroll: true });
}

function activate(cell) {
  const [l, unit] = cell.dataset.unit.split(":").map(Number);
  if (l < LEVELS) return toggle(l, unit);
  const rank = state().rankIn[unit];
  choose(rank === view.chosen ? -1 : rank);
}

// A rank by its number, or a box by its name.
function search(text) {
  if (/^\d+$/.test(text) && Number(text) < state().ranks) return choose(Number(text));
  for (let l = 0; l < LEVELS; l++) {
    const unit = picture.levels[l].slots.findIndex((_, u) => unitName(l, u) === text);
    if (unit < 0) continue;
    reveal(picture.levels[l].slots[unit][0]);
    afterChange();
    const box = document.querySelector(`[data-box="${key(l, unit)}"]`);
    box.scrollIntoView({ block: "center" });
    return announce(box.getAttribute("aria-label"));
  }
  announce(`nothing is called ${text}`);
}

function start() {
  $("title").textContent = picture.title;
  $("machine").textContent = picture.machine;
  const box = picture.levels[picture.node_level].name;
  $("legend-inside").textContent = `its groups lie inside one ${box}`;
  $("legend-leaves").textContent = `a group leaves its ${box}, or the folded box`;
  const depth = firstDepth();
  const names = [...picture.levels.map((level) => level.plural), "ranks"];
  $("depth").append(...names.map((name, l) => element("option", l === depth ? { value: l, selected: "" } : { value: l }, name)));
  $("depth").addEventListener("change", () => showLevel(Number($("depth").value)));
  $("find").addEventListener("change", () => { if ($("find").value.trim()) search($("find").value.trim()); });
  startTheme(() => {});
  $("boxes").addEventListener("click", (event) => {
    const fold = event.target.closest("[data-fold]");
    if (fold) return toggle(...fold.dataset.fold.split(":").map(Number));
    const cell = event.target.closest(".cell");
    if (cell && String(getSelection()) === "") activate(cell); // texts can be selected
  });
  $("boxes").addEventListener("keydown", (event) => {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    if (event.key === "Enter" || event.key === " ") activate(cell);
    else if (event.key === "Escape") choose(-1);
    else if (event.key.startsWith("Arrow")) {
      const cells = [...document.querySelectorAll(".cell")];
      const next = cells[cells.indexOf(cell) + (event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1)];
      if (next) { focusCell(next); next.scrollIntoView({ block: "nearest" }); }
    } else return;
    event.preventDefault();
  });
  addEventListener("resize", drawLinks);
  showTools();
  showLevel(depth);
}

start();
