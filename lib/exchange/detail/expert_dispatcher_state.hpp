// SPDX-License-Identifier: BSD-3-Clause
// The private parts of an expert dispatcher, which the sources of its two halves share: making
// routes (expert_dispatcher.cpp) and moving rows (expert_rows.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "expert_memory.hpp"
#include "rankmesh/exchange/expert_dispatcher.hpp"

namespace rankmesh::exchange {

struct ExpertRoute::OnDevice {
  std::shared_ptr<const std::int64_t> lists;  // pack, place, unplace and sum, one after the other
};

struct ExpertDispatcher::State {
  GroupCoordinator& group;
  ExpertMap map;
  ExpertDispatcherOptions options;
  detail::ScratchMemory outgoing{}, incoming{};
  detail::StagingMemory staging{};
  std::shared_ptr<detail::RouteMemory> routes = std::make_shared<detail::RouteMemory>();

  // The lists of a route in one kind of memory, see ExpertRoute.
  struct Lists {
    const std::int64_t *pack, *place, *unplace, *sum;
  };
  [[nodiscard]] Lists lists(const ExpertRoute& route, MemoryKind kind) const;
  [[nodiscard]] std::vector<std::int64_t> received_places(const ExpertRoute& route) const;

  // The packed rows that are sent and received in dispatch(), and the reverse in combine().
  struct Scratch {
    Buffer outgoing, incoming;
  };
  [[nodiscard]] Scratch scratch(const ExpertRoute& route, std::int64_t row_elements,
                                const ConstBuffer& like, StreamRef stream);

  [[nodiscard]] Buffer send_back(const ExpertRoute& route, const ConstBuffer& rows,
                                 std::int64_t row_elements, StreamRef stream);

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
