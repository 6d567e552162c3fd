// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mesh/libraries.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/device_libraries.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/version.hpp"

namespace rankmesh {
namespace {

// The name and the version of MPI, which are the first part of its text.
std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);  // may be called before MPI_Init
  const std::string version{text, static_cast<std::size_t>(length)};
  return version.substr(0, version.find_first_of(",\n"));
}

}  // namespace

std::vector<LibraryInfo> libraries() {
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<void*>(&MPI_Get_library_version), &info) != 0 &&
                     info.dli_fname != nullptr;
  std::vector<LibraryInfo> result{{"MPI", mpi_version(), known ? info.dli_fname : "", ""}};
  for (LibraryInfo& library : detail::device_libraries()) result.push_back(std::move(library));
  return result;
}

std::string routes_machine(std::int32_t cores) {
  return fmt::format("{}, {}, rankmesh {}", detail::count_text(cores, "core"), mpi_version(),
                     version_string());
}

VisibleDevices visible_devices() { return detail::visible_devices(); }

}  // namespace rankmesh
