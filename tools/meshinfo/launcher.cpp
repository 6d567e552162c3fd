// SPDX-License-Identifier: BSD-3-Clause
#include "launcher.hpp"

#include <cstdlib>
#include <cstring>

namespace meshinfo {
namespace {

bool job_is_ignored = false;

// Of Open MPI, PMIx and PMI. SLURM_PROCID alone proves nothing, batch scripts have it too.
constexpr const char* rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

}  // namespace

bool is_launched() {
  for (const char* name : rank_variables)
    if (std::getenv(name) != nullptr) return true;
  return false;
}

bool is_in_job() { return !job_is_ignored && is_launched(); }

void ignore_job() { job_is_ignored = true; }

bool is_printing_rank() {
  if (job_is_ignored) return true;
  for (const char* name : rank_variables)
    if (const char* rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
  return true;
}

}  // namespace meshinfo
