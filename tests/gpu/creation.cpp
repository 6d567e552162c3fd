// SPDX-License-Identifier: BSD-3-Clause
// Rows about the cost of communicators: the time to create and close one, its device memory, and
// what unique IDs leave behind that nobody uses.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/device/stream.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::GroupOptions;
using rankmesh::Mesh;

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator{folder},
                       std::filesystem::directory_iterator{});
}

int groups(const Arguments& arguments) {
  const int rounds = arguments.empty() ? 50 : std::stoi(arguments[0]);
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  std::vector<rankmesh::Rank> everyone;
  for (int r = 0; r < size(); ++r) everyone.emplace_back(r);
  std::vector<double> opening;
  std::vector<double> closing;
  std::ptrdiff_t descriptors = 0;
  for (int round = 0; round < rounds; ++round) {
    const double begin = now();
    const auto group = mesh.new_group(everyone);
    opening.push_back(now() - begin);
    check_sum(*group, {});
    const double middle = now();
    mesh.close(*group);
    closing.push_back(now() - middle);
    if (round == 4) descriptors = entries("/proc/self/fd");
  }
  const auto more = entries("/proc/self/fd") - descriptors;
  mesh.close();
  say("open descriptors: {} more after {} groups than after 5", more, rounds);
  require(rounds < 20 || more < 10, "groups that were closed leave descriptors behind");
  summarise("{} groups: created in {:.1f} ms, closed in {:.1f} ms (medians)", rounds,
            1e3 * median(opening), 1e3 * median(closing));
  return 0;
}

int unused_ids(const Arguments&) {
  const auto& nccl = rankmesh::nccl::Library::load();
  ncclUniqueId id{};
  nccl.check(nccl.GetUniqueId(&id), "ncclGetUniqueId");  // the first one also starts NCCL itself
  constexpr int ids = 10;
  const auto descriptors = entries("/proc/self/fd");
  const auto threads = entries("/proc/self/task");
  for (int i = 0; i < ids; ++i) nccl.check(nccl.GetUniqueId(&id), "ncclGetUniqueId");
  summarise("{} unique IDs that nobody used left {} descriptors and {} threads", ids,
            entries("/proc/self/fd") - descriptors, entries("/proc/self/task") - threads);
  return 0;
}

double free_mib() {
  std::size_t free = 0;
  std::size_t total = 0;
  meet();
  rankmesh::device::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  rankmesh::device::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  meet();
  return static_cast<double>(free) / (1 << 20);
}

// Prints how much free memory a communicator takes on rank 0's device, per rank on that device.
template <class Make>
void measure(const std::string& what, int sharers, const Make& make) {
  const double before = free_mib();
  const auto communicator = make();
  const double created = free_mib();
  communicator->use();
  say("{:<44} {:8.1f} MiB after its creation {:8.1f} MiB after its first sum", what,
      (before - created) / sharers, (before - free_mib()) / sharers);
}

struct RawUse {
  explicit RawUse(const RawOptions& options) : raw{options} {}
  void use() const {
    raw.all_reduce(value.data(), value.data(), 1000, nullptr);
    rankmesh::device::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  RawCommunicator raw;
  rankmesh::device::DeviceBuffer<float> value{1000};
};

struct MeshUse {
  explicit MeshUse(const GroupOptions& wanted) : mesh{two_names(wanted)} {}
  ~MeshUse() { mesh.close(); }
  void use() { check_sum(mesh["all"], {}); }
  Mesh mesh;
};

int memory(const Arguments&) {
  choose_device();
  for (const char* name : {"NCCL_MAX_CTAS", "NCCL_BUFFSIZE", "NCCL_NET", "NCCL_CUMEM_HOST_ENABLE"})
    if (const char* value = std::getenv(name)) say("{}={}", name, value);
  const bool shared = std::getenv("RANKMESH_TEST_SHARE_DEVICES") != nullptr;
  const int devices = rankmesh::device::cuda_versions().devices;
  const int sharers = shared ? std::max(1, size() / std::max(1, devices)) : 1;
  measure("the first communicator, and NCCL itself", sharers,
          [] { return std::make_unique<RawUse>(RawOptions{}); });
  measure("NCCL alone", sharers, [] { return std::make_unique<RawUse>(RawOptions{}); });
  measure("NCCL alone, non-blocking", sharers,
          [] { return std::make_unique<RawUse>(RawOptions{.blocking = false}); });
  for (const int ctas : {1, 4, 16})
    measure(fmt::format("NCCL alone, at most {} CTAs", ctas), sharers,
            [&] { return std::make_unique<RawUse>(RawOptions{.max_ctas = ctas}); });
  measure("a mesh of two communicators", sharers,
          [] { return std::make_unique<MeshUse>(GroupOptions{}); });
  measure("... of which one is split from the other", sharers,
          [] { return std::make_unique<MeshUse>(GroupOptions{.split_from = "tp"}); });
  measure("... and shares its resources", sharers, [] {
    return std::make_unique<MeshUse>(GroupOptions{.split_from = "tp", .share_resources = true});
  });
  summarise("device memory per rank; see the figures below");
  return 0;
}

const Register groups_row{"groups", groups};
const Register ids_row{"unused_ids", unused_ids};
const Register memory_row{"memory", memory};

}  // namespace
}  // namespace gpu_rows
