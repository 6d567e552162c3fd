// SPDX-License-Identifier: BSD-3-Clause
// Megatron-LM's HyperCommGrid: any dimensions, the first varying fastest.
#include <algorithm>

#include <fmt/format.h>

#include "detail/families.hpp"
#include "detail/preset.hpp"

namespace rankmesh::presets {
namespace {
namespace hypercommgrid_rules {

constexpr Key keys[] = {{"shape", Form::sizes, "the sizes, fastest first"},
                        {"dim_names", Form::names, "the names, fastest first"},
                        {"rank_offset", Form::count, "the first rank of the grid, default 0"}};

Blueprint build(const Arguments& in) {
  const auto shape = in.numbers("shape");
  const auto names = in.names("dim_names");
  if (shape.size() != names.size())
    in.refuse("dim_names", fmt::format("got {} names for {} sizes", names.size(), shape.size()),
              "give one name per size");
  const std::int64_t offset = in.number("rank_offset", 0);
  const std::int64_t world = in.whole_world(in.sum(offset, in.product(shape)));
  Sizes sizes;
  for (std::size_t d = names.size(); d-- > 0;) sizes.emplace_back(names[d], shape[d]);
  const Layout view = Layout::row_major(sizes, offset);
  Blueprint out{world, {view}, {}, offset > 0};
  append(out.families, view, names);
  return out;
}

}  // namespace hypercommgrid_rules
}  // namespace

const Preset hypercommgrid{"hypercommgrid", "",
                           "in the order of dim_names; the first varies fastest",
                           hypercommgrid_rules::keys, hypercommgrid_rules::build};

}  // namespace rankmesh::presets
