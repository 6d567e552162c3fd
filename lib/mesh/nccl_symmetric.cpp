// SPDX-License-Identifier: BSD-3-Clause
// Symmetric memory on devices.
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/nccl_backend.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

// Every connection must be open and usable, since the registration is collective.
void require_open(Connections connections) {
  for (const auto& connection : connections) {
    const std::string& name = connection->group.name;
    if (!connection->is_usable())
      throw UsageError{
          fmt::format("allocate_symmetric for '{}': the NCCL communicator is broken: {}", name,
                      connection->why_unusable())};
    if (nccl_transport_of(*connection) == nullptr)
      throw UsageError{
          fmt::format("allocate_symmetric for '{}': the NCCL communicator is not open: call "
                      "mesh.open() first",
                      name)};
  }
}

WaitPoint registration_point(const GroupDescription& group) {
  std::string activity = fmt::format("the registration of symmetric memory with '{}'", group.name);
  const std::string key = activity + group.identity + group.ranks.to_string();
  return WaitPoint::of(group.ranks, std::move(activity), key);
}

// Registers the memory with one communicator. Returns the kind of registration, for the log.
std::string register_with(const Connection& connection, nccl::SymmetricMemory& memory,
                          nccl::CallWatch& watch, ControlPlane& control) {
  NcclTransport& transport = *nccl_transport_of(connection);
  nccl::Communicator& comm = transport.communicator();
  const auto begin = [&] { memory.begin_registration(comm); };
  // A window needs all ranks. A rank that has failed waits for the others in an agreement, so they
  // must return before its deadline.
  if (comm.is_blocking() && comm.is_owned())
    watch.run(std::array{&comm}, control.deadline().left() / 2, begin);
  else
    begin();
  control.monitor.wait([&] { return comm.is_ready(); }, registration_point(connection.group),
                       control.deadline());
  const auto kind = memory.finish_registration();
  if (kind != nccl::SymmetricMemory::Registration::none)
    transport.note_registered(memory.data(), memory.bytes());
  return fmt::format("'{}' {}", connection.group.name, nccl::to_string(kind));
}

}  // namespace

std::byte* NcclBackend::allocate_symmetric(std::size_t bytes, Agreement agreement,
                                           Connections connections) {
  const std::string activity = "the allocation of symmetric device memory";
  const Participants all = control_->all();
  std::unique_ptr<nccl::SymmetricMemory> made;
  try {
    require_open(connections);
    drain(control_->deadline());  // allocation may wait for the device, which may wait for a peer
    made = std::make_unique<nccl::SymmetricMemory>(library_, bytes);
  } catch (const Error& error) {
    agreement.fail(error.message());
  }
  all.agree(activity, agreement);

  nccl::SymmetricMemory& memory = *symmetric_.emplace_back(std::move(made));
  std::vector<std::string> kinds;
  std::string failure;
  try {
    for (const auto& connection : connections)
      kinds.push_back(register_with(*connection, memory, context_->watch, *control_));
  } catch (const LostRanks&) {
    throw;  // every survivor finds it
  } catch (const Error& error) {
    failure = error.message();
    for (const auto& connection : connections)
      control_->monitor.give_up(registration_point(connection->group), failure);
  }
  try {
    all.agree(activity, failure);
  } catch (const Error& error) {
    // The state of NCCL on the other ranks is unknown.
    for (const auto& connection : connections) connection->mark_broken(error);
    throw;
  }
  control_->log(LogLevel::info, fmt::format("rank {} has {} bytes of symmetric device memory{}{}",
                                            control_->rank().value(), bytes,
                                            kinds.empty() ? "" : ": ", fmt::join(kinds, ", ")));
  return memory.data();
}

void NcclBackend::quiesce(Connections connections, const Deadline& deadline) {
  if (symmetric_.empty()) return;
  abort_broken(connections);  // otherwise their operations might never end
  drain(deadline);
}

}  // namespace rankmesh::detail
