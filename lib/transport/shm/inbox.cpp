// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/inbox.hpp"

#include <algorithm>
#include <utility>

namespace rankmesh::shm {

std::optional<Inbox::Early> Inbox::take_early(std::int32_t tag) {
  const auto found =
      std::ranges::find_if(early_, [&](const Early& e) { return e.envelope.tag == tag; });
  if (found == early_.end()) return std::nullopt;
  Early early = std::move(*found);
  early_.erase(found);
  return early;
}

Message* Inbox::take_receive(std::int32_t tag) {
  const auto found =
      std::ranges::find_if(receives_, [&](const Message* m) { return m->envelope.tag == tag; });
  if (found == receives_.end()) return nullptr;
  Message* const receive = *found;
  receives_.erase(found);
  return receive;
}

std::optional<std::int64_t> Inbox::arrived(std::int32_t tag) const {
  const auto found =
      std::ranges::find_if(early_, [&](const Early& e) { return e.envelope.tag == tag; });
  if (found == early_.end()) return std::nullopt;
  return static_cast<std::int64_t>(found->envelope.bytes());
}

}  // namespace rankmesh::shm
