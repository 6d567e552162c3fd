// SPDX-License-Identifier: BSD-3-Clause
// The double of libnccl: rules of communicators that were read in NCCL's source and that its manual
// does not state. README.md lists the file and the function of each rule.
#include <doctest/doctest.h>

#include "nccl_help.hpp"

using namespace help;
using ranks::Rank;
using ranks::Settings;

TEST_CASE("a lower limit of thread blocks is refused without an upper one") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    ncclUniqueId id;
    ncclComm_t comm;
    NCCL_OK(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.minCTAs = 8;
    REQUIRE_NCCL(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
    REQUIRE_RANK(says(nullptr, "minCTAs is 8"));
    config.minCTAs = NCCL_CONFIG_UNDEF_INT;
    config.maxCTAs = 8;
    NCCL_OK(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  });
}
