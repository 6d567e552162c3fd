// SPDX-License-Identifier: BSD-3-Clause
// The order of parallelism of Llama 3.1: [TP, CP, PP, DP], innermost first (The Llama 3 Herd of
// Models, section 3.3.2).
#include "detail/families.hpp"
#include "detail/preset.hpp"

namespace rankmesh::presets {
namespace {
namespace llama3_rules {

constexpr Key keys[] = {{"tp", Form::size, "tensor parallelism, default 1"},
                        {"cp", Form::size, "context parallelism, default 1"},
                        {"pp", Form::size, "pipeline stages, default 1"},
                        {"dp", Form::size, "data parallelism, default: the rest of the world"}};

Blueprint build(const Arguments& in) {
  const std::int64_t dp =
      in.free_size("dp", in.product({in.size("tp"), in.size("cp"), in.size("pp")}));
  const Sizes sizes{
      {"dp", dp}, {"pp", in.size("pp")}, {"cp", in.size("cp")}, {"tp", in.size("tp")}};
  const Layout view = Layout::row_major(sizes);
  constexpr Row rows[] = {{"dp", "dp"}, {"pp", "pp"}, {"cp", "cp"}, {"tp", "tp"}};
  Blueprint out{view.size(), {view}, {}};
  append(out.families, view, rows);
  return out;
}

}  // namespace llama3_rules
}  // namespace

const Preset llama3{"llama3", "", "dp, pp, cp, tp; tp varies fastest", llama3_rules::keys,
                    llama3_rules::build};

}  // namespace rankmesh::presets
