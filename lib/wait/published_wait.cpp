// SPDX-License-Identifier: BSD-3-Clause
#include "detail/published_wait.hpp"

#include <string>

#include <fmt/format.h>

#include "base/detail/private_api.hpp"
#include "detail/open_parts.hpp"
#include "mpi/detail/returned_errors.hpp"
#include "rankmesh/base/hash.hpp"

namespace rankmesh::detail {
namespace {

// Several threads may wait in several meshes. In this case, a rank that waits in one mesh may still
// make calls of another mesh.
bool also_blocks(const NodeBoard& board, const NodeBoard* own) {
  return &board == own || mpi::has_one_thread();
}

}  // namespace

RANKMESH_PRIVATE_API PublishedWait::PublishedWait(NodeBoard* own, const record::Wait& wait,
                                                  const RanksElsewhere& ranks)
    : own_{own} {
  record::Wait elsewhere{.text = wait.text + std::string{record::in_another_mesh},
                         .point = hash_bytes(fmt::format("{} elsewhere", wait.point)).low};
  OpenParts<NodeBoard>::instance().for_each([&](NodeBoard& board) {
    const auto known = ranks.find(&board);
    elsewhere.ranks = known == ranks.end() ? RankSet{} : known->second;
    board.publish(this, &board == own ? wait : elsewhere, &board == own);
  });
}

RANKMESH_PRIVATE_API PublishedWait::~PublishedWait() {
  // A board may have been closed meanwhile, by another thread.
  OpenParts<NodeBoard>::instance().for_each([&](NodeBoard& board) {
    if (has_needs_ && also_blocks(board, own_)) board.own().needs.write({});
    board.end_wait(this);
  });
}

void PublishedWait::need(const std::vector<Rank>& ranks) {
  has_needs_ = true;
  OpenParts<NodeBoard>::instance().for_each([&](NodeBoard& board) {
    if (!also_blocks(board, own_)) return;
    Needs needs;
    if (&board == own_) needs.set_own_mesh();
    for (const Rank rank : ranks)
      if (const auto slot = own_->index_of(rank))
        if (const auto there = &board == own_ ? slot : board.index_of(own_->area(*slot).identity()))
          needs.add(*there);
    board.own().needs.write(needs);
  });
}

}  // namespace rankmesh::detail
