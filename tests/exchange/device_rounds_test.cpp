// SPDX-License-Identifier: BSD-3-Clause
// The rounds of a redistribution in device memory, for all ranks of a large group in one process.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "exchange/detail/redistribution_state.hpp"

using namespace rankmesh;
using namespace rankmesh::exchange::detail;

namespace {

constexpr auto to_rank = [](std::int64_t rank) { return static_cast<std::size_t>(rank); };

std::vector<DeviceRounds> rounds_of_all(const TransferPlan& plan, std::int64_t ranks,
                                        std::int64_t memory) {
  std::vector<DeviceRounds> all;
  for (std::int64_t r = 0; r < ranks; ++r) {
    const TransferOfRank part = plan.of(Rank{r});
    const BoundTensors tensors{plan, part, Rank{r}};
    all.push_back(device_rounds(
        ordered_streams(part, tensors.kinds(), Rank{r}, ranks, &TensorTransferOfRank::sends),
        ordered_streams(part, tensors.kinds(), Rank{r}, ranks, &TensorTransferOfRank::receives),
        RankInGroup{r}, ranks, memory));
    // Only the sizes and the peers are read below: the messages of the part do not live on.
  }
  return all;
}

// The messages of a round from one rank to another, in order.
using Messages = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>>;

Messages messages_of(const DeviceRounds& all, std::int64_t rank, std::size_t round) {
  Messages messages;
  for (const DeviceMessage& m : all.rounds[round].sends)
    messages[{rank, all.sent[m.stream].peer.value()}].push_back(m.bytes);
  for (const DeviceMessage& m : all.rounds[round].receives)
    messages[{all.received[m.stream].peer.value(), rank}].push_back(m.bytes);
  return messages;
}

// Lets a rank begin its next round only when its last round has ended, and ends a round only when
// all members of its messages are in rounds with the same messages. Returns how many rounds have
// ended.
std::size_t carry_out(const std::vector<DeviceRounds>& all) {
  std::vector<std::size_t> next(all.size());
  std::size_t ended = 0;
  for (bool has_ended = true; has_ended;) {
    has_ended = false;
    std::vector<Messages> now(all.size());
    for (std::size_t r = 0; r < all.size(); ++r)
      if (next[r] < all[r].rounds.size())
        now[r] = messages_of(all[r], static_cast<std::int64_t>(r), next[r]);
    // A rank waits if a peer is in another round, or waits itself.
    std::vector<bool> waits(all.size());
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (std::size_t r = 0; r < all.size(); ++r) {
        if (waits[r] || now[r].empty()) continue;
        for (const auto& [pair, sizes] : now[r]) {
          const std::size_t peer =
              to_rank(pair.first) == r ? to_rank(pair.second) : to_rank(pair.first);
          const auto theirs = now[peer].find(pair);
          if (!waits[peer] && theirs != now[peer].end() && theirs->second == sizes) continue;
          waits[r] = has_changed = true;
          break;
        }
      }
    }
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (waits[r] || now[r].empty()) continue;
      ++next[r];
      ++ended;
      has_ended = true;
    }
  }
  return ended;
}

void check_rounds(const std::vector<TensorTransfer>& tensors, std::int64_t ranks,
                  std::int64_t memory) {
  CAPTURE(ranks);
  CAPTURE(memory);
  const TransferPlan plan = plan_transfer(tensors);
  const auto all = rounds_of_all(plan, ranks, memory);
  std::size_t rounds = 0;
  std::vector<std::int64_t> wrong(3);
  for (std::size_t r = 0; r < all.size(); ++r) {
    rounds += all[r].rounds.size();
    std::int64_t sent = 0;
    for (const DeviceRound& round : all[r].rounds) {
      const auto operations = std::ssize(round.sends) + std::ssize(round.receives);
      wrong[0] += operations > most_operations_of_round || operations == 0;
      for (const auto* list : {&round.sends, &round.receives}) {
        std::int64_t end = 0;
        for (const DeviceMessage& m : *list) {
          wrong[1] += m.place < end || m.bytes <= 0;
          end = m.place + m.bytes;
        }
        wrong[1] += end > (list == &round.sends ? all[r].sent_memory : all[r].received_memory);
      }
      for (const DeviceMessage& m : round.sends) sent += m.bytes;
    }
    wrong[1] += all[r].sent_memory + all[r].received_memory > memory;
    std::int64_t needed = 0;
    for (const TransferPeer& peer : plan.peers(Rank{static_cast<std::int64_t>(r)}))
      needed += peer.sent_bytes;
    wrong[2] += sent != needed;
  }
  CHECK(wrong == std::vector<std::int64_t>(3));
  CHECK(carry_out(all) == rounds);
}

TensorTransfer transfer(std::int64_t ranks, const std::string& from, const std::string& to) {
  const auto place = [&](const std::string& text) {
    return TensorPlacement::parse(
        fmt::format(fmt::runtime(text), fmt::arg("n", ranks), fmt::arg("last", ranks - 1)));
  };
  return {place(from), place(to)};
}

}  // namespace

TEST_CASE("all ranks of a large group go through the rounds of device memory") {
  for (const std::int64_t ranks : {2, 5, 130, 300}) {
    const TensorTransfer turned =
        transfer(ranks, "[600,601] f32 @ tp={n} : (tp, _)", "[600,601] f32 @ tp={n} : (_, tp)");
    const TensorTransfer shifted = transfer(ranks, "[900,300] u8 @ tp={n} : (tp, _)",
                                            "[900,300] u8 @ tp={n} on 1-{last},0 : (tp, _)");
    for (const std::int64_t memory : {1024, 40000, 64 << 20})
      check_rounds({turned, shifted, turned}, ranks, memory);
  }
}

TEST_CASE("large parts have messages of their own, and a round has 128 of them at most") {
  for (const std::int64_t ranks : {2, 3, 9}) {
    // Each rank has 64 KiB of each tensor.
    const std::string shape = fmt::format("[{}] u8 @ tp={{n}}", ranks * least_own_message);
    const TensorTransfer large =
        transfer(ranks, shape + " : (tp)", shape + " on 1-{last},0 : (tp)");
    const TensorTransfer small =
        transfer(ranks, "[3000] u8 @ tp={n} : (tp)", "[3000] u8 @ tp={n} on 1-{last},0 : (tp)");
    std::vector<TensorTransfer> tensors(300, large);
    tensors.insert(tensors.begin() + 7, 3, small);
    check_rounds(tensors, ranks, 64 << 20);
    const DeviceRounds first = rounds_of_all(plan_transfer(tensors), ranks, 64 << 20).front();
    CHECK(first.sent.size() == 301);
    CHECK(first.rounds.front().sends.size() == static_cast<std::size_t>(128 / (ranks - 1)));
  }
}
