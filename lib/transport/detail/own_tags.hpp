// SPDX-License-Identifier: BSD-3-Clause
// The tags of the messages with which members compare their calls.
#pragma once

namespace rankmesh::detail {

// Above the tags of the program (see max_tag), below those of control queues.
inline constexpr int message_header_tag = 16384;  ///< See MessageComparison.
inline constexpr int closing_tag = 16385;         ///< See CallExchange.

}  // namespace rankmesh::detail
