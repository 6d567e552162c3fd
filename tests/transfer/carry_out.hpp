// SPDX-License-Identifier: BSD-3-Clause
// Carries out a plan on vectors, and checks that the messages of both sides agree.
#pragma once

#include <doctest/doctest.h>

#include <tuple>

#include "transfer/random_place.hpp"

namespace rankmesh_test {

/// What went wrong; empty if nothing did.
inline std::string carry_out(const rankmesh::TransferPlan& plan, Memory& memory) {
  using rankmesh::TransferMessage;
  using rankmesh::TransferStep;
  const rankmesh::TensorTransfer& move = plan.tensors().front();
  constexpr std::int64_t unset = INT64_MIN;
  Memory target;
  for (const rankmesh::Rank rank : move.to.ranks().to_vector())
    target[rank.value()].assign(static_cast<std::size_t>(move.to.local_count(rank)), unset);

  std::map<std::int64_t, rankmesh::TransferOfRank> parts;
  for (std::int64_t rank = 0; rank < plan.world_size(); ++rank) parts.emplace(rank, plan.of(rank));
  for (const TransferStep step : {TransferStep::first, TransferStep::forward}) {
    // The packed messages, by sender, receiver and whether they are added.
    std::map<std::tuple<std::int64_t, std::int64_t, bool>, std::vector<std::int64_t>> messages;
    for (const auto& [rank, part] : parts) {
      const auto pack = [&](const TransferMessage& message) {
        if (message.step != step) return;
        auto& from = step == TransferStep::first ? memory[rank] : target[rank];
        auto& packed = messages[{rank, message.peer.value(), message.is_added}];
        for (const auto& block : message.blocks)
          block.for_each([&](std::int64_t source, std::int64_t, std::int64_t length) {
            for (std::int64_t i = 0; i < length; ++i)
              packed.push_back(from.at(static_cast<std::size_t>(source + i)));
          });
      };
      for (const auto& message : part[0].copies) pack(message);
      for (const auto& message : part[0].sends) pack(message);
    }
    for (const auto& [rank, part] : parts) {
      std::string wrong;
      const auto unpack = [&, rank = rank](const TransferMessage& message) {
        if (message.step != step) return;
        const auto found = messages.find({message.peer.value(), rank, message.is_added});
        if (found == messages.end()) {
          wrong = "a message is not sent";
          return;
        }
        std::size_t next = 0;
        for (const auto& block : message.blocks)
          block.for_each([&](std::int64_t, std::int64_t to, std::int64_t length) {
            for (std::int64_t i = 0; i < length; ++i, ++next) {
              if (next >= found->second.size()) return;
              auto& element = target[rank].at(static_cast<std::size_t>(to + i));
              if ((element != unset) != message.is_added) wrong = "stored twice, or added first";
              element = message.is_added ? element + found->second[next] : found->second[next];
            }
          });
        if (next != found->second.size() || static_cast<std::int64_t>(next) != message.elements)
          wrong = "the lengths of a message differ";
        messages.erase(found);
      };
      for (const auto& message : part[0].copies) unpack(message);
      for (const auto& message : part[0].receives) unpack(message);
      if (!wrong.empty()) return wrong;
    }
    if (!messages.empty()) return "a message is not received";
  }
  if (target != filled(move.to)) return "the elements differ";
  memory = std::move(target);
  return {};
}

}  // namespace rankmesh_test
