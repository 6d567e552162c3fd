// SPDX-License-Identifier: BSD-3-Clause
// SGLang: pp outside tp, and two factorisations of each tp group, for attention and for experts.

#include <fmt/format.h>

#include "detail/families.hpp"
#include "detail/preset.hpp"

namespace rankmesh::presets {
namespace {
namespace sglang_rules {

constexpr Key keys[] = {{"tp", ValueForm::size, "tensor parallelism, default 1"},
                        {"pp", ValueForm::size, "pipeline stages, default 1"},
                        {"attn_dp", ValueForm::size, "data parallelism of attention, default 1"},
                        {"attn_cp", ValueForm::size, "context parallelism of attention, default 1"},
                        {"moe_ep", ValueForm::size, "expert parallelism, default 1"},
                        {"moe_dp", ValueForm::size, "data parallelism of the experts, default 1"}};

// The sizes of the two factorisations of a tp group.
struct Inside {
  std::int64_t tp, pp, attn_dp, attn_cp, attn_tp, moe_dp, moe_ep, moe_tp;
};

Inside sizes_of(const Arguments& in) {
  const std::int64_t tp = in.size("tp");
  const std::int64_t attention = in.product({in.size("attn_dp"), in.size("attn_cp")});
  const std::int64_t experts = in.product({in.size("moe_dp"), in.size("moe_ep")});
  const std::string whole = fmt::format("tp={}", tp);
  return {tp,
          in.size("pp"),
          in.size("attn_dp"),
          in.size("attn_cp"),
          in.quotient(tp, attention, in.has("attn_dp") ? "attn_dp" : "attn_cp", whole,
                      "attn_dp*attn_cp"),
          in.size("moe_dp"),
          in.size("moe_ep"),
          in.quotient(tp, experts, in.has("moe_ep") ? "moe_ep" : "moe_dp", whole, "moe_dp*moe_ep")};
}

Blueprint build(const Arguments& in) {
  const Inside s = sizes_of(in);
  // SGLang uses the attn_cp groups as moe_dp if attn_cp is larger than moe_dp.
  const bool borrows = s.attn_cp > s.moe_dp;
  const Layout base = Layout::row_major(Sizes{{"pp", s.pp}, {"tp", s.tp}});
  const Layout attention = Layout::row_major(
      Sizes{{"pp", s.pp}, {"attn_dp", s.attn_dp}, {"attn_cp", s.attn_cp}, {"attn_tp", s.attn_tp}});
  const Layout experts = Layout::row_major(Sizes{{"pp", s.pp},
                                                 {borrows ? "moe_data" : "moe_dp", s.moe_dp},
                                                 {"moe_ep", s.moe_ep},
                                                 {"moe_tp", s.moe_tp}});
  // SGLang creates a family after all other families if it has the groups of another one.
  struct TpFamily {
    std::string_view name;
    const Layout& layout;
    std::string_view dimension;
    bool is_alias;
  };
  const TpFamily entries[] = {{"attn_cp", attention, "attn_cp", s.attn_cp == s.tp},
                              {"attn_tp", attention, "attn_tp", s.attn_tp == s.tp},
                              {"moe_dp", borrows ? attention : experts,
                               borrows ? "attn_cp" : "moe_dp", borrows || s.moe_dp == s.tp},
                              {"moe_ep", experts, "moe_ep", s.moe_ep == s.tp},
                              {"moe_tp", experts, "moe_tp", s.moe_tp == s.tp}};
  Blueprint out{
      in.whole_world(base.size()), {base, attention, experts}, {family(base, {"tp", "tp"})}};
  for (const TpFamily& e : entries)
    if (!e.is_alias) out.families.push_back(family(e.layout, {e.name, e.dimension}));
  out.families.push_back(family(base, {"pp", "pp"}));
  for (const TpFamily& e : entries)
    if (e.is_alias) out.families.push_back(family(e.layout, {e.name, e.dimension}));
  return out;
}

}  // namespace sglang_rules
}  // namespace

const Preset sglang{
    "sglang", "",
    "pp, then tp = attn_dp, attn_cp, attn_tp = moe_dp, moe_ep, moe_tp; the last varies fastest",
    sglang_rules::keys, sglang_rules::build};

}  // namespace rankmesh::presets
