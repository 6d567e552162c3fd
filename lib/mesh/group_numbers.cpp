// SPDX-License-Identifier: BSD-3-Clause
#include "detail/group_numbers.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace rankmesh::detail {
namespace {

constexpr std::int64_t bits = 64;
constexpr auto most_bits =
    static_cast<std::int64_t>(std::tuple_size_v<decltype(GroupOffer::used)>) * bits;

}  // namespace

GroupOffer GroupNumbers::offer() const {
  GroupOffer offer;
  std::int64_t next = first_ + most_bits;
  for (const std::int64_t number : used_) {
    const std::int64_t bit = number - first_;
    if (bit < most_bits)
      offer.used[static_cast<std::size_t>(bit / bits)] |= std::uint64_t{1} << (bit % bits);
    next = std::max(next, number + 1);
  }
  offer.next = static_cast<std::uint64_t>(next);
  return offer;
}

std::int64_t GroupNumbers::take(std::span<const GroupOffer> others) {
  GroupOffer all = offer();
  for (const GroupOffer& other : others) {
    all.next = std::max(all.next, other.next);
    for (std::size_t word = 0; word < all.used.size(); ++word) all.used[word] |= other.used[word];
  }
  auto number = static_cast<std::int64_t>(all.next);
  for (std::size_t word = all.used.size(); word-- > 0;)
    if (const int bit = std::countr_one(all.used[word]); bit < bits)
      number = first_ + static_cast<std::int64_t>(word) * bits + bit;
  used_.insert(number);
  return number;
}

}  // namespace rankmesh::detail
