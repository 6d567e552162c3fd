// SPDX-License-Identifier: BSD-3-Clause
// NCCL_SOCKET_IFNAME, which the real bootstrap obeys.
#pragma once

namespace fake {

// True where the setting is absent or names an interface: "eth", "=eth0", "^docker,lo" as NCCL
// reads it.
bool network_interface_exists();

}  // namespace fake
