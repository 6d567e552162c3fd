// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/control_queue_state.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::exchange {

void ControlQueue::State::throw_late(const Deadline& deadline) const {
  std::vector<std::string> names;
  std::vector<Rank> ranks;
  const auto add = [&](std::int64_t rank_in_group, std::uint64_t behind) {
    names.push_back(fmt::format("{} is {} behind", name(rank_in_group), behind));
    ranks.push_back(group->ranks().at(rank_in_group));
  };
  const auto slots = static_cast<std::uint64_t>(options.slots);
  for (std::size_t r = 0; r < local_of.size(); ++r)
    if (const std::uint64_t read = ring->read_by(r); read + slots <= next_chunk)
      add(local_of[r], next_chunk - read);
  for (std::size_t r = 0; r < remote.readers().size(); ++r)
    if (const std::uint64_t behind = remote.behind(r); behind >= slots)
      add(remote.readers()[r], behind);
  throw TimeoutError{
      fmt::format("message {} of the control queue of '{}' found no free slot "
                  "within {} s: rank {} chunks",
                  messages, group->name(), deadline.seconds(), fmt::join(names, " chunks, rank ")),
      "check whether the late readers have stopped or are slow; more slots allow the writer to be "
      "further ahead",
      std::move(ranks)};
}

void ControlQueue::State::write(std::span<const std::byte> message,
                                std::optional<Deadline::Duration> timeout) {
  const auto late = [&](const Deadline& deadline) { throw_late(deadline); };
  const bool has_remote = !remote.readers().empty();
  if (has_remote) {
    if (message.size() > INT32_MAX)
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
    // Only now is it certain that readers on this node get the message, too. After a timeout before
    // this point, no reader has got anything, and the queue can still be used.
    if (k == 0 && has_remote) remote.send(message);
    ring->write(next_chunk++, message, k);
  }
  if (chunks == 0 && has_remote) remote.send(message);
  ++messages;
}

}  // namespace rankmesh::exchange
