// SPDX-License-Identifier: BSD-3-Clause
// The libraries that rankmesh uses in this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// Describes a library that rankmesh uses. If the library was not found, `version` and `path` are
/// empty, and `why_not` gives the reason.
struct LibraryInfo {
  std::string name;     ///< The name of the library.
  std::string version;  ///< The version; empty if the library was not found.
  std::string path;     ///< The path of the library file; empty if it is not known.
  std::string why_not;  ///< Why the library was not found; empty if it was found.
};

/// Returns the descriptions of MPI, the CUDA runtime, the CUDA driver and NCCL, in this order.
/// Loads NCCL if it is installed. Local. Neither MPI_Init nor a device is needed.
RANKMESH_API std::vector<LibraryInfo> libraries();

/// Describes a CUDA device that this process sees.
struct DeviceInfo {
  std::string uuid;         ///< 32 hexadecimal digits. Each MIG instance has its own.
  std::string name;         ///< The name of the model.
  std::string bus_id;       ///< The address of the device on the PCI bus.
  std::int64_t memory = 0;  ///< In bytes.
  bool has_ecc = false;     ///< Whether error correction is switched on.
};

/// The devices of a process, or the reason why it sees none.
struct VisibleDevices {
  std::vector<DeviceInfo> devices;  ///< The devices by their numbers.
  std::string why_none;             ///< Empty if there are devices.
};

/// Returns the devices that this process sees, by their numbers. Local. Creates no context on a
/// device.
RANKMESH_API VisibleDevices visible_devices();

}  // namespace rankmesh
