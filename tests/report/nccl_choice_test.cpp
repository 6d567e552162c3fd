// SPDX-License-Identifier: BSD-3-Clause
// What NCCL chose, from logs in the formats of NCCL 2.18, 2.28 and 2.30 (src/init.cc,
// src/bootstrap.cc, src/mnnvl.cc, src/transport).
#include "report/nccl_choice.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/checks.hpp"

using rankmesh::report::nccl_advice;
using rankmesh::report::NcclChoice;
using rankmesh::report::read_nccl_log;

namespace {

std::string log_of(std::initializer_list<const char*> lines) {
  std::string log;
  for (const char* line : lines) log += std::string{"node-a:17:21 [0] NCCL INFO "} + line + "\n";
  return log;
}

}  // namespace

TEST_CASE("the log of a rank with RDMA, NVLink SHARP and NVLink between nodes") {
  const NcclChoice choice = read_nccl_log(
      "node-a:17:17 [0] NCCL WARN Channel is not a line of information via P2P/IPC\n" +
      log_of({"Bootstrap: Using eth0:10.1.2.3<0>", "NET/Socket : Using [0]eth0:10.1.2.3<0>",
              "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.2.3<0>",
              "Using network IB", "MNNVL busId 0x1b000 fabric UUID 1.2 cliqueId 0x3 state 3",
              "MNNVL 1 cliqueId 3 cliqueSize 8 cliqueRank 0 nvlDomainSize 8",
              "NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
              "comm 0x55 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0",
              "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
              "Channel 01/0 : 0[0] -> 2[2] via P2P/IPC",
              "Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0(3)/GDRDMA/Shared"}));
  CHECK(choice.network == "IB");
  CHECK(choice.over == std::vector<std::string>{"mlx5_0:1/RoCE", "mlx5_1:1/RoCE"});
  CHECK(choice.bootstrap == "eth0");
  CHECK(choice.connections == std::set<std::string>{"P2P/CUMEM", "P2P/IPC", "NET/IB/GDRDMA"});
  CHECK(choice.has_nvls == true);
  CHECK(choice.has_mnnvl == true);
  CHECK(to_string(choice) ==
        "network IB over mlx5_0:1/RoCE, mlx5_1:1/RoCE, bootstrap over eth0; connections "
        "NET/IB/GDRDMA, P2P/CUMEM, P2P/IPC; NVLink SHARP; NVLink between nodes");
  CHECK(nccl_advice({choice, choice}, 2).empty());
}

TEST_CASE("an empty log, or lines of other programs, tell nothing") {
  CHECK(read_nccl_log("") == NcclChoice{});
  CHECK(read_nccl_log("Using network IB\nvia P2P/IPC") == NcclChoice{});
  CHECK(to_string(NcclChoice{}) == "network unknown");
}

TEST_CASE("advice follows what the choices show, and only matters between nodes where it says so") {
  const NcclChoice sockets = read_nccl_log(
      log_of({"Bootstrap : Using docker0:172.17.0.1<0>", "NET/IB : No device found.",
              "NET/Socket : Using [0]docker0:172.17.0.1<0> [1]eth0:10.0.0.1<0>",
              "Using network Socket", "NVLS multicast support is not available on dev 0",
              "Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0",
              "Channel 00 : 0[0] -> 1[1] via P2P/direct pointer"}));
  CHECK(sockets.over == std::vector<std::string>{"docker0", "eth0"});
  CHECK(sockets.has_nvls == false);
  CHECK(sockets.connections == std::set<std::string>{"NET/Socket", "P2P/direct"});
  CHECK(nccl_advice({sockets}, 1).empty());
  const auto on_two_nodes = nccl_advice({sockets, sockets}, 2);
  REQUIRE(on_two_nodes.size() == 2);
  CHECK_CONTAINS(on_two_nodes[0], "NCCL sends over TCP between nodes");
  CHECK_CONTAINS(on_two_nodes[1], "set NCCL_SOCKET_IFNAME");

  const NcclChoice staged =
      read_nccl_log(log_of({"Bootstrap: Using eth0:10.0.0.1<0>", "Using network IB",
                            "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/1",
                            "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct"}));
  const auto advice = nccl_advice({staged}, 2);
  REQUIRE(advice.size() == 2);
  CHECK_CONTAINS(advice[0], "NCCL_NET_GDR_LEVEL");
  CHECK_CONTAINS(advice[1], "NCCL_P2P_LEVEL");
}
