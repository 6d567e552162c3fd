// SPDX-License-Identifier: BSD-3-Clause
// vLLM's initialize_model_parallel: the world as external_dp x dp x pp x pcp x tp.
#include <fmt/format.h>

#include "detail/families.hpp"
#include "detail/preset.hpp"
#include "rankmesh/layout/operations.hpp"

namespace rankmesh::presets {
namespace {
namespace vllm_rules {

constexpr Key keys[] = {
    {"external_dp", ValueForm::size, "independent copies of the engine, never inferred, default 1"},
    {"dp", ValueForm::size, "data parallelism, default: the rest of the world"},
    {"pp", ValueForm::size, "pipeline stages, default 1"},
    {"pcp", ValueForm::size, "prefill context parallelism, default 1"},
    {"tp", ValueForm::size, "tensor parallelism, default 1"},
    {"dcp", ValueForm::size, "decode context parallelism, divides tp, default 1"}};

// EP groups share external_dp and pp. vLLM lists some groups in an order that differs from that of
// the view; `listing` gives this order.
constexpr FamilyRow rows[] = {{"pcp", "pcp", "external_dp dp pp tp"},
                              {"pp", "pp", "external_dp dp tp pcp"},
                              {"dp", "dp", "external_dp tp pp pcp"},
                              {"ep", "dp pcp tp", "external_dp pp"}};

// vLLM fills the rest of the world with further engines. rankmesh requires external_dp for them.
void check_external(const Arguments& in, std::int64_t ranks) {
  if (!in.has("dp") || !in.world() || *in.world() == ranks || *in.world() % ranks != 0) return;
  in.refuse("world_size",
            fmt::format("the sizes multiply to {}, but the world has {} ranks", ranks, *in.world()),
            fmt::format("write external_dp={} if that many engines run side by side",
                        *in.world() / ranks * in.size("external_dp")));
}

Blueprint build(const Arguments& in) {
  const std::int64_t tp = in.size("tp");
  const std::int64_t dcp = in.size("dcp");
  if (tp % dcp != 0)
    in.refuse("dcp", fmt::format("dcp={} does not divide tp={}", dcp, tp),
              "choose a divisor of tp: decode context parallelism reuses the ranks of a tp group");
  check_external(
      in, in.product({in.size("external_dp"), in.size("dp"), in.size("pp"), in.size("pcp"), tp}));
  const std::int64_t dp =
      in.free_size("dp", in.product({in.size("external_dp"), in.size("pp"), in.size("pcp"), tp}));
  const Sizes sizes{{"external_dp", in.size("external_dp")},
                    {"dp", dp},
                    {"pp", in.size("pp")},
                    {"pcp", in.size("pcp")},
                    {"tp", tp}};
  const Layout view = Layout::row_major(sizes);
  const Layout decode = unflatten(view, "tp", Sizes{{"dcp_index", tp / dcp}, {"dcp", dcp}});
  Blueprint out{view.size(), {view}, {family(view, {"tp", "tp"}), family(decode, {"dcp", "dcp"})}};
  append(out.families, view, rows);
  return out;
}

}  // namespace vllm_rules
}  // namespace

const Preset vllm{"vllm", "", "external_dp, dp, pp, pcp, tp; tp varies fastest", vllm_rules::keys,
                  vllm_rules::build};

}  // namespace rankmesh::presets
