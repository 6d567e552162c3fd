// What is drawn: the boxes of the machine, and the group of each rank in each family and state.

const picture = data;
const LEVELS = picture.levels.length; // the level of ranks
const COLOURS = 12;

// The elements of an ordered set that is given by strides or as a list.
function sequence(set) {
  if (set.list) return Int32Array.from(set.list);
  const result = new Int32Array(set.size);
  let filled = 1;
  result[0] = set.start;
  for (const [size, stride] of [...set.modes].reverse()) { // the last mode varies fastest
    for (let i = 1; i < size; i++) for (let j = 0; j < filled; j++) result[i * filled + j] = result[j] + i * stride;
    filled *= size;
  }
  return result;
}

// The boxes: `unit` is the unit of each slot, `children` the units of the next level in each unit, `slots` those of each unit.
for (const level of picture.levels) {
  level.unit = level.units ? Int32Array.from(level.units) : Int32Array.from({ length: picture.slots }, (_, s) => Math.floor(s / level.size));
  level.slots = [];
  level.unit.forEach((unit, slot) => (level.slots[unit] ??= []).push(slot));
}
picture.levels.forEach((level, l) => {
  level.children = level.slots.map((slots) => (l + 1 === LEVELS ? slots : [...new Set(slots.map((slot) => picture.levels[l + 1].unit[slot]))]));
});
const unitName = (l, unit) => picture.levels[l].names?.[unit] || picture.levels[l].name + unit;

for (const state of picture.states) {
  state.slotOf = state.slots ? sequence(state.slots) : Int32Array.from({ length: state.ranks }, (_, r) => r);
  state.rankIn = new Int32Array(picture.slots).fill(-1);
  state.slotOf.forEach((slot, rank) => (state.rankIn[slot] = rank));
  for (const view of state.views) {
    view.place = new Int32Array(state.ranks).fill(-1);
    sequence(view.ranks).forEach((rank, i) => (view.place[rank] = i));
  }
}

// Computed when a family is shown for the first time.
function groupsOf(state, family) {
  if (!family.groupOf) {
    family.groupOf = new Int32Array(state.ranks).fill(-1);
    if (family.group_of_rank) family.groupOf.set(family.group_of_rank);
    else sequence(family.members).forEach((rank, i) => (family.groupOf[rank] = Math.floor(i / family.size)));
  }
  return family.groupOf;
}

// For each level, which groups of the family touch several of its units; and how many do not.
function spreadOf(state, family) {
  if (family.spread) return family.spread;
  const groups = groupsOf(state, family);
  family.spread = picture.levels.map((level) => {
    const units = new Map();
    groups.forEach((group, rank) => {
      if (group < 0) return;
      if (!units.has(group)) units.set(group, new Set());
      units.get(group).add(level.unit[state.slotOf[rank]]);
    });
    const sizes = [...units].map(([group, touched]) => [group, touched.size]);
    return {
      leaving: new Set(sizes.filter(([, size]) => size > 1).map(([group]) => group)),
      inside: sizes.filter(([, size]) => size === 1).length,
      most: sizes.reduce((most, [, size]) => Math.max(most, size), 0),
    };
  });
  return family.spread;
}

// The ranks in a unit; a unit of the level LEVELS is a slot.
function ranksIn(state, l, unit) {
  const slots = l === LEVELS ? [unit] : picture.levels[l].slots[unit];
  return slots.map((slot) => state.rankIn[slot]).filter((rank) => rank >= 0);
}

// The groups in a unit in ascending order, each once.
function groupsIn(state, family, l, unit) {
  const groups = groupsOf(state, family);
  return [...new Set(ranksIn(state, l, unit).map((rank) => groups[rank]))].filter((group) => group >= 0).sort((a, b) => a - b);
}

function coordinates(state, rank) {
  const seen = new Map();
  for (const view of state.views) {
    let rest = view.place[rank];
    if (rest < 0) continue;
    const found = [];
    for (const [name, size] of [...view.dimensions].reverse()) {
      found.unshift([name, rest % size]);
      rest = Math.floor(rest / size);
    }
    for (const [name, value] of found) if (!seen.has(name)) seen.set(name, value);
  }
  return [...seen].map(([name, value]) => `${name}=${value}`).join(",");
}

// 0-3,8 as rankmesh writes ranks; long lists end in "...".
function ranksText(ranks) {
  const sorted = [...ranks].sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < sorted.length; ) {
    const step = sorted[i + 1] - sorted[i];
    let last = i;
    while (last + 1 < sorted.length && sorted[last + 1] - sorted[last] === step) last++;
    if (last - i >= 2) parts.push(`${sorted[i]}-${sorted[last]}` + (step === 1 ? "" : `:${step}`));
    else parts.push(sorted[(last = i)]);
    i = last + 1;
    if (parts.length > 12) return parts.join(",") + ",...";
  }
  return parts.join(",");
}
