// SPDX-License-Identifier: BSD-3-Clause
// The private parts of an expert dispatcher, which the sources of its two halves share: making
// routes (expert_dispatcher.cpp) and moving rows (expert_rows.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/exchange/expert_dispatcher.hpp"

namespace rankmesh::exchange {

struct ExpertRoute::OnDevice {
  device::DeviceBuffer<std::int64_t> lists;  // pack, place, unplace and sum, one after the other
};

namespace detail {

// Memory that only grows, so that later steps do not allocate.
class ScratchMemory {
 public:
  std::byte* get(std::int64_t bytes, MemoryKind kind) {
    const auto size = static_cast<std::size_t>(bytes);
    if (kind == MemoryKind::device) {
      if (on_device_.size() < size) {
        on_device_ = {};  // frees the old memory first: there may not be enough for both
        on_device_ = device::DeviceBuffer<std::byte>{size};
      }
      return on_device_.data();
    }
    if (size_ < size) {
      on_host_.reset();
      on_host_ = std::make_unique_for_overwrite<std::byte[]>(size);
      size_ = size;
    }
    return on_host_.get();
  }

 private:
  std::unique_ptr<std::byte[]> on_host_;
  std::size_t size_ = 0;
  device::DeviceBuffer<std::byte> on_device_;
};

}  // namespace detail

struct ExpertDispatcher::State {
  GroupCoordinator& group;
  ExpertMap map;
  ExpertDispatcherOptions options;
  detail::ScratchMemory outgoing, incoming;

  // The lists of a route in one kind of memory, see ExpertRoute.
  struct Lists {
    const std::int64_t *pack, *place, *unplace, *sum;
  };
  [[nodiscard]] Lists lists(const ExpertRoute& route, MemoryKind kind) const;
  [[nodiscard]] std::vector<std::int64_t> received_places(const ExpertRoute& route) const;

  // One side of an exchange: per rank, the number of rows and the first row in the buffer.
  template <class AnyBuffer>
  struct RowBlocks {
    AnyBuffer buffer;
    const std::vector<std::int64_t>& counts;
    std::vector<std::int64_t> places;
  };
  void exchange(const RowBlocks<ConstBuffer>& in, const RowBlocks<Buffer>& out,
                std::int64_t row_elements, StreamRef stream);
};

}  // namespace rankmesh::exchange
