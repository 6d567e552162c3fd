// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/stage_exchange.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/detail/overlap.hpp"
#include "group/detail/fused_calls.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::exchange {
namespace {

using rankmesh::detail::GroupAccess;

constexpr int highest_tag = 16382;  // the backward direction uses the tag above

bool is_on_device(const StageMove& move) {
  return (move.is_sent ? move.in.kind : move.out.kind) == MemoryKind::device;
}

std::string_view name_of(const StageMove& move) {
  if (move.is_sent) return move.is_forward ? "to_next" : "to_prev";
  return move.is_forward ? "from_prev" : "from_next";
}

}  // namespace

StageExchange::StageExchange(GroupCoordinator& stages, StageExchangeOptions options)
    : life_{stages}, stages_{stages}, options_{options} {
  if (options.tag < 0 || options.tag > highest_tag)
    throw UsageError{
        fmt::format("the tag of a stage exchange is {}", options.tag),
        fmt::format("use a tag from 0 to {}; the exchange uses this tag and the next one",
                    highest_tag)};
}

bool StageExchange::leaves_pipeline(const StageMove& move) const {
  if (options_.ring) return false;
  const bool is_at_next = move.is_forward == move.is_sent;
  return is_at_next ? stages_.is_last() : stages_.is_first();
}

Call StageExchange::call_of(const StageMove& move, StreamRef stream) const {
  const Peer peer = move.is_forward == move.is_sent ? Peer{next} : Peer{prev};
  const RankInGroup other = peer.resolve(stages_.rank_in_group(), stages_.size());
  Call call{.operation = move.is_sent ? Operation::send : Operation::recv,
            .tag = options_.tag + (move.is_forward ? 0 : 1),
            .stream = stream};
  if (move.is_sent) {
    call.in = move.in;
    call.destination = other;
  } else {
    call.out = move.out;
    call.source = other;
  }
  return call;
}

// A message may arrive before another one is sent, so their buffers must be separate.
void StageExchange::require_separate(std::span<const StageMove> moves) const {
  const auto memory_of = [](const StageMove& move) {
    return move.is_sent ? move.in : move.out.as_input();
  };
  for (std::size_t i = 0; i < moves.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      if ((moves[i].is_sent && moves[k].is_sent) || leaves_pipeline(moves[i]) ||
          leaves_pipeline(moves[k]) ||
          !rankmesh::detail::overlap(memory_of(moves[i]), memory_of(moves[k])))
        continue;
      throw UsageError{fmt::format("{} and {} of '{}' overlap", name_of(moves[k]),
                                   name_of(moves[i]), stages_.name()),
                       "receive into memory of its own"};
    }
}

WorkList StageExchange::start(std::span<const StageMove> moves, StreamRef stream) {
  life_.require("StageExchange");
  require_separate(moves);
  WorkList works;
  // Receives first, so that messages that arrive find their buffers.
  for (const bool is_sent : {false, true})
    for (const StageMove& move : moves)
      if (move.is_sent == is_sent && !is_on_device(move) && !leaves_pipeline(move))
        works.add(GroupAccess::start(stages_, call_of(move, stream)));

  const auto on_device = [&](const StageMove& move) {
    return is_on_device(move) && !leaves_pipeline(move);
  };
  if (std::ranges::none_of(moves, on_device)) return works;
  rankmesh::detail::FusedCalls together{stages_};
  if (stages_.size() == 1) {
    copy_on_device(moves, stream);
    together.end();
    return works;
  }
  // NCCL matches the sends and receives of two ranks by their order. In a ring of two stages, the
  // next stage is also the previous one, so the order of both directions must be fixed.
  for (const bool is_forward : {true, false})
    for (const StageMove& move : moves)
      if (move.is_forward == is_forward && on_device(move))
        GroupAccess::run(stages_, call_of(move, stream));
  together.end();
  return works;
}

void StageExchange::run(std::span<const StageMove> moves, StreamRef stream) {
  life_.require("StageExchange");
  if (!std::ranges::all_of(moves, is_on_device))
    GroupAccess::require_no_batch(stages_, "StageExchange::run");
  start(moves, stream).wait();
}

// In a ring of one stage, what is sent in a direction is received in the same direction.
void StageExchange::copy_on_device(std::span<const StageMove> moves, StreamRef stream) {
  for (const bool is_forward : {true, false}) {
    std::vector<Call> sends, receives;
    for (const StageMove& move : moves)
      if (move.is_forward == is_forward && is_on_device(move))
        (move.is_sent ? sends : receives).push_back(call_of(move, stream));
    if (sends.size() != receives.size())
      throw UsageError{
          fmt::format("the one stage of '{}' sends {} buffers of device memory {} and receives {}",
                      stages_.name(), sends.size(), is_forward ? "forward" : "backward",
                      receives.size()),
          "pass the sends of a stage to itself and their receives to the same call"};
    for (std::size_t k = 0; k < sends.size(); ++k) {
      Call both = sends[k];
      both.operation = Operation::send_recv;
      both.out = receives[k].out;
      both.source = receives[k].source;
      GroupAccess::run(stages_, both);
    }
  }
}

}  // namespace rankmesh::exchange
