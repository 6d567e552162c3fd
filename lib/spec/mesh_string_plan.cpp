// SPDX-License-Identifier: BSD-3-Clause
// Turns a mesh string into layouts and families.
#include "rankmesh/spec/mesh_string.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "detail/text.hpp"
#include "presets/detail/preset.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/operations.hpp"

namespace rankmesh {
namespace {

std::string text_of(const MeshString::View& view) {
  std::vector<std::string> parts;
  for (const auto& d : view)
    parts.push_back(d.size ? fmt::format("{}={}", d.name, *d.size) : d.name + "=auto");
  return fmt::format("{}", fmt::join(parts, ","));
}

// Returns the product of the given sizes, or nothing if it overflows.
std::optional<std::int64_t> given_product(const MeshString::View& view) {
  std::int64_t product = 1;
  for (const auto& d : view)
    if (d.size && __builtin_mul_overflow(product, *d.size, &product)) return std::nullopt;
  return product;
}

[[noreturn]] void refuse_world(std::int64_t size) {
  throw SpecError{fmt::format("the world size must be at least 1, got {}", size),
                  "give the number of ranks"};
}

bool has_auto(const MeshString::View& view) {
  return std::ranges::any_of(view, [](const auto& d) { return !d.size; });
}

}  // namespace

void MeshString::refuse(std::size_t position, std::string_view reason,
                        std::string_view hint) const {
  detail::refuse_at(text_, position, reason, hint);
}

std::optional<std::int64_t> MeshString::world_size() const {
  if (preset_) return preset_world_size();
  for (const View& view : views_)
    if (!has_auto(view))
      if (const auto product = given_product(view)) return product;
  return std::nullopt;
}

std::optional<std::int64_t> MeshString::preset_world_size() const {
  try {
    bool is_open = false;
    const auto blueprint = presets::build(text_, *preset_, std::nullopt, is_open);
    if (!is_open) return blueprint.world_size;
  } catch (const SpecError&) {
    // The size is unknown. plan() reports the error.
  }
  return std::nullopt;
}

std::int64_t MeshString::resolve_world(std::optional<std::int64_t> world_size) const {
  for (const View& view : views_)
    if (!given_product(view))
      refuse(view.front().position,
             fmt::format("the product of the sizes in {} overflows 64 bits", text_of(view)),
             "use smaller sizes");
  if (world_size && *world_size < 1) refuse_world(*world_size);
  if (!world_size) world_size = this->world_size();
  if (!world_size) {
    const View& view = views_.front();
    const auto open = std::ranges::find_if(view, [](const auto& d) { return !d.size; });
    refuse(open->position, fmt::format("'{}' is auto, but the world size is not known", open->name),
           "give the world size (meshinfo: --world-size N), or write a number instead of auto");
  }
  return *world_size;
}

Layout MeshString::layout_of(const View& view, std::int64_t world) const {
  const std::int64_t given = *given_product(view);
  if (has_auto(view) ? world % given != 0 : world != given) {
    const std::string there = detail::count_text(world, "rank");
    if (has_auto(view))
      refuse(view.front().position,
             fmt::format("the world size {} is not divisible by {}, the product of the sizes in {}",
                         world, given, text_of(view)),
             fmt::format("use a world size that is a multiple of {}, or other sizes", given));
    refuse(view.front().position,
           fmt::format("{} has {} ranks, but the world has {}", text_of(view), given, there),
           views_.size() > 1 && world == world_size()
               ? "give all views the same number of ranks"
               : fmt::format("start {} ranks, or make one size auto", given));
  }
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  for (const auto& d : view) sizes.emplace_back(d.name, d.size.value_or(world / given));
  return Layout::row_major(sizes);
}

void MeshString::add_products(const std::vector<Layout>& layouts,
                              std::vector<GroupFamily>& families) const {
  std::vector<std::string> dimensions;
  for (const Layout& layout : layouts)
    for (const auto& d : layout.dimensions())
      if (std::ranges::find(dimensions, d.name) == dimensions.end()) dimensions.push_back(d.name);
  for (const Product& product : products_) {
    if (std::ranges::find(families, product.name, &GroupFamily::name) != families.end())
      refuse(product.position, fmt::format("duplicate name '{}'", product.name),
             "choose another name for the product");
    for (const std::string& factor : product.factors)
      if (std::ranges::find(dimensions, factor) == dimensions.end())
        refuse(product.position,
               fmt::format("the product '{}' contains '{}', which is not a dimension of the mesh",
                           product.name, factor),
               detail::suggest(factor, dimensions, "the dimensions are"));
    bool found = false;
    for (std::size_t v = 0; v < layouts.size() && !found; ++v) {
      std::vector<std::size_t> members;
      for (const std::string& factor : product.factors)
        if (const auto d = layouts[v].find(factor)) members.push_back(*d);
      if (members.size() != product.factors.size()) continue;
      std::ranges::sort(members);
      if (std::ranges::adjacent_find(members) != members.end())
        refuse(product.position,
               fmt::format("the product '{}' contains a dimension twice", product.name),
               "name each dimension once");
      families.push_back(product.is_ends ? ends(product.name, layouts[v], product.factors.front())
                                         : GroupFamily::of(product.name, layouts[v], members));
      found = true;
    }
    if (!found)
      refuse(product.position,
             fmt::format("no view contains all dimensions of the product '{}'", product.name),
             "use dimensions of one view");
  }
}

// The plan of a preset is complete; only products are added to it. For views, the world size is
// resolved first, because every view must have the same number of ranks, and one size per view may
// be `auto`. A dimension that appears in several views has one family. Its groups must be the same
// in all of these views; otherwise one name would stand for two sets of groups. Products come last,
// because they can use the dimensions of any view.
MeshString::PlanParts MeshString::plan(std::optional<std::int64_t> world_size) const {
  if (preset_) {
    if (world_size && *world_size < 1) refuse_world(*world_size);
    bool is_open = false;
    auto blueprint = presets::build(text_, *preset_, world_size, is_open);
    add_products(blueprint.views, blueprint.families);
    return {blueprint.world_size, std::move(blueprint.views), std::move(blueprint.families)};
  }
  const std::int64_t world = resolve_world(world_size);
  std::vector<Layout> layouts;
  std::vector<GroupFamily> families;
  for (const View& view : views_) {
    layouts.push_back(layout_of(view, world));
    for (std::size_t d = 0; d < view.size(); ++d) {
      auto family = GroupFamily::of(view[d].name, layouts.back(), std::span{&d, 1});
      const auto known = std::ranges::find(families, view[d].name, &GroupFamily::name);
      if (known == families.end())
        families.push_back(std::move(family));
      else if (!family.has_same_groups(*known))
        refuse(
            view[d].position,
            fmt::format("'{}' has different groups in two views: {} here, {} in an earlier view",
                        view[d].name, family.group(0).to_string(24), known->group(0).to_string(24)),
            "give the dimension the same place and size in each view, or another name");
    }
  }

  add_products(layouts, families);
  return {world, std::move(layouts), std::move(families)};
}

std::string MeshString::to_string() const {
  std::vector<std::string> views;
  if (preset_) {
    std::vector<std::string> arguments;
    for (const auto& argument : preset_->arguments)
      arguments.push_back(argument.key + "=" + argument.value);
    views.push_back(fmt::format("{}:{}", preset_->system, fmt::join(arguments, ",")));
  }
  for (const View& view : views_) views.push_back(text_of(view));
  std::vector<std::string> products;
  for (const Product& product : products_)
    products.push_back(product.is_ends
                           ? fmt::format("{}=ends({})", product.name, product.factors.front())
                           : fmt::format("{}={}", product.name, fmt::join(product.factors, "*")));
  return fmt::format("{}{}{}", fmt::join(views, " | "), products.empty() ? "" : " ; ",
                     fmt::join(products, ", "));
}

}  // namespace rankmesh
