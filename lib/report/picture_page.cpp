// SPDX-License-Identifier: BSD-3-Clause
// Writes a picture as a page. lib/report/page/layout_model.js reads the data that are written here.
#include "detail/page.hpp"
#include "detail/picture.hpp"

namespace rankmesh::report {
namespace {

// An ordered set as strides, or as a list if strides do not describe it.
Json sequence_json(const RankSet& set) {
  if (!set.table()) {
    Json modes = Json::array();
    for (const Mode& mode : set.modes()) modes.push_back({mode.size, mode.stride});
    return {{"start", set.start()}, {"modes", std::move(modes)}, {"size", set.size()}};
  }
  Json list = Json::array();
  set.for_each([&](Rank rank) { list.push_back(rank.value()); });
  return {{"list", std::move(list)}};
}

// The names only if they do not follow from the name of the level.
Json level_json(const Machine& machine, std::size_t l) {
  const MachineLevel& level = machine.levels()[l];
  Json result{{"name", level.name}, {"plural", plural(level.name)}};
  if (level.size > 0)
    result["size"] = level.size;
  else
    result["units"] = level.units;
  if (!level.names.empty()) result["names"] = level.names;
  return result;
}

Json family_json(const NamedFamily& named, std::int64_t world_size) {
  const GroupFamily& family = named.second;
  Json result{
      {"name", named.first}, {"size", family.group_size()}, {"groups", family.group_count()}};
  if (const RankSet* all = family.in_sequence())
    result["members"] = sequence_json(*all);
  else
    result["group_of_rank"] = detail::groups_of_ranks(family, world_size);
  return result;
}

Json state_json(const PictureState& state) {
  Json result{{"name", state.name},
              {"ranks", state.world_size},
              {"views", Json::array()},
              {"families", Json::array()}};
  for (const Layout& view : state.views) {
    Json dimensions = Json::array();
    for (const Layout::Dimension& d : view.dimensions()) dimensions.push_back({d.name, d.size});
    result["views"].push_back(
        {{"dimensions", std::move(dimensions)}, {"ranks", sequence_json(view.ranks())}});
  }
  for (const NamedFamily& named : detail::drawn_families(state))
    result["families"].push_back(family_json(named, state.world_size));
  if (!state.slots.empty()) {
    const std::vector<Rank> slots(state.slots.begin(), state.slots.end());
    result["slots"] = sequence_json(RankSet::of(slots));
  }
  return result;
}

}  // namespace

void detail::write_picture_page(const Picture& picture, Writer& out) {
  const Machine machine = boxes_of(picture);
  Json data{{"title", picture.title},
            {"machine", picture.machine ? machine.describe() : "no machine: boxes are coordinates"},
            {"notes", picture.notes},
            {"slots", machine.slot_count()},
            {"node_level", machine.node_level()},
            {"levels", Json::array()},
            {"states", Json::array()}};
  for (std::size_t l = 0; l < machine.levels().size(); ++l)
    data["levels"].push_back(level_json(machine, l));
  for (const PictureState& state : picture.states) data["states"].push_back(state_json(state));
  out.text(page_head);
  out.text(script_json(data));
  out.text(page_tail);
}

}  // namespace rankmesh::report
