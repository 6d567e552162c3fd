// SPDX-License-Identifier: BSD-3-Clause
#include "detail/loaded_components.hpp"

#include <dlfcn.h>
#include <link.h>

#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace rankmesh::mpi {
namespace {

int add_component(dl_phdr_info* object, std::size_t, void* list) {
  const std::string_view path = object->dlpi_name;
  if (path.find("/mca_") == std::string_view::npos) return 0;
  try {
    static_cast<std::vector<std::string>*>(list)->emplace_back(path);
  } catch (const std::bad_alloc&) {
    return 1;
  }
  return 0;
}

}  // namespace

void keep_components_loaded() noexcept {
  std::vector<std::string> components;
  ::dl_iterate_phdr(add_component, &components);
  for (const std::string& path : components)
    ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace rankmesh::mpi
