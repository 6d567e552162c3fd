// SPDX-License-Identifier: BSD-3-Clause
// Records the calls that a transport runs.
#pragma once

#include <cstdint>

#include "call_descriptor.hpp"
#include "rankmesh/transport/waiter.hpp"
#include "record/detail/recorded_call.hpp"

namespace rankmesh::detail {

/// Records a call that begins now.
/// @param number  The number of a collective in its group; 0 for messages.
inline RecordedCall record_call(const Waiter& waiter, const Call& call, std::uint64_t number,
                                record::Carrier carrier) {
  if (waiter.recording == nullptr || waiter.recording->record == nullptr) return {};
  return {*waiter.recording, describe_completely(call), number, carrier, record::State::issued};
}

}  // namespace rankmesh::detail
