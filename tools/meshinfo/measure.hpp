// SPDX-License-Identifier: BSD-3-Clause
// Times and checks operations on one group, for bench and tune. Built only with MPI.
#pragma once

#include <cstdint>
#include <vector>

#include "bench_case.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/rankmesh.hpp"

namespace meshinfo {

// The buffers of a rank, large enough for the largest case.
class Measure {
 public:
  // `group` is null on ranks that have no group of this name. These ranks take part only in the
  // reductions.
  Measure(rankmesh::GroupCoordinator* group, std::int64_t group_size, std::int64_t most_bytes,
          rankmesh::MemoryKind memory);

  // Returns seconds per call, the longest of all ranks. Collective over the world.
  double time(const BenchCase& work, bool in_place, std::int64_t warm_up, std::int64_t repeats);
  // Returns the wrong elements on all ranks together. Collective over the world.
  std::int64_t wrong(const BenchCase& work, bool in_place);

 private:
  void run(const BenchCase& work, bool in_place, std::int64_t times);
  [[nodiscard]] std::int64_t wrong_here(const BenchCase& work, bool in_place);
  [[nodiscard]] std::byte* memory(const Part& part, std::size_t width);

  rankmesh::GroupCoordinator* group_;
  std::int64_t group_size_;
  rankmesh::MemoryKind kind_;
  rankmesh::StreamRef stream_{};  // of device memory
  std::vector<std::byte> host_[2];
  rankmesh::device::DeviceBuffer<std::uint8_t> device_[2];
};

}  // namespace meshinfo
