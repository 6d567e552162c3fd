// SPDX-License-Identifier: BSD-3-Clause
#include "detail/connection.hpp"

#include <utility>

namespace rankmesh::detail {

Transport* HostTransports::find(std::string_view name) const {
  for (const auto& transport : list)
    if (transport->name() == name) return transport.get();
  return nullptr;
}

Connection::Connection(GroupDescription description, mpi::Communicator owned,
                       mpi::CommunicatorView comm, HostTransports host,
                       std::unique_ptr<DeviceTransport> device)
    : group{std::move(description)},
      size_{group.ranks.size()},
      owned_{std::move(owned)},
      comm_{comm},
      host_{std::move(host)},
      device_{std::move(device)} {}

Connection::~Connection() = default;

void Connection::close() {
  retire("it is closed");
  host_.list.clear();
  device_.reset();
  comm_ = {};
  owned_.free();
}

}  // namespace rankmesh::detail
