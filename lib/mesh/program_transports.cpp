// SPDX-License-Identifier: BSD-3-Clause
#include "detail/program_transports.hpp"

#include <cstddef>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "transport/detail/guarded_transport.hpp"
#include "transport/detail/program_transport.hpp"

namespace rankmesh::detail {
namespace {

// Calls a factory. Returns why it has failed; empty if it has not.
std::string make(const std::string& name, const TransportFactory& factory,
                 const TransportGroup& group, std::unique_ptr<Transport>& transport) {
  const auto text = [&](std::string_view why) {
    return fmt::format("transport '{}' of {}: {}", name, group.name, why);
  };
  try {
    transport = factory(group);
    return {};
  } catch (...) {
    return text(current_reasons().message);
  }
}

// Returns the name of a transport that only some members have; empty if there is none. Blocks; all
// members must have called their factories.
std::string name_on_some(const MeshOptions& options, const ProgramTransports& transports,
                         const TransportGroup& group) {
  std::vector<int> least;
  for (const auto& transport : transports.list) {
    least.push_back(transport != nullptr ? 1 : 0);
    least.push_back(transport != nullptr ? -1 : 0);
  }
  mpi::check(MPI_Allreduce(MPI_IN_PLACE, least.data(), static_cast<int>(least.size()), MPI_INT,
                           MPI_MIN, group.comm.native()),
             "MPI_Allreduce");
  std::size_t i = 0;
  for (const auto& [name, factory] : options.transports) {
    if (least[2 * i] != -least[2 * i + 1]) return name;
    ++i;
  }
  return {};
}

}  // namespace

std::map<std::string, TransportFactory>& transports_of_every_mesh() {
  static auto& transports =
      *new std::map<std::string, TransportFactory>;  // as in default_routes.cpp
  return transports;
}

void check_transports(const MeshOptions& options) {
  if (options.transports.size() > record::most_program_transports)
    throw UsageError{fmt::format("MeshOptions::transports has {} transports, but the limit is {}",
                                 options.transports.size(), record::most_program_transports),
                     "leave out the transports that no rule uses"};
  for (const auto& [name, factory] : options.transports) {
    if (const std::string why = RouteTable::why_no_name(name); !why.empty())
      throw UsageError{fmt::format("MeshOptions::transports: {}", why), "choose another name"};
    if (!factory)
      throw UsageError{fmt::format("MeshOptions::transports: '{}' has no factory", name),
                       "set a function that returns the transport of a group"};
  }
}

std::vector<std::string> names_of_transports(const MeshOptions& options) {
  std::vector<std::string> names;
  for (const auto& [name, factory] : options.transports) names.push_back(name);
  return names;
}

TransportGroup transport_group(const GroupDescription& group, const mpi::CommunicatorView& comm,
                               const ControlPlane& control, const MeshOptions& options) {
  return {.name = group.name,
          .ranks = group.ranks,
          .self = group.ranks.index_of(control.rank()).value(),
          .comm = comm,
          .nodes = group.nodes,
          .timeout = options.deadline.value_or(group.timeout)};
}

std::vector<ProgramTransports> open_program_transports(const MeshOptions& options,
                                                       const std::vector<TransportGroup>& groups,
                                                       const Participants& participants) {
  std::vector<ProgramTransports> opened(groups.size());
  if (options.transports.empty()) return opened;
  // A rank that fails goes on to the agreement, so that all ranks throw and close what they have
  // opened.
  std::string failure;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].ranks.size() == 1) continue;
    for (const auto& [name, factory] : options.transports) {
      std::unique_ptr<Transport> transport;
      const std::string why = make(name, factory, groups[g], transport);
      if (failure.empty()) failure = why;
      opened[g].list.push_back(std::move(transport));
    }
  }
  participants.agree("the first use of the program's transports", failure);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].ranks.size() == 1) continue;
    const std::string name = name_on_some(options, opened[g], groups[g]);
    if (!name.empty() && failure.empty())
      failure = fmt::format(
          "transport '{}' of {}: its factory returned null on some members of the group only", name,
          groups[g].name);
  }
  participants.agree("the first use of the program's transports", failure);
  return opened;
}

void add_program_transports(HostTransports& transports, ProgramTransports own,
                            const mpi::CommunicatorView& comm, const MeshOptions& options) {
  std::size_t i = 0;
  for (const auto& [name, factory] : options.transports) {
    const std::size_t index = i++;
    if (own.list.empty())
      transports.absent.emplace(name, own.why_not);
    else if (own.list[index] == nullptr)
      transports.absent.emplace(name, "its factory returned null");
    else {
      // In run(), a survivor would not learn of a loss.
      const bool polls = options.survive.has_value() && own.list[index]->has_async_forms();
      transports.list.push_back(std::make_unique<GuardedTransport>(
          std::make_unique<ProgramTransport>(
              ProgramTransport::TransportIdentity{name, record::program_carrier(index)},
              std::move(own.list[index]), comm, options.largest_count),
          transports.guard.collectives, nullptr, polls));
    }
  }
  transports.has_program_transports = !own.list.empty();
}

}  // namespace rankmesh::detail
