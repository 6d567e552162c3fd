// SPDX-License-Identifier: BSD-3-Clause
// Ring attention (Liu, Zaharia, Abbeel 2023): each member of cp has the queries of its own tokens,
// and the keys and values of all members pass by.
//
// In step s, a member has the block of the member s places before it. While it computes, the block
// is already on its way to the next member. Blocks of later tokens are passed on without use,
// because no token sees a later one. Member 0 therefore computes least. (Programs for long contexts
// give each member an early and a late block instead.)
#pragma once

#include <utility>

#include "groups.hpp"
#include "heads.hpp"

/// Calls use(block, keys and values) for the blocks of all members. They arrive one after another.
template <class Use>
void for_each_block(Group& cp, Values block, Use&& use) {
  const std::int64_t members = cp.size(), self = cp.rank_in_group().value();
  Values arriving(block.size());
  for (std::int64_t step = 0; step < members; ++step) {
    const bool is_last = step + 1 == members;
    Work transfer;
    if (!is_last) transfer = cp.send_recv_async(block, arriving, rankmesh::next, rankmesh::prev);
    use((self - step + members) % members, In{block});
    transfer.wait();
    std::swap(block, arriving);
  }
}

/// Attends to the tokens of all members. `kv`: the keys of this rank's tokens, then their values.
inline Attended ring_forward(Group& cp, const Heads& heads, In q, const Values& kv) {
  const std::int64_t self = cp.rank_in_group().value(), half = heads.elements();
  Attended result{heads};
  for_each_block(cp, kv, [&](std::int64_t from, In block) {
    if (from <= self)
      attend(heads, q, block.first(half), block.subspan(half), from == self, result);
  });
  finish(heads, result);
  return result;
}

/// Returns the gradients of the keys and values, and adds to those of the queries.
///
/// The gradient of a block follows it around the ring, one step later, and gathers what each member
/// contributes. In the last step it reaches the member of the block.
inline Values ring_backward(Group& cp, const Heads& heads, In q, const Values& kv,
                            const Attended& done, In d_out, Out dq) {
  const std::int64_t members = cp.size(), self = cp.rank_in_group().value(),
                     half = heads.elements();
  Values own(kv.size()), passing(kv.size()), arriving(kv.size());
  for_each_block(cp, kv, [&](std::int64_t from, In block) {
    const Out gradient{from == self ? own : passing};
    if (from <= self)
      attend_backward(heads, q, block.first(half), block.subspan(half), from == self, done, d_out,
                      dq, gradient.first(half), gradient.subspan(half));
    if (from == self) return;
    cp.send_recv(passing, arriving, rankmesh::next, rankmesh::prev, 1);
    std::swap(passing, arriving);
  });
  if (members > 1) add(own, passing);
  return own;
}
