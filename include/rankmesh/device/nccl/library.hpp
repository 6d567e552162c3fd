// SPDX-License-Identifier: BSD-3-Clause
// NCCL, opened at run time (dlopen).
#pragma once

#include <nccl.h>

#include <source_location>
#include <string>
#include <utility>

#include "rankmesh/base/error.hpp"

// The functions that rankmesh uses. `required` functions exist in every supported version of NCCL
// (2.18 and later). `optional` functions were added later; absent functions have a null pointer.
#define RANKMESH_NCCL_FUNCTIONS(required, optional)                                                \
  required(GetVersion) required(GetUniqueId) required(CommInitRankConfig) required(CommSplit)      \
      required(CommFinalize) required(CommDestroy) required(CommAbort) required(CommGetAsyncError) \
          required(GetErrorString) required(GetLastError) required(AllReduce) required(Reduce)     \
              required(Broadcast) required(AllGather) required(ReduceScatter) required(Send)       \
                  required(Recv) required(GroupStart) required(GroupEnd) required(CommCount)       \
                      required(CommUserRank) required(CommCuDevice) optional(CommInitRankScalable) \
                          optional(MemAlloc) optional(MemFree) optional(CommRegister)              \
                              optional(CommDeregister) optional(CommWindowRegister)                \
                                  optional(CommWindowDeregister) optional(AlltoAll)                \
                                      optional(Gather) optional(Scatter)

namespace rankmesh::nccl {

/// Reports that an NCCL function failed. The error keeps NCCL's error code. Its message contains
/// NCCL's last error text.
class RANKMESH_API NcclError : public LibraryError {
 public:
  /// Creates an error from NCCL's code and a text.
  NcclError(ncclResult_t code, std::string message)
      : LibraryError{std::move(message)}, code_{code} {}
  /// Returns NCCL's code.
  [[nodiscard]] ncclResult_t code() const noexcept { return code_; }

 private:
  ncclResult_t code_;
};

/// Holds pointers to the functions of NCCL. There is one Library per process. It never unloads NCCL
/// (dlclose), because threads of NCCL may still be running.
class RANKMESH_API Library {
 public:
  /// Loads NCCL in the first call, and returns the same object in later calls. The library is the
  /// file that the environment variable `RANKMESH_NCCL_LIBRARY` names, or `libnccl.so.2` if the
  /// variable is not set. Local.
  /// @throws NoDeviceError if NCCL cannot be loaded or is too old. The error holds the name of the
  /// file and the reason.
  static const Library& load();

  /// Returns NCCL's version number, such as 22809 for 2.28.9.
  [[nodiscard]] int version() const noexcept { return version_; }
  /// Returns the version as text, for example `2.21.5`.
  [[nodiscard]] std::string version_text() const;
  /// Returns the path of the library file.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Checks the return value of an NCCL function; ncclInProgress is not an error.
  /// @throws NcclError if `code` is an error. The exception holds NCCL's text, the name of the
  /// function, and the source location of the call.
  void check(ncclResult_t code, const char* function, ncclComm_t comm = nullptr,
             const std::source_location& where = std::source_location::current()) const;

  /// Makes calls in one NCCL group. The thread leaves the group even after an exception. Before
  /// 2.27, a thread must not begin another group before all communicators of a group that does not
  /// block have been polled to success (ncclGroupEndInternal in src/group.cc). Therefore calls on
  /// several communicators that do not block belong into one group.
  /// @return ncclSuccess, or ncclInProgress.
  template <class Calls>
  ncclResult_t grouped(Calls&& calls) const {
    check(GroupStart(), "ncclGroupStart");
    try {
      calls();
    } catch (...) {
      (void)GroupEnd();
      throw;
    }
    const ncclResult_t code = GroupEnd();
    check(code, "ncclGroupEnd");
    return code;
  }

// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration takes no parentheses
#define RANKMESH_NCCL_POINTER(name) decltype(&nccl##name) name = nullptr;
  RANKMESH_NCCL_FUNCTIONS(RANKMESH_NCCL_POINTER, RANKMESH_NCCL_POINTER)
#undef RANKMESH_NCCL_POINTER

 private:
  Library();
  std::string path_;
  int version_ = 0;
};

}  // namespace rankmesh::nccl
