// SPDX-License-Identifier: BSD-3-Clause
// Checks the transport with the conformance kit.
#include <rankmesh/conformance/conformance.hpp>

#include "sockets_transport.hpp"

int main(int argc, char** argv) {
  return rankmesh::conformance::check_transport(argc, argv, "sockets", open_sockets);
}
