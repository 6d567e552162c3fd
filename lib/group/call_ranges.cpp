// SPDX-License-Identifier: BSD-3-Clause
#include "detail/call_ranges.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstddef>

#include <fmt/format.h>

namespace rankmesh::detail {
namespace {

constexpr const char* library_name = "libnvToolsExt.so.1";

// Returns whether the process has loaded the library. dlopen() with RTLD_NOLOAD would say so too,
// but it looks for the file on the disk each time.
bool is_loaded() {
  const auto has_name = [](dl_phdr_info* library, std::size_t, void*) {
    return std::string_view{library->dlpi_name}.find("libnvToolsExt.so") != std::string_view::npos
               ? 1
               : 0;
  };
  return ::dl_iterate_phdr(has_name, nullptr) != 0;
}

// Returns the number of libraries that the process has loaded so far, also those that are closed.
unsigned long long loads() {
  unsigned long long count = 0;
  const auto read = [](dl_phdr_info* library, std::size_t, void* to) {
    *static_cast<unsigned long long*>(to) = library->dlpi_adds;
    return 1;
  };
  ::dl_iterate_phdr(read, &count);
  return count;
}

}  // namespace

std::optional<CallRanges> CallRanges::find(std::optional<bool> setting, std::string& why_not) {
  if (setting == false) return std::nullopt;
  // A search in vain takes as long as the process has libraries, so it is repeated only if there
  // are more of them.
  static std::atomic<unsigned long long> searched{0};
  const unsigned long long now = loads();
  if (setting != true && searched == now) return std::nullopt;
  const auto in = [](void* library) -> std::optional<CallRanges> {
    auto* const push = reinterpret_cast<Push*>(::dlsym(library, "nvtxRangePushA"));
    auto* const pop = reinterpret_cast<Pop*>(::dlsym(library, "nvtxRangePop"));
    if (push == nullptr || pop == nullptr) return std::nullopt;
    return CallRanges{push, pop};
  };
  if (const auto ranges = in(RTLD_DEFAULT)) return ranges;
  if (setting != true && !is_loaded()) {
    searched = now;
    return std::nullopt;
  }
  // A library that another one has loaded for itself is not among the default symbols. The library
  // is never closed: the functions may be used until the process ends.
  const int flags = RTLD_NOW | RTLD_LOCAL | (setting == true ? 0 : RTLD_NOLOAD);
  if (void* const library = ::dlopen(library_name, flags)) {
    if (const auto ranges = in(library)) return ranges;
    if (setting == true) why_not = fmt::format("{} lacks functions of NVTX", library_name);
  } else if (setting == true) {
    const char* const error = ::dlerror();
    why_not = error == nullptr ? library_name : error;
  }
  return std::nullopt;
}

void CallRanges::ShownCall::push(const CallRanges& ranges, std::string_view group,
                                 Operation operation) {
  (void)ranges.push_(fmt::format("{}.{}", group, to_string(operation)).c_str());
}

}  // namespace rankmesh::detail
