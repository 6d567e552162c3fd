// One operation on one group, timed and checked; what bench and tune stand on. Built only with MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "meshinfo.hpp"
#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/rankmesh.hpp"

namespace meshinfo {

struct Work {
  rankmesh::Operation operation = rankmesh::Operation::all_reduce;
  rankmesh::DataType type = rankmesh::DataType::float32;
  rankmesh::ReduceOp reduction = rankmesh::ReduceOp::sum;
  rankmesh::MemoryKind memory = rankmesh::MemoryKind::host;
  std::int64_t bytes = 8;  // of the largest buffer of a rank; rounded to whole blocks
  std::int64_t root = 0;
};

// The output of rank 0, null on the others. Collective over the world: where rank 0 cannot open it,
// all throw.
std::unique_ptr<Output> open_output(const std::string& path);

// Buffers of a rank, of the largest size that is measured.
class Measure {
 public:
  // `group` is null on ranks that the name leaves out: they only take part in the reductions.
  Measure(rankmesh::GroupCoordinator* group, std::int64_t size, std::int64_t most_bytes,
          rankmesh::MemoryKind memory);

  // Elements of a block, and bytes of the largest buffer: what the work comes to on a group of that
  // size.
  struct Size {
    std::int64_t count, bytes;
  };
  static Size size_of(const Work& work, std::int64_t group_size);
  // Whether the operation has such a form: broadcast works in place alone, others never do.
  static bool has_form(const Work& work, bool in_place);

  // Seconds per call, the longest of all ranks. Collective over the world.
  double time(const Work& work, bool in_place, std::int64_t warm_up, std::int64_t repeats);
  // Elements that differ from a plain computation, on all ranks together. Collective over the
  // world.
  std::int64_t wrong(const Work& work, bool in_place);

 private:
  [[nodiscard]] rankmesh::Call call_of(const Work& work, bool in_place);
  void finish();
  [[nodiscard]] std::byte* memory(int which);

  rankmesh::GroupCoordinator* group_;
  std::int64_t size_;
  rankmesh::MemoryKind kind_;
  std::vector<std::byte> host_[2];
  rankmesh::device::DeviceBuffer<std::uint8_t> device_[2];
};

}  // namespace meshinfo
