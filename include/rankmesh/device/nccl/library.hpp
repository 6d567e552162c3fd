// SPDX-License-Identifier: BSD-3-Clause
// NCCL, opened at run time (dlopen).
#pragma once

#include <nccl.h>

#include <source_location>
#include <string>
#include <utility>

#include "rankmesh/base/error.hpp"

// The functions that rankmesh uses: `required` ones exist in every supported NCCL (2.18 and later),
// `optional` ones came later. The pointer to an absent optional function is null.
#define RANKMESH_NCCL_FUNCTIONS(required, optional)                                                \
  required(GetVersion) required(GetUniqueId) required(CommInitRankConfig) required(CommSplit)      \
      required(CommFinalize) required(CommDestroy) required(CommAbort) required(CommGetAsyncError) \
          required(GetErrorString) required(GetLastError) required(AllReduce) required(Reduce)     \
              required(Broadcast) required(AllGather) required(ReduceScatter) required(Send)       \
                  required(Recv) required(GroupStart) required(GroupEnd) required(CommCount)       \
                      required(CommUserRank) required(CommCuDevice) optional(CommInitRankScalable) \
                          optional(MemAlloc) optional(MemFree) optional(CommRegister)              \
                              optional(CommDeregister) optional(CommWindowRegister)                \
                                  optional(CommWindowDeregister)

namespace rankmesh::nccl {

/// Reports that an NCCL function failed. The error keeps NCCL's error code, and its message holds
/// NCCL's last error text.
class RANKMESH_API NcclError : public Error {
 public:
  NcclError(ncclResult_t code, std::string message) : Error{std::move(message)}, code_{code} {}
  [[nodiscard]] ncclResult_t code() const noexcept { return code_; }

 private:
  ncclResult_t code_;
};

/// Holds pointers to the functions of NCCL. There is one object per process. NCCL is never closed
/// (dlclose), because its threads may still run.
class RANKMESH_API Library {
 public:
  /// The first call opens the file that the environment variable `RANKMESH_NCCL_LIBRARY` names, or
  /// `libnccl.so.2` if the variable is not set. Later calls return the same object. Local.
  /// @throws NoDeviceError  The error holds the name of the file and the loader's reason.
  static const Library& load();

  /// Returns NCCL's version number, such as 22809 for 2.28.9.
  [[nodiscard]] int version() const noexcept { return version_; }
  [[nodiscard]] std::string version_text() const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Checks the return value of an NCCL function; ncclInProgress is not an error.
  /// @throws NcclError  The error holds NCCL's text, the function and the source location of the
  ///                    call.
  void check(ncclResult_t code, const char* function, ncclComm_t comm = nullptr,
             const std::source_location& where = std::source_location::current()) const;

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
