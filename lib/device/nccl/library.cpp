// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include "rankmesh/base/settings.hpp"

namespace rankmesh::nccl {
namespace {

constexpr int oldest = 21800;

template <class Function>
Function find(void* handle, const char* name) {
  return reinterpret_cast<Function>(dlsym(handle, name));
}

// Returns the file that the loader opened: a name without a folder is searched, links are followed.
std::string path_of(void* function, const std::string& asked) {
  Dl_info info{};
  return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : asked;
}

}  // namespace

const Library& Library::load() {
  static const Library library;  // if the constructor throws, the next call tries again
  return library;
}

Library::Library() {
  const std::string asked = environment_variable("RANKMESH_NCCL_LIBRARY").value_or("libnccl.so.2");
  // NCCL is opened at run time and not linked, so that one build of rankmesh also runs on machines
  // without NCCL, and the user can choose the version. RTLD_LOCAL keeps its symbols from libraries
  // that the program links. It is never closed: NCCL's threads run until the process ends.
  void* handle = dlopen(asked.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw NoDeviceError{
        fmt::format("NCCL was not found: looked for '{}' ({})", asked,
                    reason == nullptr ? "no reason given" : reason),
        "add its folder to LD_LIBRARY_PATH, or set RANKMESH_NCCL_LIBRARY to the file"};
  }
  std::string missing;
  // NOLINTBEGIN(bugprone-macro-parentheses): the name is assigned to and becomes a text
#define RANKMESH_NCCL_REQUIRED(name)                 \
  name = find<decltype(name)>(handle, "nccl" #name); \
  if (name == nullptr) missing += missing.empty() ? "nccl" #name : ", nccl" #name;
#define RANKMESH_NCCL_OPTIONAL(name) name = find<decltype(name)>(handle, "nccl" #name);
  RANKMESH_NCCL_FUNCTIONS(RANKMESH_NCCL_REQUIRED, RANKMESH_NCCL_OPTIONAL)
  // NOLINTEND(bugprone-macro-parentheses)
#undef RANKMESH_NCCL_REQUIRED
#undef RANKMESH_NCCL_OPTIONAL
  if (!missing.empty())
    throw NoDeviceError{fmt::format("the library '{}' has no {}", asked, missing),
                        "use NCCL 2.18 or later"};
  path_ = path_of(reinterpret_cast<void*>(GetVersion), asked);
  check(GetVersion(&version_), "ncclGetVersion");
  if (version_ < oldest)
    throw NoDeviceError{fmt::format("the library '{}' is NCCL {}", path_, version_text()),
                        "use NCCL 2.18 or later"};
}

std::string Library::version_text() const {
  return fmt::format("{}.{}.{}", version_ / 10000, version_ % 10000 / 100, version_ % 100);
}

void Library::check(ncclResult_t code, const char* function, ncclComm_t comm,
                    const std::source_location& where) const {
  if (code == ncclSuccess || code == ncclInProgress) [[likely]]
    return;
  const char* last = GetLastError(comm);
  throw NcclError{code,
                  fmt::format("{} failed: {} (code {}{}{}, {}:{})", function, GetErrorString(code),
                              static_cast<int>(code), last != nullptr && *last != '\0' ? ": " : "",
                              last != nullptr ? last : "", where.file_name(), where.line())};
}

}  // namespace rankmesh::nccl
