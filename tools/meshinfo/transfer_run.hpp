// SPDX-License-Identifier: BSD-3-Clause
// meshinfo transfer --run: carries out a plan in a job.
#pragma once

#include <cstdint>

#include "job.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::meshinfo {

struct TransferRun {
  double first = 0;           // seconds of the first transfer, with the memory that it allocates
  double seconds = 0;         // of the fastest one of the others
  std::int64_t elements = 0;  // verified, on all ranks together
  std::int64_t wrong = 0;
  std::int64_t read_bytes = 0;  // directly from the memory of other ranks, on all ranks together
};

// Moves synthetic elements, and verifies every element on every rank. Collective over the job.
TransferRun run_transfer(const OpenMesh& open, const TransferPlan& plan);

}  // namespace rankmesh::meshinfo
