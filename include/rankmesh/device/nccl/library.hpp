// NCCL, opened at run time.
#pragma once

#include <nccl.h>

#include <source_location>
#include <string>
#include <utility>

#include "rankmesh/base/error.hpp"

// Functions that every supported NCCL (2.18 and later) has, and those that came later (null where
// they are absent).
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

/// A call into NCCL that failed; keeps the native code, and NCCL's last error text is in the
/// message.
class RANKMESH_API NcclError : public Error {
 public:
  NcclError(ncclResult_t code, std::string message) : Error{std::move(message)}, code_{code} {}
  [[nodiscard]] ncclResult_t code() const noexcept { return code_; }

 private:
  ncclResult_t code_;
};

/// The functions of the library that was found. One per process; never unloaded, since NCCL has
/// threads.
class RANKMESH_API Library {
 public:
  /// Opens `RANKMESH_NCCL_LIBRARY`, else `libnccl.so.2`. Later calls return the same.
  /// @throws NoDeviceError saying what was looked for and the loader's reason.
  static const Library& load();

  [[nodiscard]] int version() const noexcept {
    return version_;
  }  ///< NCCL's number, 22809 for 2.28.9
  [[nodiscard]] std::string version_text() const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// @throws NcclError. ncclInProgress is no error.
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
