// SPDX-License-Identifier: BSD-3-Clause
// v-forms: one rank passes other sizes of blocks.
#include "faults/operations.hpp"

namespace faults {
namespace {

// Blocks of different sizes. The odd rank expects one element less of the member `of`.
struct Sizes {
  Sizes(const Cell& c, int of) {
    for (int k = 0; k < c.size; ++k)
      counts.push_back(static_cast<std::int64_t>(c.block()) + k - (c.is_odd() && k == of ? 1 : 0));
    for (const auto count : counts) total += static_cast<std::size_t>(count);
    own = static_cast<std::size_t>(counts[static_cast<std::size_t>(c.rank)]);
  }
  std::vector<std::int64_t> counts;
  std::size_t total = 0, own = 0;
};

void all_gather_v(Cell& c, int of) {
  const Sizes sizes{c, of};
  c.expect("tp.all_gather");
  const auto in = c.memory<float>(sizes.own), out = c.memory<float>(sizes.total);
  issue(
      c, [&] { c.group->all_gather_v(in, out, sizes.counts); },
      [&] { return c.group->all_gather_v_async(in, out, sizes.counts); });
}
void gather_v(Cell& c, int of) {
  const Sizes sizes{c, of};
  c.expect("tp.gather");
  const auto in = c.memory<float>(sizes.own), out = c.memory<float>(sizes.total);
  issue(
      c, [&] { c.group->gather_v(in, out, sizes.counts, first_member); },
      [&] { return c.group->gather_v_async(in, out, sizes.counts, first_member); });
}
void scatter_v(Cell& c, int of) {
  const Sizes sizes{c, of};
  c.expect("tp.scatter");
  const auto in = c.memory<float>(sizes.total), out = c.memory<float>(sizes.own);
  issue(
      c, [&] { c.group->scatter_v(in, out, sizes.counts, first_member); },
      [&] { return c.group->scatter_v_async(in, out, sizes.counts, first_member); });
}
void reduce_scatter_v(Cell& c, int of) {
  const Sizes sizes{c, of};
  c.expect("tp.reduce_scatter");
  const auto in = c.memory<float>(sizes.total), out = c.memory<float>(sizes.own);
  issue(
      c, [&] { c.group->reduce_scatter_v(in, out, sizes.counts); },
      [&] { return c.group->reduce_scatter_v_async(in, out, sizes.counts); });
}
// Every member sends the same number to all; the odd rank expects less of the first member.
void all_to_all_v(Cell& c, int of) {
  const Sizes sizes{c, of};
  const std::vector<std::int64_t> sent(members(c), static_cast<std::int64_t>(c.block()) + c.rank);
  c.expect("tp.all_to_all");
  const auto in = c.memory<float>(members(c) * static_cast<std::size_t>(sent.front()));
  const auto out = c.memory<float>(sizes.total);
  issue(
      c, [&] { c.group->all_to_all_v(in, out, sent, sizes.counts); },
      [&] { return c.group->all_to_all_v_async(in, out, sent, sizes.counts); });
}

// The same numbers of elements in both forms.
void instead_of_equal_blocks(Cell& c) {
  const std::size_t n = c.block();
  c.expect("tp.all_gather");
  const auto in = c.memory<float>(n, static_cast<float>(c.rank));
  const auto out = c.memory<float>(n * members(c));
  if (c.is_odd())
    c.group->all_gather_v(in, out,
                          std::vector<std::int64_t>(members(c), static_cast<std::int64_t>(n)));
  else
    c.group->all_gather(in, out);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i] != static_cast<float>(i / n)) return c.wrong("fault");
}

void too_many_counts(Cell& c) {
  c.expect("tp.all_to_all_v");
  const auto n = static_cast<std::int64_t>(c.block());
  const std::vector<std::int64_t> counts(members(c) + c.pick(1, 0), n);
  (void)c.group->all_to_all_v(c.memory<float>(c.block() * counts.size()), counts);
}

}  // namespace

Kinds blocks() {
  return {
      {.name = "blocks_all_gather_v", .fault = [](Cell& c) { all_gather_v(c, 0); }},
      {.name = "blocks_gather_v", .fault = [](Cell& c) { gather_v(c, c.odd); }},
      {.name = "blocks_scatter_v", .fault = [](Cell& c) { scatter_v(c, c.odd); }},
      {.name = "blocks_reduce_scatter_v", .fault = [](Cell& c) { reduce_scatter_v(c, 0); }},
      {.name = "blocks_all_to_all_v", .fault = [](Cell& c) { all_to_all_v(c, 0); }},
      {.name = "own_block_all_gather_v", .fault = [](Cell& c) { all_gather_v(c, c.odd); }},
      {.name = "own_block_reduce_scatter_v", .fault = [](Cell& c) { reduce_scatter_v(c, c.odd); }},
      {.name = "all_gather_v_all_gather",
       .expected = Expected::works_or_named,
       .fault = instead_of_equal_blocks},
      {.name = "counts_all_to_all_v", .expected = Expected::usage, .fault = too_many_counts},
  };
}

}  // namespace faults
