// SPDX-License-Identifier: BSD-3-Clause
#include "detail/message_ledger.hpp"

#include <array>

#include "base/detail/private_api.hpp"
#include "rankmesh/base/hash.hpp"

namespace rankmesh::detail {

RANKMESH_PRIVATE_API void MessageLedger::add_of_queue(std::int64_t queue, RankInGroup writer,
                                                      RankInGroup self, std::int64_t size) {
  if (self != writer) {
    ++counts_[{writer.value(), queues + queue}].received;
    return;
  }
  for (std::int64_t k = 0; k < size; ++k)
    if (k != writer.value()) ++counts_[{k, queues + queue}].sent;
}

std::vector<MessageLedger::MessageCounts> MessageLedger::entries(std::uint64_t group,
                                                                 RankInGroup self) const {
  std::vector<MessageCounts> entries;
  for (const auto& [key, count] : counts_) {
    Count sent = count;
    sent.received = 0;
    if (count.sent != 0) entries.push_back({group, self.value(), key.peer, key.tag, sent});
    if (count.received != 0)
      entries.push_back({group, key.peer, self.value(), key.tag, {.received = count.received}});
  }
  return entries;
}

std::uint64_t MessageLedger::balance(std::uint64_t group, RankInGroup self) const {
  std::uint64_t sum = 0;
  for (const MessageCounts& entry : entries(group, self)) {
    const std::array words{static_cast<std::int64_t>(group), entry.from, entry.to, entry.tag};
    const std::uint64_t weight =
        hash_bytes({reinterpret_cast<const char*>(words.data()), sizeof words}).low;
    sum += weight * static_cast<std::uint64_t>(entry.count.sent - entry.count.received);
  }
  return sum;
}

}  // namespace rankmesh::detail
