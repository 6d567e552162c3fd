// SPDX-License-Identifier: BSD-3-Clause
#include "detail/batch_memory.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace rankmesh::detail {
namespace {

void append(std::vector<MemoryUse::Range>& ranges, const ConstBuffer& buffer) {
  if (buffer.count > 0 && buffer.data != nullptr)
    ranges.emplace_back(buffer.data, buffer.data + buffer.bytes());
}

void append(std::vector<MemoryUse::Range>& ranges, const ConstBuffer& buffer, const Blocks* blocks,
            std::int64_t members) {
  if (blocks == nullptr) return append(ranges, buffer);
  for (std::int64_t k = 0; k < members; ++k)
    append(ranges, block_of(buffer, blocks, static_cast<std::size_t>(k)));
}

}  // namespace

MemoryUse::MemoryUse(const Call& call, RankInGroup self, std::int64_t size) {
  const Operation operation = call.operation;
  const bool at_root = call.root == self;
  if (operation == Operation::broadcast) {
    append(at_root ? reads : writes, call.out.as_input());
    return;
  }
  if (has_input(operation, at_root)) append(reads, call.in, call.in_blocks, size);
  if (has_output(operation, at_root)) append(writes, call.out.as_input(), call.out_blocks, size);
}

std::optional<std::size_t> BatchMemory::Ranges::find(const MemoryUse::Range& range) const {
  const std::less<const std::byte*> before;
  auto next = map_.upper_bound(range.first);
  if (next != map_.end() && before(next->first, range.second)) return next->second.number;
  if (next == map_.begin()) return std::nullopt;
  const UsedMemory& previous = std::prev(next)->second;
  return before(range.first, previous.end) ? std::optional{previous.number} : std::nullopt;
}

void BatchMemory::Ranges::add(MemoryUse::Range range, std::size_t number) {
  const std::less<const std::byte*> before;
  auto [begin, end] = range;
  while (before(begin, end)) {
    const auto next = map_.upper_bound(begin);
    if (next != map_.begin() && before(begin, std::prev(next)->second.end)) {
      begin = std::prev(next)->second.end;
      continue;
    }
    const std::byte* stop = next == map_.end() ? end : std::min(end, next->first, before);
    map_.emplace_hint(next, begin, UsedMemory{stop, number});
    begin = stop;
  }
}

std::optional<std::size_t> BatchMemory::add(const MemoryUse& use, std::size_t number) {
  for (const MemoryUse::Range& range : use.writes) {
    if (const auto other = written_.find(range)) return other;
    if (const auto other = read_.find(range)) return other;
  }
  for (const MemoryUse::Range& range : use.reads)
    if (const auto other = written_.find(range)) return other;
  for (const MemoryUse::Range& range : use.writes) written_.add(range, number);
  for (const MemoryUse::Range& range : use.reads) read_.add(range, number);
  return std::nullopt;
}

void BatchMemory::clear() {
  read_.clear();
  written_.clear();
}

}  // namespace rankmesh::detail
