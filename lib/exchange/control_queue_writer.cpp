// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/control_queue_state.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::exchange {

std::uint64_t ControlQueue::State::chunks_behind(std::int64_t rank_in_group) const {
  for (std::size_t r = 0; r < local_of.size(); ++r)
    if (local_of[r] == rank_in_group) return next_chunk - ring->read_by(r);
  for (std::size_t r = 0; r < remote.readers().size(); ++r)
    if (remote.readers()[r] == rank_in_group) return remote.behind(r);
  return 0;
}

// Returns the readers for which the writer waits.
std::vector<std::int64_t> ControlQueue::State::late_readers() const {
  std::vector<std::int64_t> late;
  for (const auto* readers : {&local_of, &remote.readers()})
    for (const std::int64_t r : *readers)
      if (chunks_behind(r) >= static_cast<std::uint64_t>(options.slots)) late.push_back(r);
  return late;
}

void ControlQueue::State::throw_late(const Deadline& deadline) const {
  std::vector<std::string> texts;
  std::vector<Rank> ranks;
  for (const std::int64_t r : late_readers()) {
    const std::string does = what_does(r);
    texts.push_back(fmt::format("rank {} is {} chunks behind{}{}", name(r), chunks_behind(r),
                                does.empty() ? "" : " and ", does));
    ranks.push_back(group->ranks().at(r));
  }
  throw TimeoutError{
      fmt::format("message {} of the control queue of '{}' found no free slot within {} s: {}",
                  messages, group->name(), deadline.seconds(), fmt::join(texts, "; ")),
      "check whether the late readers have stopped or are slow; more slots allow the writer to be "
      "further ahead",
      std::move(ranks)};
}

void ControlQueue::State::write(std::span<const std::byte> message,
                                std::optional<Deadline::Duration> timeout) {
  const auto late = [&](const Deadline& deadline) { throw_late(deadline); };
  const bool has_remote = !remote.readers().empty();
  if (has_remote) {
    if (message.size() > INT32_MAX - sizeof id)
      throw UsageError{fmt::format("a control message has {} bytes", message.size()),
                       "the queue is for small messages; broadcast the data"};
    wait([&] { return remote.collect() < options.slots; }, timeout, late);
  }
  const std::uint64_t chunks = local_of.empty() ? 0 : ring->chunks_of(message.size());
  for (std::uint64_t k = 0; k < chunks; ++k) {
    try {
      wait([&] { return ring->may_write(next_chunk); }, timeout, late);
    } catch (const TimeoutError& error) {
      if (k > 0) broken = error.message();  // the readers wait for the rest of the message
      throw;
    }
    // Only at this point is it certain that readers on this node get the message too. If a timeout
    // passes before this point, no reader has received any part of the message, and the queue can
    // still be used.
    if (k == 0 && has_remote) remote.send(message);
    ring->write(next_chunk++, message, k);
  }
  if (chunks == 0 && has_remote) remote.send(message);
  count_message();
}

}  // namespace rankmesh::exchange
