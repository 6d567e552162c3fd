// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/libraries.hpp"

#include <dlfcn.h>

#include "detail/device_libraries.hpp"
#include "rankmesh/mpi/environment.hpp"

namespace rankmesh {
std::vector<LibraryInfo> libraries() {
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<void*>(&MPI_Get_library_version), &info) != 0 &&
                     info.dli_fname != nullptr;
  const std::string mpi = mpi::library_text();
  std::vector<LibraryInfo> result{
      {"MPI", mpi.substr(0, mpi.find_first_of(",\n")), known ? info.dli_fname : "", ""}};
  for (LibraryInfo& library : detail::device_libraries()) result.push_back(std::move(library));
  return result;
}

VisibleDevices visible_devices() { return detail::visible_devices(); }

}  // namespace rankmesh
