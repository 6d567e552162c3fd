// The contract of every operation, checked before a transport sees it.
#pragma once

#include <cstdint>
#include <string_view>

#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Highest tag of the caller; the tags above belong to rankmesh.
inline constexpr int max_tag = 16383;

/// @throws UsageError naming the group, the operation, what is wrong and what would be right.
void check_call(const Call& call, std::string_view group, RankInGroup self, std::int64_t size);

/// Whether nothing is wrong with a call on host memory; false where check_call() must look. A few
/// instructions.
[[gnu::always_inline]] inline bool is_plainly_right(const Call& call, RankInGroup self, std::int64_t size) {
  if (!call.is_plain()) return false;
  const auto is_member = [&](RankInGroup rank) {
    return static_cast<std::uint64_t>(rank.value()) < static_cast<std::uint64_t>(size);
  };
  const ConstBuffer& in = call.in;
  const Buffer& out = call.out;
  // The output is another stretch of memory, or begins `offset` elements before the input.
  const auto is_apart = [&](std::int64_t offset) {
    const std::int64_t width = static_cast<std::int64_t>(size_of(in.type));
    const auto a = reinterpret_cast<std::uintptr_t>(in.data);
    const auto b = reinterpret_cast<std::uintptr_t>(out.data);
    return (offset >= 0 && a == b + static_cast<std::uintptr_t>(offset * width)) ||
           a + static_cast<std::uintptr_t>(in.count * width) <= b ||
           b + static_cast<std::uintptr_t>(out.count * width) <= a;
  };
  const auto is_alike = [&] { return in.type == out.type; };
  const bool is_tag = static_cast<unsigned>(call.tag) <= static_cast<unsigned>(max_tag);
  switch (call.operation) {
    case Operation::barrier:
      return true;
    case Operation::broadcast:
      return is_member(call.root);
    case Operation::all_reduce:
      return is_alike() && in.count == out.count && is_apart(0);
    case Operation::reduce:
      return is_alike() && is_member(call.root) &&
             (call.root != self || (in.count == out.count && is_apart(0)));
    case Operation::all_gather:
      return is_alike() && out.count == size * in.count && is_apart(self.value() * in.count);
    case Operation::gather:
      return is_alike() && is_member(call.root) &&
             (call.root != self || (out.count == size * in.count && is_apart(self.value() * in.count)));
    case Operation::reduce_scatter:
      return is_alike() && in.count == size * out.count && is_apart(-1);
    case Operation::send:
      return is_member(call.destination) && call.destination != self && is_tag;
    case Operation::recv:
      return is_member(call.source) && call.source != self && is_tag;
    case Operation::send_recv:
      return is_alike() && is_member(call.destination) && is_member(call.source) && is_tag &&
             call.destination != self && call.source != self && is_apart(-1);
    case Operation::scatter:     // in place is where in holds out
    case Operation::all_to_all:  // divides
      return false;
  }
  return false;
}

inline bool is_on_device(const Call& call) {
  return call.in.kind == MemoryKind::device || call.out.kind == MemoryKind::device;
}

}  // namespace rankmesh::detail
