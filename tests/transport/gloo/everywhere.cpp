// SPDX-License-Identifier: BSD-3-Clause
// Adds Gloo to every mesh of the tests; RANKMESH_ROUTES then makes calls use it.
#include "../../../examples/transports/gloo/gloo_transport.hpp"
#include "mesh/detail/program_transports.hpp"

namespace {

const bool is_added =
    rankmesh::detail::transports_of_every_mesh().emplace("gloo", open_gloo).second;

}  // namespace
