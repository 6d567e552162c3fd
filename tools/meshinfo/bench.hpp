// SPDX-License-Identifier: BSD-3-Clause
// bench and tune: their options, their measurements and their curves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job.hpp"
#include "output.hpp"
#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "report/document.hpp"

namespace rankmesh::meshinfo {

// nccl-tests' flags.
struct BenchOptions {
  MeshArguments mesh;
  std::vector<std::string> operations{"all_reduce"};
  std::vector<std::string> names;  // empty: all
  bool by_size = false;            // tune: groups of 2, 3, 4, 8, ... ranks instead of names
  std::string from = "8", to = "4M", step;
  std::int64_t factor = 2, repeats = 20, warm_up = 5, root = 0, check = 1;
  std::string type = "float", reduction = "sum";
  std::string memory = "host";
  std::string devices = "auto";
  OutputOptions output;
};

// The options after their words were read.
struct BenchPlan {
  std::vector<Operation> operations;
  std::vector<std::int64_t> sizes;  // bytes
  DataType type{};
  ReduceOp reduction{};
  MemoryKind memory{};
};

// Whether the name is requested, and has groups that communicate.
bool is_measured(const GroupFamily& family, std::int64_t world_size, const BenchOptions& options);

// Returns how many measurements a name takes.
std::int64_t measurements_of(const BenchPlan& plan);

// Returns the text of the present measurement: "tp all_reduce 64 KiB".
std::string progress_text(const std::string& name, Operation operation, std::int64_t bytes);

struct BenchResult {
  report::Document document{};
  std::int64_t wrong = 0;  // elements, on all ranks together
};

// Measures the collectives. If `text` is not null, each piece of text is written there as soon
// as it is known. Collective over the job.
BenchResult bench(const OpenMesh& open, const BenchOptions& options, const BenchPlan& plan,
                  Output* text);

// Measures the transports and derives routes. Collective over the job.
report::Document tune(const MeshPlan& mesh, const BenchOptions& options, const BenchPlan& plan);

}  // namespace rankmesh::meshinfo
