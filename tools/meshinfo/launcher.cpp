// SPDX-License-Identifier: BSD-3-Clause
#include "launcher.hpp"

#include "rankmesh/base/launcher.hpp"

namespace rankmesh::meshinfo {
namespace {

bool job_is_ignored = false;

}  // namespace

bool is_in_job() { return !job_is_ignored && is_launched(); }

void ignore_job() { job_is_ignored = true; }

bool is_printing_rank() { return job_is_ignored || rankmesh::launcher_rank().value_or(0) == 0; }

}  // namespace rankmesh::meshinfo
