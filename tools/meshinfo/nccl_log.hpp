// SPDX-License-Identifier: BSD-3-Clause
// The log of NCCL, from which meshinfo reads what NCCL chose.
#pragma once

#include <string>

#include "job.hpp"

namespace rankmesh::meshinfo {

// Makes NCCL write its log to a temporary file, unless the user has asked for a log. The variables
// of NCCL are set from the constructor on; the destructor removes the file and its folder.
class NcclLog {
 public:
  explicit NcclLog(bool is_wanted);
  ~NcclLog();
  NcclLog(const NcclLog&) = delete;
  NcclLog& operator=(const NcclLog&) = delete;

  // Returns what NCCL has written; empty without a log.
  [[nodiscard]] std::string text() const;

 private:
  std::string path_;  // empty without a log
};

// Gathers what NCCL chose on every rank, on rank 0. Collective over the job; does nothing outside
// of a job or without devices.
void gather_nccl_choices(OpenMesh& open, const NcclLog& log);

}  // namespace rankmesh::meshinfo
