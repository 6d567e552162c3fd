// SPDX-License-Identifier: BSD-3-Clause
// A transport over TCP sockets that never blocks, so it also has asynchronous calls.
#pragma once

#include <memory>

#include <rankmesh/transport/transport_factory.hpp>

/// Connects the members of a group with each other. For MeshOptions::transports.
std::unique_ptr<rankmesh::Transport> open_sockets(const rankmesh::TransportGroup& group);
