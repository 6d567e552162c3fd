// What bench and tune are asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "meshinfo.hpp"
#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/base/reduce_op.hpp"

namespace meshinfo {

// nccl-tests' flags.
struct BenchOptions {
  MeshOptions mesh;
  std::vector<std::string> operations{"all_reduce"};
  std::vector<std::string> names;  // empty: all
  std::string from = "8", to = "4M", step;
  std::int64_t factor = 2, repeats = 20, warm_up = 5, root = 0, check = 1;
  std::string type = "float", reduction = "sum";
  std::string memory = "host";
  std::string devices = "auto";
  bool json = false;
  std::string path;

  void add_to(CLI::App& command);
};

// The options with their words understood. @throws UsageError.
struct BenchPlan {
  std::vector<rankmesh::Operation> operations;
  std::vector<std::int64_t> sizes;  // bytes
  rankmesh::DataType type;
  rankmesh::ReduceOp reduction;
  rankmesh::MemoryKind memory;
};
BenchPlan understood(const BenchOptions& options);

// Sizes with K, M or G. @throws UsageError.
std::int64_t bytes_of(const std::string& option, const std::string& text);

// On every rank of a live job; prints on rank 0. Returns the exit status.
int bench(rankmesh::Mesh& mesh, const BenchOptions& options, const BenchPlan& plan);
int tune(rankmesh::Mesh& mesh, const BenchOptions& options, const BenchPlan& plan);

}  // namespace meshinfo
