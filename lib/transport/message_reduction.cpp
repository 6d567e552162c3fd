// SPDX-License-Identifier: BSD-3-Clause
// Reductions as messages: each member sends to every other member the part that this other member
// reduces, and combines the parts that it receives in group order. The results are then sent to the
// members that need them. While a piece is combined, the contributions to the next piece are in
// flight.
#include <algorithm>
#include <cstring>
#include <utility>

#include "detail/message_collective.hpp"
#include "detail/reduce_kernels.hpp"
#include "rankmesh/layout/slice.hpp"

namespace rankmesh::detail {

// Either one member reduces all elements, or each member reduces a share.
std::vector<MessageCollective::Share> MessageCollective::shares_of_reduction(
    std::int64_t owner) const {
  const std::int64_t unit = call_.user == nullptr
                                ? static_cast<std::int64_t>(size_of(call_.in.type))
                                : static_cast<std::int64_t>(call_.user->element_bytes());
  const std::int64_t count = call_.in.bytes() / unit;
  // With two members, one sends all elements to the root, and nothing has to be sent back.
  const bool is_rooted_pair = size_ == 2 && call_.operation == Operation::reduce;
  const bool is_divided = call_.in.bytes() > largest_undivided && !is_rooted_pair;
  std::vector<Share> shares(static_cast<std::size_t>(size_));
  for (std::int64_t k = 0; k < size_ && is_divided; ++k) {
    const Slice slice = Slice::of(count, size_, k);
    shares[static_cast<std::size_t>(k)] = {slice.begin(), slice.size()};
  }
  if (!is_divided) shares[static_cast<std::size_t>(owner)] = {0, count};
  return shares;
}

std::vector<MessageCollective::Share> MessageCollective::shares_of_blocks() const {
  const std::int64_t unit =
      call_.user == nullptr ? 1 : static_cast<std::int64_t>(call_.user->element_bytes());
  std::vector<Share> shares;
  for (std::int64_t k = 0; k < size_; ++k) {
    const bool is_v = call_.in_blocks != nullptr;
    const auto i = static_cast<std::size_t>(k);
    const std::int64_t begin = is_v ? call_.in_blocks->displacements()[i] : k * call_.out.count;
    const std::int64_t count = is_v ? call_.in_blocks->counts()[i] : call_.out.count;
    shares.push_back({begin / unit, count / unit});
  }
  return shares;
}

void MessageCollective::begin_reduction(Result result, std::vector<Share> shares) {
  shares_ = std::move(shares);
  unit_ = call_.user == nullptr ? static_cast<std::int64_t>(size_of(call_.in.type))
                                : static_cast<std::int64_t>(call_.user->element_bytes());
  steps_ = pieces() + 1;
  const Share own = piece_of(self_, 0);
  // For each member, a piece that is being combined, and a piece that is in flight.
  reserve_scratch((steps_ > 2 ? 2 : 1) * size_ * own.count * unit_);
  const Share& share = shares_[static_cast<std::size_t>(self_)];
  if (result == Result::of_own_share)
    result_place_ = call_.out.data;
  else if (result == Result::everywhere || is_root())
    result_place_ = call_.out.data + share.begin * unit_;
  else
    result_ =
        std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(own.count * unit_));
  step_ = [this, result](std::int64_t step) {
    if (step + 1 < steps_) post_contributions(step);
    if (step == 0) return;
    combine(step - 1);
    post_results(result, step - 1);
  };
}

std::byte* MessageCollective::contribution(std::int64_t member, std::int64_t piece) {
  const std::int64_t bytes = piece_of(self_, 0).count * unit_;
  return scratch_.data.get() + ((piece % 2) * size_ + member) * bytes;
}

void MessageCollective::post_contributions(std::int64_t piece) {
  const Share own = piece_of(self_, piece);
  for_each_other([&](std::int64_t k) {
    if (own.count > 0) receive(k, contribution(k, piece), own.count * unit_);
  });
  for_each_other([&](std::int64_t k) {
    const Share theirs = piece_of(k, piece);
    if (theirs.count > 0) send(k, call_.in.data + theirs.begin * unit_, theirs.count * unit_);
  });
}

void MessageCollective::combine(std::int64_t piece) {
  const Share own = piece_of(self_, piece);
  if (own.count <= 0) return;
  const std::int64_t place = own.begin - shares_[static_cast<std::size_t>(self_)].begin;
  std::byte* const to = result_place_ == nullptr ? result_.get() : result_place_ + place * unit_;
  if (call_.user != nullptr) return combine_by_user(to, piece, own.count);
  std::vector<const std::byte*> sources;
  for (std::int64_t k = 0; k < size_; ++k)
    sources.push_back(k == self_ ? call_.in.data + own.begin * unit_ : contribution(k, piece));
  reduce(call_.in.type, call_.reduction, to, sources.data(), static_cast<int>(size_), own.count);
}

// The function of the program combines from left to right: the right operand gets the result.
void MessageCollective::combine_by_user(std::byte* to, std::int64_t piece, std::int64_t count) {
  const Share own = piece_of(self_, piece);
  const auto bytes = static_cast<std::size_t>(count * unit_);
  std::memcpy(contribution(self_, piece), call_.in.data + own.begin * unit_, bytes);
  for (std::int64_t k = 1; k < size_; ++k)
    call_.user->combine(contribution(k - 1, piece), contribution(k, piece), count);
  std::memcpy(to, contribution(size_ - 1, piece), bytes);
}

void MessageCollective::post_results(Result result, std::int64_t piece) {
  if (result == Result::of_own_share) return;
  const Share own = piece_of(self_, piece);
  const bool gets_all = result == Result::everywhere || is_root();
  for_each_other([&](std::int64_t k) {
    const Share theirs = piece_of(k, piece);
    if (gets_all && theirs.count > 0)
      receive(k, call_.out.data + theirs.begin * unit_, theirs.count * unit_);
  });
  const std::byte* const from =
      result_place_ == nullptr ? result_.get() : call_.out.data + own.begin * unit_;
  for_each_other([&](std::int64_t k) {
    const bool needs = result == Result::everywhere || k == call_.root.value();
    if (needs && own.count > 0) send(k, from, own.count * unit_);
  });
}

}  // namespace rankmesh::detail
