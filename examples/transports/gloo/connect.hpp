// SPDX-License-Identifier: BSD-3-Clause
// Connects the members of a group by Gloo.
#pragma once

#include <memory>

#include <gloo/context.h>
#include <rankmesh/transport/transport_factory.hpp>

/// Collective over the members. Operations of the result fail after the timeout of the group.
std::shared_ptr<gloo::Context> connect_gloo(const rankmesh::TransportGroup& group);
