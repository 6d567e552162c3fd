// SPDX-License-Identifier: BSD-3-Clause
// FasterTransformer's Cartesian grid: rank = tp + TP*pp.
#include "detail/families.hpp"
#include "detail/preset.hpp"

namespace rankmesh::presets {
namespace {
namespace fastertransformer_rules {

constexpr Key keys[] = {{"tp", Form::size, "tensor parallelism, default 1"},
                        {"pp", Form::size, "pipeline stages, default 1"}};

constexpr Row rows[] = {{"tp", "tp"}, {"pp", "pp"}};

Blueprint build(const Arguments& in) {
  const Layout view = Layout::row_major(Sizes{{"pp", in.size("pp")}, {"tp", in.size("tp")}});
  Blueprint out{in.whole_world(view.size()), {view}, {}};
  append(out.families, view, rows);
  return out;
}

}  // namespace fastertransformer_rules
}  // namespace

const Preset fastertransformer{"fastertransformer", "", "pp, tp; tp varies fastest",
                               fastertransformer_rules::keys, fastertransformer_rules::build};

}  // namespace rankmesh::presets
