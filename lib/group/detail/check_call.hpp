// The contract of every operation, checked before a transport sees it.
#pragma once

#include <string_view>

#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Highest tag of the caller; the tags above belong to rankmesh.
inline constexpr int max_tag = 16383;

/// @throws UsageError naming the group, the operation, what is wrong and what would be right.
void check_call(const Call& call, std::string_view group, RankInGroup self, std::int64_t size);

inline bool is_on_device(const Call& call) {
  return call.in.kind == MemoryKind::device || call.out.kind == MemoryKind::device;
}

}  // namespace rankmesh::detail
