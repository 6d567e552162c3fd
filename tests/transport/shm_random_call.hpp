// SPDX-License-Identifier: BSD-3-Clause
// Operations in shared memory between the threads of one process, with the results that they must
// have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/shm/algorithms.hpp"
#include "transport/shm/engine.hpp"

namespace rankmesh_test {

inline constexpr std::size_t slot_bytes = rankmesh::shm::medium_bytes + 1024;
/// Of symmetric memory, per operation in flight.
inline constexpr std::size_t region_bytes = 262144;
inline constexpr int regions = 8;

/// The memory of all members.
struct SharedMemory {
  explicit SharedMemory(int n);
  int members;
  std::vector<std::byte> area_memory, window_memory;
  std::vector<std::byte*> areas;
  std::byte* base = nullptr;
};

/// An operation of one member.
struct RandomCall {
  rankmesh::Call call;
  rankmesh::shm::Progress progress{};
  bool is_fast = false;  ///< It was complete at once, so there is no record of its progress.
  std::uint64_t number = 0;
  std::vector<std::byte> in, out, expected;
  std::byte* result = nullptr;
  int region = -1;  ///< Of symmetric memory; -1 if it uses ordinary memory.
  std::optional<rankmesh::Blocks> in_blocks, out_blocks;  ///< Of a v-form.

  [[nodiscard]] bool is_complete() const { return is_fast || progress.is_complete(); }
  /// Returns the algorithm that ran; null if there was none.
  [[nodiscard]] const rankmesh::shm::Algorithm* algorithm() const;
  [[nodiscard]] std::string name_of_algorithm() const;
};

/// A member, and its symmetric memory.
struct Place {
  int self, members;
  const rankmesh::SymmetricWindow* window;
};

/// Gives an operation its buffers, their contents and the expected result. The values depend only
/// on the member and on the number of the operation, so each member knows those of the others.
/// @param count  The elements of one block.
void fill(RandomCall& random, const Place& place, rankmesh::DataType type, std::int64_t count,
          bool in_place);
/// Does the same for a v-form. The blocks have gaps and random counts, 0 among them.
/// @param count  The largest count.
void fill_blocks(RandomCall& random, const Place& place, rankmesh::DataType type,
                 std::int64_t count, bool in_place);

}  // namespace rankmesh_test
