// SPDX-License-Identifier: BSD-3-Clause
#include "detail/compare_messages.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "wait/detail/rank_texts.hpp"

namespace rankmesh::detail {
namespace {

constexpr int most_bytes = std::numeric_limits<int>::max();  // that MPI counts

constexpr const char* received_hint =
    "receive every message before the group or the mesh is closed";

// The lowest bits of a balance count the groups that are broken, the others the messages.
constexpr int bits_of_broken = 20;

// What one end of the messages of a pair tells all ranks.
struct ToldMessages {
  MessageLedger::MessageCounts entry;  // with ranks of the mesh
  bool is_broken = false;              // the group, on this rank
  std::array<char, 64> name{};
};

// Several groups may have adopted one communicator, where MPI may give the messages of one group to
// another.
bool is_compared(const Connection& connection) {
  return !connection.group.is_adopted && !connection.messages.is_empty();
}

// A message of such a group may count, although it was never sent.
bool is_broken(const Connection& connection) {
  return !connection.is_usable() || connection.guard().has_ended();
}

std::vector<ToldMessages> told_by(OpenConnections connections, Rank self) {
  std::vector<ToldMessages> told;
  for (const auto& connection : connections) {
    const GroupDescription& group = connection->group;
    if (!group.is_adopted && is_broken(*connection)) {  // another member may not know it
      told.push_back({.entry = {.group = group.key()}, .is_broken = true});
      continue;
    }
    if (!is_compared(*connection)) continue;
    for (auto entry : connection->messages.entries(group.key(), *group.ranks.index_of(self))) {
      entry.from = group.ranks.at(entry.from).value();
      entry.to = group.ranks.at(entry.to).value();
      ToldMessages& added = told.emplace_back(ToldMessages{entry});
      // Several families may share the group.
      const bool is_queue = entry.tag >= MessageLedger::queues;
      const std::string& name = is_queue ? group.name : group.names[entry.count.last_name];
      name.copy(added.name.data(), added.name.size() - 1);
    }
  }
  return told;
}

// Returns what all ranks have told.
std::vector<ToldMessages> told_by_all(std::vector<ToldMessages> own, ControlPlane& control,
                                      const mpi::CommunicatorView& comm, const WaitPoint& point) {
  struct Exchange {
    std::vector<ToldMessages> own, all;
    std::vector<int> sizes, places;
    int size = 0;
  };
  MpiMemory<Exchange> memory;
  memory->own = std::move(own);
  memory->size = static_cast<int>(
      std::min(memory->own.size() * sizeof(ToldMessages), static_cast<std::size_t>(most_bytes)));
  memory->sizes.resize(static_cast<std::size_t>(comm.size()));
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Iallgather(&memory->size, 1, MPI_INT, memory->sizes.data(), 1, MPI_INT,
                            comm.native(), &request),
             "MPI_Iallgather");
  memory.wait(request, control.monitor, point, control.deadline());
  const auto bytes = std::accumulate(memory->sizes.begin(), memory->sizes.end(), std::int64_t{0});
  if (bytes >= most_bytes)  // on all ranks
    throw MismatchError{
        fmt::format("messages were not received, and {} lists of messages are too long to find "
                    "them",
                    comm.size()),
        received_hint, true};
  memory->places.resize(memory->sizes.size());
  std::exclusive_scan(memory->sizes.begin(), memory->sizes.end(), memory->places.begin(), 0);
  memory->all.resize(static_cast<std::size_t>(memory->places.back() + memory->sizes.back()) /
                     sizeof(ToldMessages));
  mpi::check(MPI_Iallgatherv(memory->own.data(), memory->size, MPI_BYTE, memory->all.data(),
                             memory->sizes.data(), memory->places.data(), MPI_BYTE, comm.native(),
                             &request),
             "MPI_Iallgatherv");
  memory.wait(request, control.monitor, point, control.deadline());
  return memory->all;
}

[[noreturn]] void refuse(const ToldMessages& messages, const RankNames& names) {
  const auto& [group, from, to, tag, count] = messages.entry;
  const bool is_queue = tag >= MessageLedger::queues;
  const std::string name = messages.name.data();
  const std::string sent =
      is_queue ? fmt::format("{} written to control queue {} of {} for rank {}",
                             count_text(count.sent, "message"), tag - MessageLedger::queues, name,
                             names(Rank{to}))
               : fmt::format("{} sent to rank {} with tag {}, the last by {}.send({} x {})",
                             count_text(count.sent, "message"), names(Rank{to}), tag, name,
                             count.last_count, to_string(count.last_type));
  const std::string received =
      fmt::format("{} of them {}", count.received, is_queue ? "read" : "received");
  throw MismatchError{list_texts({{Rank{to}, received}, {Rank{from}, sent}}, names), received_hint,
                      false};
}

}  // namespace

std::uint64_t balance_of(OpenConnections connections, Rank self) {
  std::uint64_t sum = 0;
  for (const auto& connection : connections) {
    const GroupDescription& group = connection->group;
    // The members that do not know it must not free the communicator either.
    if (!group.is_adopted && is_broken(*connection))
      ++sum;
    else if (is_compared(*connection))
      sum += connection->messages.balance(group.key(), *group.ranks.index_of(self))
             << bits_of_broken;
  }
  return sum;
}

bool counts_broken(std::uint64_t balance) {
  return balance % (std::uint64_t{1} << bits_of_broken) != 0;
}

std::set<std::uint64_t> compare_messages(OpenConnections connections, ControlPlane& control,
                                         const mpi::CommunicatorView& comm,
                                         const WaitPoint& point) {
  std::map<std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::int64_t>, ToldMessages> pairs;
  std::set<std::uint64_t> broken;
  for (const ToldMessages& told :
       told_by_all(told_by(connections, control.rank()), control, comm, point)) {
    const auto& [group, from, to, tag, count] = told.entry;
    if (told.is_broken) broken.insert(group);
    const auto [found, is_new] = pairs.try_emplace({group, from, to, tag}, told);
    if (is_new) continue;
    const std::int64_t received = found->second.entry.count.received + count.received;
    if (count.sent != 0) found->second = told;
    found->second.entry.count.received = received;
  }
  for (const auto& [key, pair] : pairs)
    if (pair.entry.count.sent > pair.entry.count.received && !broken.contains(pair.entry.group))
      refuse(pair, control.names);
  return broken;
}

}  // namespace rankmesh::detail
