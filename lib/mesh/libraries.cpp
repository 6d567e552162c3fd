// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mesh/libraries.hpp"

#include <dlfcn.h>

#include "detail/device_libraries.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh {

std::vector<LibraryInfo> libraries() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);  // may be called before MPI_Init
  const std::string version{text, static_cast<std::size_t>(length)};
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<void*>(&MPI_Get_library_version), &info) != 0 &&
                     info.dli_fname != nullptr;
  std::vector<LibraryInfo> result{
      {"MPI", version.substr(0, version.find_first_of(",\n")), known ? info.dli_fname : "", ""}};
  for (LibraryInfo& library : detail::device_libraries()) result.push_back(std::move(library));
  return result;
}

VisibleDevices visible_devices() { return detail::visible_devices(); }

}  // namespace rankmesh
