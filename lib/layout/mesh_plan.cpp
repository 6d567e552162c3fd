// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/mesh_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "layout/detail/shared_groups.hpp"
#include "rankmesh/base/detail/suggest.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

std::vector<std::string> names_of(const std::vector<GroupFamily>& families) {
  std::vector<std::string> names;
  for (const GroupFamily& family : families) names.push_back(family.name());
  return names;
}

// The dimensions of all views, each once.
std::vector<std::string> dimensions_of(const std::vector<Layout>& views) {
  std::vector<std::string> names;
  for (const Layout& view : views)
    for (const auto& d : view.dimensions())
      if (std::ranges::find(names, d.name) == names.end()) names.push_back(d.name);
  return names;
}

[[noreturn]] void refuse_options(std::string_view name, const std::string& reason,
                                 const std::string& hint) {
  throw SpecError{fmt::format("options of '{}': {}", name, reason), hint};
}

// Checks the options that do not depend on other families.
void validate_values(std::string_view name, const GroupOptions& options) {
  const auto refuse = [&](const std::string& reason, const std::string& hint) {
    refuse_options(name, reason, hint);
  };
  if (options.ranks_per_id < 0)
    refuse(fmt::format("ranks_per_id must be 0 or more, got {}", options.ranks_per_id),
           "write 0 for one unique ID, whatever the size of the group");
  if (options.cga_cluster_size && (*options.cga_cluster_size < 0 || *options.cga_cluster_size > 8))
    refuse(fmt::format("cga_cluster_size must be from 0 to 8, got {}", *options.cga_cluster_size),
           "choose a size that NCCL accepts");
  for (const auto& [key, value] : {std::pair{"cta_policy", options.cta_policy},
                                   std::pair{"graph_usage_mode", options.graph_usage_mode}})
    if (value && (*value < 0 || *value > 2))
      refuse(fmt::format("{} must be 0, 1 or 2, got {}", key, *value),
             "choose a number that NCCL accepts");
  if (options.nvls_ctas && *options.nvls_ctas < 1)
    refuse(fmt::format("nvls_ctas must be 1 or more, got {}", *options.nvls_ctas),
           "choose a number that NCCL accepts");
  if (options.warm_up_bytes < 0)
    refuse(fmt::format("warm_up_bytes must be 0 or more, got {}", options.warm_up_bytes),
           "write 0 for a warm-up with small messages only");
  if (options.timeout && *options.timeout < 1)
    refuse(fmt::format("timeout must be 1 or more, got {}", *options.timeout),
           "give a number of seconds, or none for the timeout of the mesh");
  for (const auto& ctas : {options.min_ctas, options.max_ctas})
    if (ctas && (*ctas < 1 || *ctas > 64))
      refuse(fmt::format("min_ctas and max_ctas must be from 1 to 64, got {}", *ctas),
             "choose a number that NCCL accepts");
  if (options.min_ctas && options.max_ctas && *options.min_ctas > *options.max_ctas)
    refuse("min_ctas is greater than max_ctas", "swap the two values");
  if (options.share_resources && options.split_from.empty())
    refuse("share_resources needs split_from",
           "set split_from to the parent whose resources it shares");
  auto keys = options.duplicates;
  std::ranges::sort(keys);
  if (std::ranges::adjacent_find(keys) != keys.end() || std::ranges::find(keys, "") != keys.end())
    refuse("duplicates contains an empty or duplicate key", "give each communicator its own key");
}

}  // namespace

std::vector<std::string> split_product(std::string_view product) {
  std::vector<std::string> names{""};
  for (const char c : product) {
    if (c == '*')
      names.emplace_back();
    else if (c != ' ' && c != '\t')
      names.back() += c;
  }
  return names;
}

MeshPlan::MeshPlan(std::int64_t world_size, std::vector<Layout> views,
                   std::vector<GroupFamily> families)
    : world_size_{world_size},
      views_{std::move(views)},
      families_{std::move(families)},
      options_(families_.size()) {
  auto names = names_of(families_);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    throw SpecError{fmt::format("duplicate name '{}'", *twice), "give each family its own name"};
  const auto check = [&](Rank highest) {
    if (highest.value() >= world_size_)
      throw SpecError{fmt::format("the mesh uses rank {}, but the world has {} ranks",
                                  highest.value(), world_size_),
                      "use a smaller mesh or a larger world"};
  };
  for (const Layout& view : views_) check(view.ranks().highest());
  for (const GroupFamily& family : families_) check(family.highest());
}

const GroupFamily& MeshPlan::groups(std::string_view name) const {
  return families_[index_of(name)];
}

std::size_t MeshPlan::index_of(std::string_view name) const {
  const auto found = std::ranges::find(families_, name, &GroupFamily::name);
  if (found == families_.end())
    throw UnknownName{fmt::format("the mesh has no groups named '{:.40}'", name),
                      detail::suggest(name, names_of(families_), "the names are")};
  return static_cast<std::size_t>(found - families_.begin());
}

GroupFamily MeshPlan::groups_of_product(std::string_view product) const {
  const auto factors = split_product(product);
  if (factors.size() == 1) return groups(factors.front());
  for (const std::string& factor : factors)
    if (std::ranges::none_of(views_,
                             [&](const Layout& view) { return view.find(factor).has_value(); }))
      throw UnknownName{
          fmt::format("unknown dimension '{:.40}' in the product '{:.80}'", factor, product),
          detail::suggest(factor, dimensions_of(views_), "the dimensions are")};
  for (const Layout& view : views_) {
    std::vector<std::size_t> members;
    for (const std::string& factor : factors)
      if (const auto d = view.find(factor)) members.push_back(*d);
    if (members.size() != factors.size()) continue;
    std::ranges::sort(members);
    if (std::ranges::adjacent_find(members) != members.end())
      throw UnknownName{fmt::format("the product '{:.80}' contains a dimension twice", product),
                        "name each dimension once"};
    return GroupFamily::of(std::string{product}, view, members);
  }
  throw UnknownName{fmt::format("no view contains all dimensions of the product '{:.80}'", product),
                    "use dimensions of one view"};
}

std::vector<std::pair<std::string, Coordinate>> MeshPlan::coordinates(Rank rank) const {
  std::vector<std::pair<std::string, Coordinate>> result;
  for (const Layout& view : views_) {
    const auto coordinates = view.coordinates(rank);
    if (!coordinates) continue;
    for (std::size_t d = 0; d < coordinates->size(); ++d) {
      const std::string& name = view.dimensions()[d].name;
      if (std::ranges::find(result, name, [](const auto& c) { return c.first; }) == result.end())
        result.emplace_back(name, (*coordinates)[d]);
    }
  }
  return result;
}

Coordinate MeshPlan::coordinate(Rank rank, std::string_view dimension) const {
  bool known = false;
  for (const Layout& view : views_) {
    const auto d = view.find(dimension);
    if (!d) continue;
    known = true;
    if (const auto coordinate = view.coordinate(rank, *d)) return *coordinate;
  }
  if (known)
    throw NotMember{fmt::format("rank {} has no coordinate along '{}'", rank.value(), dimension),
                    "this part of the mesh contains only some of the ranks: choose one of these"};
  throw UnknownName{fmt::format("the mesh has no dimension '{:.40}'", dimension),
                    detail::suggest(dimension, dimensions_of(views_), "the dimensions are")};
}

std::string MeshPlan::describe(Rank rank) const {
  std::string text;
  for (const auto& [name, coordinate] : coordinates(rank)) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}={}", name, coordinate.value());
  }
  return text.empty() ? "outside the mesh" : text;
}

std::vector<Membership> MeshPlan::memberships(Rank rank) const {
  std::vector<Membership> result;
  for (std::size_t f = 0; f < families_.size(); ++f)
    for (const GroupIndex& place : families_[f].find_all(rank))
      result.push_back({f, place, families_[f].group(place.group)});
  return result;
}

std::vector<CommunicatorUse> detail::shared_groups(const MeshPlan& plan, Rank rank) {
  std::vector<CommunicatorUse> result;
  for (const Membership& membership : plan.memberships(rank)) {
    const std::size_t family = membership.family;
    if (plan.families()[family].coverage(plan.world_size()) == Coverage::overlapping) continue;
    const GroupOptions& wanted = plan.options(family);
    const auto same = std::ranges::find_if(result, [&](const CommunicatorUse& use) {
      return use.duplicate_key.empty() && use.ranks == membership.ranks &&
             plan.options(use.families.front()).can_share(wanted);
    });
    if (same != result.end())
      same->families.push_back(family);
    else
      result.push_back({membership.ranks, {family}, {}});
    if (membership.ranks.size() < 2) continue;
    for (const std::string& key : wanted.duplicates)
      result.push_back({membership.ranks, {family}, key});
  }
  return result;
}

std::vector<CommunicatorUse> MeshPlan::communicators(Rank rank) const {
  std::vector<CommunicatorUse> result = detail::shared_groups(*this, rank);
  std::erase_if(result, [](const CommunicatorUse& use) { return use.ranks.size() < 2; });
  return result;
}

bool MeshPlan::has_communicators(std::size_t family) const {
  return families_[family].group_size() > 1 &&
         families_[family].coverage(world_size_) != Coverage::overlapping;
}

bool MeshPlan::needs_creation(std::size_t family) const {
  if (!has_communicators(family)) return false;
  const GroupFamily& groups = families_[family];
  std::vector<const GroupFamily*> earlier;
  for (std::size_t f = 0; f < family; ++f) {
    if (families_[f].coverage(world_size_) == Coverage::overlapping) continue;
    if (!options_[f].can_share(options_[family])) continue;
    if (groups.has_same_groups(families_[f])) return false;
    earlier.push_back(&families_[f]);
  }
  for (std::int64_t g = 0; g < groups.group_count(); ++g) {
    const RankSet ranks = groups.group(g);
    if (ranks.size() < 2) continue;
    if (std::ranges::none_of(
            earlier, [&](const GroupFamily* e) { return e->find_group(ranks).has_value(); }))
      return true;  // in plain meshes the first group decides
  }
  return false;
}

RankInGroup MeshPlan::leader(std::size_t family, std::int64_t group) const {
  const GroupFamily& groups = families_[family];
  const RankSet ranks = groups.group(group);
  std::int64_t sum = group;
  for (const Layout& view : views_) {
    const auto in_view = [&](const std::string& name) { return view.find(name).has_value(); };
    if (groups.dimensions().empty() || !std::ranges::all_of(groups.dimensions(), in_view)) continue;
    const auto coordinates = view.coordinates(ranks.front());
    if (!coordinates) continue;
    sum = 0;
    for (std::size_t d = 0; d < coordinates->size(); ++d)
      if (std::ranges::find(groups.dimensions(), view.dimensions()[d].name) ==
          groups.dimensions().end())
        sum += (*coordinates)[d].value();
    break;
  }
  // The sum is reduced first, because in a mesh of almost 2^63 ranks adding the index
  // could overflow.
  return (sum % ranks.size() + static_cast<std::int64_t>(family)) % ranks.size();
}

std::int64_t MeshPlan::unique_ids(std::size_t family, std::int64_t ranks) const {
  const GroupOptions& wanted = options_[family];
  if (!wanted.split_from.empty()) return 0;
  return wanted.ranks_per_id == 0 ? 1 : (ranks - 1) / wanted.ranks_per_id + 1;
}

BatchPlace MeshPlan::batch_place(std::size_t family) const {
  std::string_view name = families_[family].name();
  // A dot in a name can come only from the prefix of a grid.
  if (const auto dot = name.rfind('.'); dot != std::string_view::npos) name.remove_prefix(dot + 1);
  const int turn = name == "dp" ? 2 : name == "pp" ? 1 : 0;
  return {options_[family].priority, turn};
}

void MeshPlan::set_options(std::string_view name, GroupOptions options) {
  const std::size_t family = index_of(name);
  validate_values(name, options);
  if (!options.split_from.empty()) validate_parent(family, options.split_from);
  options_[family] = std::move(options);
}

void MeshPlan::validate_parent(std::size_t family, const std::string& parent_name) const {
  const std::string& name = families_[family].name();
  const std::size_t parent = index_of(parent_name);
  const bool is_parent =
      std::ranges::find(options_, name, &GroupOptions::split_from) != options_.end();
  if (parent == family || is_parent || !options_[parent].split_from.empty())
    refuse_options(
        name,
        fmt::format("split_from cannot be '{}': a family that has split_from cannot be a "
                    "parent",
                    parent_name),
        "split from a family that is not split itself");
  if (families_[parent].coverage(world_size_) == Coverage::overlapping)
    refuse_options(
        name,
        fmt::format("split_from cannot be '{}': its groups overlap and have no communicators",
                    parent_name),
        "choose another family");
  // Of a strided family with more ranks, groups at equal distances are checked, which keeps
  // planning fast. The distance is odd, because the patterns of most meshes repeat after powers of
  // two. All groups of other families are checked.
  constexpr std::int64_t most_checked = 1 << 20;  // ranks
  const GroupFamily& children = families_[family];
  const std::int64_t step =
      children.is_strided()
          ? (1 + (children.group_count() - 1) / (1 + most_checked / children.group_size())) | 1
          : 1;
  for (std::int64_t g = 0; g < children.group_count(); g += step) {
    const RankSet ranks = children.group(g);
    const auto place = families_[parent].find(ranks.front());
    for (const Rank rank : ranks) {
      const auto other = families_[parent].find(rank);
      if (!place || !other || other->group != place->group)
        refuse_options(name,
                       fmt::format("group {} does not lie inside one group of '{}'",
                                   ranks.to_string(40), parent_name),
                       "split from a family whose groups contain these groups completely");
    }
  }
}

std::string MeshPlan::options_text() const {
  std::string text;
  for (std::size_t f = 0; f < families_.size(); ++f)
    if (options_[f] != GroupOptions{})
      text += fmt::format("{}{}({})", text.empty() ? "" : " ", families_[f].name(),
                          options_[f].to_string());
  return text;
}

std::string MeshPlan::canonical_text() const {
  std::string text = fmt::format("rankmesh.plan/1\nworld {}\n", world_size_);
  for (const Layout& view : views_) {
    text += fmt::format("view offset {}", view.offset());
    for (const auto& d : view.dimensions())
      text += fmt::format(" {}:{}:{}", d.name, d.size, d.stride);
    if (view.ranks().table())
      text += fmt::format(" table {}", to_string(view.ranks().table()->hash()));
    text += '\n';
  }
  for (const GroupFamily& family : families_) text += fmt::format("name {}\n", family.canonical());
  return text;
}

Hash128 MeshPlan::digest() const { return hash_bytes(canonical_text()); }

}  // namespace rankmesh
