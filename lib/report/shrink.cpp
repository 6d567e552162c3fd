// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/picture.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

constexpr std::size_t most_loss_lines = 16;

RankSet rank_set_of(const std::vector<std::int64_t>& ranks) {
  const std::vector<Rank> of_type(ranks.begin(), ranks.end());
  return RankSet::of(of_type);
}

// Runs of consecutive old ranks that become consecutive new ranks.
std::string moves_text(const std::vector<std::int64_t>& new_rank) {
  std::string text;
  std::size_t runs = 0;
  for (std::size_t r = 0; r < new_rank.size();) {
    std::size_t end = r + 1;
    while (end < new_rank.size() && new_rank[r] >= 0 &&
           new_rank[end] == new_rank[r] + static_cast<std::int64_t>(end - r))
      ++end;
    if (new_rank[r] >= 0) {
      if (++runs > most_loss_lines) return text + "    ...\n";
      text += end - r == 1 ? fmt::format("    {} becomes {}\n", r, new_rank[r])
                           : fmt::format("    {}-{} become {}-{}\n", r, end - 1, new_rank[r],
                                         new_rank[end - 1]);
    }
    r = end;
  }
  return text;
}

void add_losses(const Shrunk& after, Document& document) {
  for (const LostRank& lost : after.lost) {
    document.fields["lost"].push_back({{"rank", lost.rank},
                                       {"coordinates", lost.coordinates},
                                       {"part", lost.part},
                                       {"copies_left", lost.copies_left}});
    if (document.fields["lost"].size() > most_loss_lines) continue;
    document.add(fmt::format(
        "  rank {} ({}): {} of {} left\n", lost.rank, lost.coordinates,
        lost.copies_left == 0
            ? "no copy"
            : fmt::format("{} {}", lost.copies_left, lost.copies_left == 1 ? "copy" : "copies"),
        lost.part));
  }
  if (after.lost.size() > most_loss_lines)
    document.add(fmt::format("  ... and {} more\n", after.lost.size() - most_loss_lines));
  document.fields["fatal"] = after.fatal;
  if (!after.fatal.empty()) {
    document.add_bold("fatal");
    document.add(fmt::format(
        "    no copy of {}{} is left; continue from a checkpoint\n", after.fatal.front(),
        after.fatal.size() == 1
            ? ""
            : fmt::format(" and {} more",
                          rankmesh::detail::count_text(after.fatal.size() - 1, "part"))));
  }
}

void add_rank_table(const MeshPlan& plan, const Shrunk& after, Table& table) {
  using enum Table::Align;
  table.columns = {{"rank", right}, {"was", left}, {"new rank", right}, {"is", left}};
  for (std::size_t r = 0; r < after.new_rank.size(); ++r) {
    const auto rank = static_cast<std::int64_t>(r);
    const std::int64_t place = after.new_rank[r];
    table.rows.push_back({rank, rank < plan.world_size() ? plan.describe(rank) : "spare",
                          place < 0 ? Json() : Json(place),
                          place < 0 || !after.plan ? Json() : Json(after.plan->describe(place))});
  }
}

Picture picture_of_loss(const MeshPlan& plan, const Shrunk& after, const Machine* machine) {
  std::vector<std::int64_t> lost;
  for (const LostRank& one : after.lost) lost.push_back(one.rank);
  Picture picture = detail::picture_of(plan, machine,
                                       {fmt::format("lost: {}", rank_set_of(lost).to_string(200))});
  const bool has_spares = static_cast<std::int64_t>(after.new_rank.size()) > plan.world_size();
  if (!after.plan || has_spares) return picture;  // it has no slots for spare ranks
  picture.states.front().name = "before";
  PictureState& state = picture.states.emplace_back(detail::state_of(*after.plan));
  state.name = "after";
  state.slots.resize(static_cast<std::size_t>(state.world_size));
  for (std::size_t r = 0; r < after.new_rank.size(); ++r)
    if (after.new_rank[r] >= 0)
      state.slots[static_cast<std::size_t>(after.new_rank[r])] = static_cast<std::int64_t>(r);
  return picture;
}

}  // namespace

Document shrink(const MeshPlan& plan, ShrinkPolicy policy, const Shrunk& after,
                const Machine* machine) {
  Document document{.schema = "rankmesh.shrink/1",
                    .fields = {{"mesh", views_text(plan)},
                               {"world_size", plan.world_size()},
                               {"policy", to_string(policy)},
                               {"lost", Json::array()},
                               {"fatal", Json::array()},
                               {"copies_before", after.copies_before},
                               {"copies_after", after.copies_after}}};
  document.add_line("mesh", title_of(plan));
  document.add_bold("lost");
  document.add("\n");
  add_losses(after, document);
  document.add_bold("afterwards");
  document.add(fmt::format(", with the policy {}\n", to_string(policy)));
  if (after.plan) {
    document.fields["after"] = {{"mesh", views_text(*after.plan)},
                                {"world_size", after.plan->world_size()}};
    document.add(fmt::format("  {}, {} of {} copies\n{}", title_of(*after.plan), after.copies_after,
                             after.copies_before, moves_text(after.new_rank)));
  } else {
    document.add(
        fmt::format("  no complete replica remains{}\n",
                    after.fatal.empty() ? "; the policies compact and spare can continue" : ""));
  }
  if (after.plan && !after.idle.empty())
    document.add(fmt::format("  idle: {}\n", rank_set_of(after.idle).to_string(200)));
  document.fields["idle"] = after.idle;
  document.fields["new_rank"] = after.new_rank;
  add_rank_table(plan, after, document.table);
  document.picture = picture_of_loss(plan, after, machine);
  return document;
}

}  // namespace rankmesh::report
