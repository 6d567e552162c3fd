// SPDX-License-Identifier: BSD-3-Clause
// The private parts of an expert dispatcher, which the sources of its two halves share: making
// routes (expert_dispatcher.cpp) and moving rows (expert_rows.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "exchange/kernels/expert_rows.hpp"
#include "expert_memory.hpp"
#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/group/detail/group_life.hpp"
#include "route_planner.hpp"

namespace rankmesh::exchange {

struct ExpertRoute::OnDevice {
  std::shared_ptr<const std::int64_t> lists;  // pack, place, unplace and sum, one after the other
};

struct ExpertDispatcher::State {
  GroupCoordinator& group;
  rankmesh::detail::GroupLife life;
  ExpertMap map;
  ExpertDispatcherOptions options;
  // The memory of the packed rows of one step. An operation in flight keeps its own.
  struct StepMemory {
    detail::ScratchMemory outgoing{}, incoming{};
  };
  StepMemory of_blocking{};
  std::vector<std::shared_ptr<StepMemory>> of_async{};
  std::shared_ptr<detail::RouteMemory> routes = std::make_shared<detail::RouteMemory>();

  // The lists of a route in one kind of memory, see ExpertRoute.
  struct Lists {
    const std::int64_t *pack, *place, *unplace, *sum;
  };
  [[nodiscard]] Lists lists(const detail::DispatcherCall& by, const ExpertRoute& route,
                            MemoryKind kind) const;
  [[nodiscard]] std::vector<std::int64_t> received_places(const ExpertRoute& route) const;
  // Returns whether rows are received in their places, and sent back from there.
  [[nodiscard]] bool is_direct(const ExpertRoute& route, const ConstBuffer& rows) const;
  // Returns what messages say about a function that the program has called.
  [[nodiscard]] detail::DispatcherCall call_of(std::string_view function) const {
    return {group, function};
  }
  // As long as the result exists, calls of the group belong to a function of the program.
  [[nodiscard]] rankmesh::detail::CalledBy called_by(
      rankmesh::detail::UserFunction function) const {
    return {rankmesh::detail::GroupAccess::runtime(group), function};
  }
  // Returns memory that no operation in flight uses.
  [[nodiscard]] std::shared_ptr<StepMemory> idle_memory();

  // The packed rows that are sent and received in dispatch(), and the reverse in combine().
  struct Scratch {
    Buffer outgoing, incoming;
  };
  [[nodiscard]] Scratch scratch(StepMemory& memory, const ExpertRoute& route,
                                std::int64_t row_elements, const ConstBuffer& rows,
                                StreamRef stream) const;

  // An exchange of packed rows.
  struct RowExchange {
    ConstBuffer in;
    Buffer out;
    Blocks in_blocks, out_blocks;
    StreamRef stream;
    std::byte* copy = nullptr;  // gets what has arrived in `out`, if it is not null
    [[nodiscard]] Call call() const;
  };
  // An exchange, and what is done with the rows when they have arrived.
  template <class RowWork>
  struct RowStep {
    RowExchange exchange;
    RowWork finish;
  };
  // These functions pack the rows.
  [[nodiscard]] RowStep<device::GatherRows> dispatch_step(
      const detail::DispatcherCall& by, StepMemory& memory, const ExpertRoute& route,
      const ConstBuffer& tokens, bool is_per_choice, const Buffer& rows, StreamRef stream) const;
  [[nodiscard]] RowStep<device::WeightedSum> combine_step(
      const detail::DispatcherCall& by, StepMemory& memory, const ExpertRoute& route,
      const ConstBuffer& rows, const ConstBuffer& weights, const Buffer& out,
      StreamRef stream) const;
  [[nodiscard]] RowExchange send_back(const detail::DispatcherCall& by, StepMemory& memory,
                                      const ExpertRoute& route, const ConstBuffer& rows,
                                      std::int64_t row_elements, StreamRef stream) const;
  // Exchanges the packed rows, and puts those that have arrived in their places.
  template <class RowWork>
  void run(const RowStep<RowWork>& step);
};

}  // namespace rankmesh::exchange
