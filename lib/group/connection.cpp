// SPDX-License-Identifier: BSD-3-Clause
#include "detail/connection.hpp"

#include "detail/operations_in_flight.hpp"

namespace rankmesh::detail {

std::vector<int> GroupDescription::ranks_of_mesh() const {
  std::vector<int> result;
  for (const Rank rank : ranks) result.push_back(static_cast<int>(rank.value()));
  return result;
}

RoutedTransport* HostTransports::find(std::string_view name) const {
  for (const auto& transport : list)
    if (transport->name() == name) return transport.get();
  return nullptr;
}

Connection::Connection(GroupDescription description, mpi::Communicator owned,
                       mpi::CommunicatorView comm, HostTransports host,
                       std::unique_ptr<DeviceTransport> device, Recordings recordings_of_calls)
    : group{std::move(description)},
      recordings{std::move(recordings_of_calls)},
      size_{group.ranks.size()},
      owned_{std::move(owned)},
      comm_{comm},
      host_{std::move(host)},
      device_{std::move(device)} {}

Connection::~Connection() = default;

void Connection::mark_broken(const Error& why) {
  why_unusable_ = why.message();
  // Every member finds a loss, except in run() of a transport of the program.
  const bool is_found = dynamic_cast<const LostRanks*>(&why) != nullptr;
  if (!is_found) host_.guard.give_up(why);
  for (const auto& transport : host_.list)
    if (!is_found || transport->carrier() >= record::Carrier::first_of_program)
      transport->give_up(why);
}

std::function<std::vector<int>()> Connection::needed(
    std::function<std::vector<std::int64_t>()> awaited, std::int64_t own) const {
  return [this, awaited = std::move(awaited), own] {
    std::vector<int> ranks;
    if (OperationsInFlight::count_of_process() > own) return ranks;
    for (const std::int64_t member : awaited())
      ranks.push_back(static_cast<int>(group.ranks.at(member).value()));
    return ranks;
  };
}

void Connection::close(bool messages_differ) {
  retire("it is closed");
  host_.calls = nullptr;
  host_.list.clear();
  host_.guard = {};
  device_.reset();
  is_closed_ = true;
  comm_ = {};
  if (messages_differ) owned_ = {};
  owned_.free();
}

}  // namespace rankmesh::detail
