// SPDX-License-Identifier: BSD-3-Clause
// The job as the launcher's environment describes it, before MPI is started.
#pragma once

namespace rankmesh::meshinfo {

// Whether a launcher started this process, unless ignore_job() was called (--offline).
bool is_in_job();
void ignore_job();
// Whether this is rank 0, or there is no job.
bool is_printing_rank();

}  // namespace rankmesh::meshinfo
