// SPDX-License-Identifier: BSD-3-Clause
// Turns a description into a plan.
#include "rankmesh/spec/mesh_spec.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "detail/located.hpp"
#include "detail/text.hpp"
#include "rankmesh/layout/rank_map.hpp"
#include "rankmesh/routes/route_table.hpp"

namespace rankmesh {
namespace {

// The limit for the comparison of interleaved grids.
constexpr std::int64_t most_compared_ranks = std::int64_t{1} << 24;

std::string called(const MeshSpec::Grid& grid) {
  return grid.name.empty() ? "the mesh" : fmt::format("the grid '{}'", grid.name);
}

// Returns a rank that both sets contain. `budget` bounds the work of all calls together.
std::optional<Rank> common_rank(const RankSet& a, const RankSet& b, std::int64_t& budget) {
  if (a.highest() < b.lowest() || b.highest() < a.lowest()) return std::nullopt;
  const RankSet& few = a.size() < b.size() ? a : b;
  const RankSet& many = a.size() < b.size() ? b : a;
  budget -= few.size();
  if (budget < 0)
    throw SpecError{
        fmt::format("the ranks of two grids interleave, and {} ranks are too many to compare",
                    few.size()),
        "give each grid one contiguous range of ranks"};
  for (const Rank rank : few)
    if (many.contains(rank)) return rank;
  return std::nullopt;
}

}  // namespace

std::string MeshSpec::routes_origin() const { return detail::place_of(origin_, routes_line_); }

void MeshSpec::set_routes(std::string rules) {
  static_cast<void>(RouteTable::parse(rules, RouteSource::file, "the new routes", transports_));
  routes_ = std::move(rules);
  routes_line_ = 0;
}

std::optional<std::int64_t> MeshSpec::world_size() const {
  if (stated_world_size_) return stated_world_size_;
  std::int64_t size = 0;
  for (const Grid& grid : grids_) {
    auto reach =
        grid.ranks ? std::optional{grid.ranks->highest().value() + 1} : grid.mesh.world_size();
    std::int64_t end = 0;
    if (!reach || __builtin_add_overflow(*reach, grid.rank_offset, &end)) return std::nullopt;
    size = std::max(size, end);
  }
  return size;
}

void MeshSpec::check_world(std::optional<std::int64_t> world_size) const {
  if (world_size && *world_size < 1)
    throw SpecError{fmt::format("the world size must be at least 1, got {}", *world_size),
                    "give the number of ranks"};
  if (world_size && stated_world_size_ && *world_size != *stated_world_size_)
    throw SpecError{fmt::format("{}: the mesh file is for {}, but the world has {}",
                                detail::place_of(origin_, world_size_line_),
                                detail::count_text(*stated_world_size_, "rank"), *world_size),
                    fmt::format("start {}, or remove world_size from the file",
                                detail::count_text(*stated_world_size_, "rank"))};
}

void MeshSpec::check_overlap() const {
  std::int64_t budget = most_compared_ranks;
  for (std::size_t b = 0; b < grids_.size(); ++b)
    for (std::size_t a = 0; a < b; ++a)
      detail::located(origin_, grids_[b].line, "", [&] {
        if (const auto rank = common_rank(*grids_[a].ranks, *grids_[b].ranks, budget))
          throw SpecError{fmt::format("rank {} is in two grids, '{}' and '{}'", rank->value(),
                                      grids_[a].name, grids_[b].name),
                          "put each rank into one grid; to factorise the same ranks twice, use "
                          "views: mesh = \"dp=8 | ep=8\""};
      });
}

// Plans a grid on its ranks of the world. The size `auto` takes the listed ranks, or the ranks of
// the world from the offset on.
MeshString::PlanParts MeshSpec::parts_of(const Grid& grid,
                                         std::optional<std::int64_t> world_size) const {
  if (!grid.ranks && grid.rank_offset == 0) return grid.mesh.plan(world_size);
  auto own = grid.mesh.world_size();
  if (grid.ranks && own && *own != grid.ranks->size())
    throw SpecError{
        fmt::format("{} has {}, but {} listed", called(grid), detail::count_text(*own, "rank"),
                    grid.ranks->size() == 1 ? "1 is" : fmt::format("{} are", grid.ranks->size())),
        fmt::format("list {}, or make one size auto", detail::count_text(*own, "rank"))};
  if (grid.ranks) own = grid.ranks->size();
  if (!own && world_size) {
    own = *world_size - grid.rank_offset;
    if (*own < 1)
      throw SpecError{fmt::format("the mesh begins at rank {}, but the world has {}",
                                  grid.rank_offset, detail::count_text(*world_size, "rank")),
                      "use a smaller rank_offset or a larger world"};
  }
  MeshString::PlanParts parts = grid.mesh.plan(own);
  std::int64_t end = 0;
  if (__builtin_add_overflow(grid.rank_offset, parts.world_size, &end))
    throw SpecError{"the ranks of the mesh overflow 64 bits", "use a smaller rank_offset"};
  RankMap map{grid.ranks ? *grid.ranks : RankSet::range(grid.rank_offset, parts.world_size)};
  const std::int64_t reach = grid.ranks ? map.ranks().highest().value() + 1 : end;
  if (world_size && reach > *world_size)
    throw SpecError{fmt::format("{} uses rank {}, but the world has {}", called(grid), reach - 1,
                                detail::count_text(*world_size, "rank")),
                    fmt::format("start {}, or use other ranks", detail::count_text(reach, "rank"))};
  const std::string prefix = grid.name.empty() ? "" : grid.name + ".";
  for (Layout& view : parts.views) view = map.map(view, prefix);
  for (GroupFamily& family : parts.families) family = map.map(family, prefix);
  parts.world_size = world_size.value_or(reach);
  return parts;
}

void MeshSpec::add_lists(std::int64_t world_size, std::vector<GroupFamily>& families) const {
  for (const Lists& lists : lists_)
    detail::located(origin_, lists.line, "", [&] {
      if (std::ranges::find(families, lists.name, &GroupFamily::name) != families.end())
        throw SpecError{fmt::format("duplicate name '{}'", lists.name),
                        "choose a name that the mesh does not use yet"};
      families.push_back(GroupFamily::of(lists.name, lists.groups));
      if (families.back().highest().value() >= world_size)
        throw SpecError{
            fmt::format("'{}' lists rank {}, but the world has {}", lists.name,
                        families.back().highest().value(), detail::count_text(world_size, "rank")),
            fmt::format("list ranks from 0 to {}", world_size - 1)};
    });
}

void MeshSpec::set_options(MeshPlan& plan) const {
  std::vector<std::string> names;
  for (const GroupFamily& family : plan.families()) names.push_back(family.name());
  const auto check = [&](const std::string& name, std::string_view reason) {
    if (std::ranges::find(names, name) == names.end())
      throw SpecError{
          fmt::format("{} '{:.40}', but the mesh has no groups of that name", reason, name),
          detail::suggest(name, names, "the names are")};
  };
  for (const FamilyOptions& entry : options_)
    detail::located(origin_, entry.line, "choose other options", [&] {
      check(entry.name, "options are given for");
      if (!entry.options.split_from.empty())
        check(entry.options.split_from, fmt::format("'{}' is split from", entry.name));
      plan.set_options(entry.name, entry.options);
    });
}

MeshPlan MeshSpec::plan(std::optional<std::int64_t> world_size) const {
  check_world(world_size);
  if (!world_size) world_size = stated_world_size_;
  if (grids_.size() > 1) check_overlap();
  MeshString::PlanParts all;
  for (const Grid& grid : grids_) {
    auto parts = detail::located(origin_, grid.line, "choose other sizes",
                                 [&] { return parts_of(grid, world_size); });
    all.world_size = std::max(all.world_size, parts.world_size);
    std::ranges::move(parts.views, std::back_inserter(all.views));
    std::ranges::move(parts.families, std::back_inserter(all.families));
  }
  add_lists(all.world_size, all.families);
  MeshPlan plan = detail::located(origin_, 0, "choose other sizes", [&] {
    return MeshPlan{all.world_size, std::move(all.views), std::move(all.families)};
  });
  set_options(plan);
  return plan;
}

// Returns the first property that a mesh string cannot express, or an empty text.
std::string MeshSpec::beyond_string() const {
  if (grids_.size() > 1 || !grids_.front().name.empty()) return "several grids";
  if (grids_.front().ranks) return "an order of ranks";
  if (grids_.front().rank_offset != 0) return "a rank offset";
  if (!lists_.empty()) return fmt::format("the groups of '{}'", lists_.front().name);
  if (!options_.empty()) return fmt::format("the options of '{}'", options_.front().name);
  if (!transports_.empty()) return "transports";
  return routes_.empty() ? "" : "routes";
}

bool MeshSpec::fits_string() const { return beyond_string().empty(); }

std::string MeshSpec::to_string() const {
  if (const std::string beyond = beyond_string(); !beyond.empty())
    throw UnsupportedError{fmt::format("a mesh string cannot express {}", beyond),
                           "use the TOML form: meshinfo convert"};
  return grids_.front().mesh.to_string();
}

std::string MeshSpec::describe() const {
  if (fits_string()) return to_string();
  std::vector<std::string> parts;
  for (const Grid& grid : grids_) {
    std::string text = (grid.name.empty() ? "" : grid.name + ": ") + grid.mesh.to_string();
    if (grid.ranks) text += " on " + grid.ranks->to_string(24);
    if (grid.rank_offset != 0) text += fmt::format(" from rank {} on", grid.rank_offset);
    parts.push_back(std::move(text));
  }
  for (const Lists& lists : lists_) parts.push_back(lists.name + " by lists");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace rankmesh
