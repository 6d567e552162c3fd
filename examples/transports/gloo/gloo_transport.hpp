// SPDX-License-Identifier: BSD-3-Clause
// A transport of rankmesh over Gloo, for collectives on host memory.
#pragma once

#include <memory>

#include <rankmesh/transport/transport_factory.hpp>

/// Connects the members of a group by TCP. The addresses travel over the communicator of the group.
/// For MeshOptions::transports:
///
///     Mesh mesh{comm, "dp=2,tp=2", {.routes = "*.*=gloo", .transports = {{"gloo", open_gloo}}}};
///
/// The variable GLOO_IFACE names the network interface, for example `eth0`. Without it, members on
/// one node use the loopback device, and members on several nodes the address of their host name.
std::unique_ptr<rankmesh::Transport> open_gloo(const rankmesh::TransportGroup& group);
