// SPDX-License-Identifier: BSD-3-Clause
// The memory that the calls of an open batch use.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// The memory that one member reads and writes in a call. A range is a begin and an end.
struct MemoryUse {
  using Range = std::pair<const std::byte*, const std::byte*>;
  std::vector<Range> reads, writes;

  /// @param self, size  The rank of this process in the group, and the size of the group.
  MemoryUse(const Call& call, RankInGroup self, std::int64_t size);
};

/// Remembers which call of a batch uses which memory. The calls of a batch have no order, so a call
/// must not write what another call reads or writes.
class BatchMemory {
 public:
  /// Adds the memory of call `number`. If an earlier call conflicts with it, returns the number of
  /// that call and adds nothing. Cost: a search in a map for each range.
  [[nodiscard]] std::optional<std::size_t> add(const MemoryUse& use, std::size_t number);
  void clear();

 private:
  // Ranges that do not overlap, by their begin.
  class Ranges {
   public:
    [[nodiscard]] std::optional<std::size_t> find(const MemoryUse::Range& range) const;
    // Adds what is not covered yet.
    void add(MemoryUse::Range range, std::size_t number);
    void clear() { map_.clear(); }

   private:
    struct UsedMemory {
      const std::byte* end;
      std::size_t number;  // of the first call that uses it
    };
    std::map<const std::byte*, UsedMemory> map_;
  };
  Ranges read_, written_;
};

}  // namespace rankmesh::detail
