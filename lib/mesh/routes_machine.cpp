// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mesh/routes_machine.hpp"

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "rankmesh/mpi/environment.hpp"
#include "rankmesh/version.hpp"

namespace rankmesh {

std::string routes_machine(std::int32_t cores) {
  const std::string mpi = mpi::library_text();
  return fmt::format("{}, {}, rankmesh {}", detail::count_text(cores, "core"),
                     mpi.substr(0, mpi.find_first_of(",\n")), version_string());
}

}  // namespace rankmesh
