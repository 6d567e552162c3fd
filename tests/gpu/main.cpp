// SPDX-License-Identifier: BSD-3-Clause
// The program of the rows that scripts/gpu-test runs beside the device suite and meshinfo:
//   gpu_rows ROW [ARGUMENTS]      as one process, or as a job of several ranks
//   gpu_rows --list
// Exit status: 0 if the row passed, 77 if this machine cannot show it, otherwise it failed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "row.hpp"

namespace gpu_rows {
namespace {

std::map<std::string, Program>& programs() {
  static std::map<std::string, Program> all;
  return all;
}

bool in_job = false;

// Runs a row that needs no MPI, and reports exceptions.
int run_alone(const std::string& name, const Program& program, const Arguments& arguments) {
  try {
    return program(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_rows: %s: %s\n", name.c_str(), error.what());
    return 1;
  }
}

int run(const std::string& name, int argc, char** argv) {
  const auto found = programs().find(name);
  if (found == programs().end()) {
    std::fprintf(stderr, "gpu_rows: there is no row '%s' (see --list)\n", name.c_str());
    return 2;
  }
  const Arguments arguments(argv + std::min(argc, 2), argv + argc);
  static const std::set<std::string> without_mpi{"count",   "nccl",  "probe",
                                                 "kernels", "moves", "copies"};
  if (without_mpi.contains(name)) return run_alone(name, found->second, arguments);
  return rankmesh::run(argc, argv, [&] {
    in_job = true;
    return found->second(arguments);
  });
}

}  // namespace

Register::Register(const char* name, Program program) { programs()[name] = std::move(program); }

int rank() {
  int result = 0;
  if (in_job) MPI_Comm_rank(MPI_COMM_WORLD, &result);
  return result;
}
int size() {
  int result = 1;
  if (in_job) MPI_Comm_size(MPI_COMM_WORLD, &result);
  return result;
}
void meet() { MPI_Barrier(MPI_COMM_WORLD); }

void print_line(const std::string& line) {
  if (rank() != 0) return;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);  // the row may be killed at its limit
}
int skip(std::string_view why) {
  say("skipped: {}", why);
  return skipped;
}

void require(bool condition, const std::string& text) {
  if (!condition) throw rankmesh::Error{text};
}

rankmesh::MeshOptions options() {
  rankmesh::MeshOptions result;
  result.share_devices = std::getenv("RANKMESH_TEST_SHARE_DEVICES") != nullptr;
  result.devices = rankmesh::DeviceUse::required;
  return result;
}

double now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>{time}.count();
}
double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double seconds(const rankmesh::device::Stream& stream, const std::function<void()>& call) {
  meet();
  const double begin = now();
  call();
  stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{60}});
  return now() - begin;
}

rankmesh::Mesh two_names(const rankmesh::GroupOptions& options_of_all) {
  rankmesh::MeshOptions wanted = options();
  wanted.names["all"] = options_of_all;
  return rankmesh::Mesh{MPI_COMM_WORLD, two_names_text, wanted};
}

void check_sum(rankmesh::GroupCoordinator& group, rankmesh::StreamRef stream, std::size_t count) {
  const std::vector<float> ones(count, 1);
  const rankmesh::device::DeviceBuffer<float> buffer{std::span<const float>{ones}};
  group.all_reduce(buffer.span(), stream);
  const auto sums = buffer.download(stream);
  const auto expected = static_cast<float>(group.size());
  require(std::ranges::all_of(sums, [&](float sum) { return sum == expected; }),
          fmt::format("a sum over {} ranks is wrong: {} instead of {}", group.size(), sums[0],
                      expected));
}

std::string end_mesh(rankmesh::Mesh& mesh) {
  try {
    mesh.close();
    return "close() returned";
  } catch (const rankmesh::Error& error) {
    if (!mesh.is_closed()) mesh.abort();
    return std::string{"close() threw: "} + error.what();
  }
}

void check_next_mesh() {
  meet();
  rankmesh::Mesh next{MPI_COMM_WORLD, "tp=auto", options()};
  check_sum(next["tp"], {});
  next.close();
}

Outcome try_call(const std::function<void()>& call) {
  try {
    call();
  } catch (const rankmesh::UsageError& error) {
    return {.refused = true, .text = error.what()};
  }
  return {};
}

}  // namespace gpu_rows

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "--list";
  if (name != "--list") return gpu_rows::run(name, argc, argv);
  for (const auto& [row, program] : gpu_rows::programs()) std::printf("%s\n", row.c_str());
  return 0;
}
