// SPDX-License-Identifier: BSD-3-Clause
// The device that a rank uses: how it is chosen, and calls while another device is current.
#include <doctest/doctest.h>

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "device/test_platform.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using test_platform::short_timeout;

TEST_CASE("meshes of one process use one device") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  MeshOptions other = short_timeout();
  other.device = (*mesh.device() + 1) % 16;
  if (test_platform::is_double() && test_platform::has_16_devices())
    CHECK_THROWS_WITH_AS((Mesh{MPI_COMM_WORLD, "tp=auto", other}),
                         doctest::Contains("another mesh of this process uses device"),
                         MismatchError);
  other.device.reset();
  Mesh second{MPI_COMM_WORLD, "tp=auto", other};
  CHECK(second.device() == mesh.device());
  second.close();
  mesh.close();
}

TEST_CASE("a closed mesh does not reserve its device any more") {
  SKIP_UNLESS(test_platform::is_double() && test_platform::has_16_devices(),
              "needs the CPU doubles of CUDA and NCCL, with 16 devices");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const int device = *mesh.device();
  mesh.close();
  MeshOptions other = test_platform::options();
  other.device = (device + 1) % 16;
  Mesh second{MPI_COMM_WORLD, "tp=auto", other};
  CHECK(second.device() == other.device);
  second.close();
  (void)cudaSetDevice(device);
}

TEST_CASE("a device that the program has made current is taken, whatever the local rank") {
  SKIP_UNLESS(test_platform::is_double() && test_platform::has_16_devices(),
              "needs the CPU doubles of CUDA and NCCL, with 16 devices");
  SKIP_UNLESS(rankmesh_test::size() < 16, "needs more devices than ranks, and the double has 16");
  int current = 0;
  (void)cudaGetDevice(&current);
  const int chosen = 15 - rank();  // device 0 is everybody's default, so it is no choice
  (void)cudaSetDevice(chosen);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  CHECK(mesh.device() == chosen);
  mesh.close();
  (void)cudaSetDevice(current);
}

TEST_CASE("meshes on parts of a node take different devices: the launcher's local rank counts") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double() && test_platform::has_16_devices(),
              "needs the CPU doubles of CUDA and NCCL, with 16 devices");
  SKIP_UNLESS(std::getenv("OMPI_COMM_WORLD_LOCAL_RANK") != nullptr ||
                  std::getenv("MPI_LOCALRANKID") != nullptr,
              "needs a launcher that tells the local rank");
  int current = 0;
  (void)cudaGetDevice(&current);
  (void)cudaSetDevice(0);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() < size() / 2 ? 0 : 1, rank(), &part);
  {
    Mesh mesh{part, "tp=auto", test_platform::options()};
    CHECK(mesh.device() == rank() % 16);
    mesh.close();
  }
  MPI_Comm_free(&part);
  (void)cudaSetDevice(current);
}

TEST_CASE("Slurm's local rank counts only where its rank is that of the process manager") {
  SKIP_UNLESS(test_platform::is_double() && test_platform::has_16_devices(),
              "needs the CPU doubles of CUDA and NCCL, with 16 devices");
  SKIP_UNLESS(size() <= 15, "needs a device for each rank");
  std::map<const char*, std::optional<std::string>> before;
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "FLUX_TASK_LOCAL_ID",
                           "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "SLURM_LOCALID"}) {
    const char* value = std::getenv(name);
    before[name] = value == nullptr ? std::nullopt : std::optional<std::string>{value};
    unsetenv(name);
  }
  int current = 0;
  (void)cudaGetDevice(&current);
  const int local = rank() + 1;  // another than the mesh's own
  setenv("PMIX_RANK", std::to_string(rank() + 100).c_str(), 1);
  setenv("SLURM_LOCALID", std::to_string(local).c_str(), 1);
  for (const bool is_own : {false, true}) {
    CAPTURE(is_own);
    setenv("SLURM_PROCID", std::to_string(is_own ? rank() + 100 : 0).c_str(), 1);
    (void)cudaSetDevice(0);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
    CHECK(mesh.device() == (is_own ? local : rank()));
    mesh.close();
  }
  for (const auto& [name, value] : before) value ? setenv(name, value->c_str(), 1) : unsetenv(name);
  (void)cudaSetDevice(current);
}

TEST_CASE(
    "while another device is current, no group and no stream is created, and no unique ID is "
    "lost") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double() && test_platform::has_16_devices(),
              "needs the CPU doubles of CUDA and NCCL, with 16 devices");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", short_timeout()};
  const FakeNcclCounters before = test_platform::nccl();
  if (rank() == 0) (void)cudaSetDevice((*mesh.device() + 1) % 16);
  CHECK_THROWS_WITH_AS(mesh.new_group(mesh["tp"].ranks().to_vector()),
                       doctest::Contains("is current, but the mesh uses device"), MismatchError);
  CHECK(test_platform::nccl().unique_ids == before.unique_ids);
  if (rank() == 0) {
    CHECK_THROWS_AS((void)mesh["tp"].stream(), UsageError);
    (void)cudaSetDevice(*mesh.device());
  }
  CHECK(mesh["tp"].stream().native() != nullptr);
  mesh.close();
}

TEST_CASE("only the device of the mesh gets a context, whatever thread uses it") {
  SKIP_UNLESS(test_platform::is_double() && test_platform::has_16_devices(),
              "needs the CPU doubles of CUDA and NCCL, with 16 devices");
  SKIP_UNLESS(size() < 16, "device 0, which is CUDA's default, must be another");
  int current = 0;
  (void)cudaGetDevice(&current);
  MeshOptions options = test_platform::options();
  options.device = 15 - rank();
  test_platform::cuda_hook<decltype(&fake_cuda_forget_contexts)>("fake_cuda_forget_contexts")();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  const device::DeviceBuffer<float> value{std::span<const float>{std::vector<float>{1}}};
  tp.all_reduce(value.span());
  tp.all_reduce_async(value.span()).wait();
  // A new group waits for the device in a thread of its own.
  const auto group = mesh.new_group(tp.ranks().to_vector(), "mine");
  group->all_reduce(value.span());
  std::optional<device::Event> made;
  std::thread{[&] { device::run_on(*mesh.device(), [&] { made.emplace(); }); }}.join();
  made->record(StreamRef{});
  mesh.close();
  const auto has_context =
      test_platform::cuda_hook<decltype(&fake_cuda_has_context)>("fake_cuda_has_context");
  for (int device = 0; device < 16; ++device) {
    CAPTURE(device);
    CHECK(has_context(device) == (device == options.device));
  }
  (void)cudaSetDevice(current);
}

TEST_CASE("a call while another device is current throws and changes nothing") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double() && test_platform::has_16_devices(),
              "needs the CPU doubles of CUDA and NCCL, with 16 devices");
  Mesh mesh{MPI_COMM_WORLD, "dp=1,tp=auto", test_platform::options()};
  const device::DeviceBuffer<float> value{std::span<const float>{std::vector<float>{1}}};
  Work work = mesh["tp"].all_reduce_async(value.span());
  (void)cudaSetDevice((*mesh.device() + 1) % 16);
  const auto is_refused = doctest::Contains("is current, but the mesh uses device");
  for (const char* name : {"tp", "dp"}) {  // a group of one rank, too
    CHECK_THROWS_WITH_AS(mesh[name].all_reduce(value.span()), is_refused, UsageError);
    CHECK_THROWS_WITH_AS(mesh[name].wait(StreamRef{}), is_refused, UsageError);
  }
  // The default stream of the other device must not wait instead.
  CHECK_THROWS_WITH_AS(work.wait(), is_refused, UsageError);
  (void)cudaSetDevice(*mesh.device());
  work.wait();
  mesh["tp"].all_reduce(value.span());
  CHECK(value.download(StreamRef{}) == std::vector<float>{static_cast<float>(size() * size())});
  mesh.close();
}

TEST_CASE("two MIG instances of one GPU are refused with a hint, before NCCL refuses them") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(std::getenv("FAKE_CUDA_INSTANCES") != nullptr, "runs where the double has instances");
  const FakeNcclCounters before = test_platform::nccl();
  const auto open = [] {
    const MeshOptions options = short_timeout();
    const Mesh mesh(MPI_COMM_WORLD, "tp=auto", options);
  };
  CHECK_THROWS_WITH_AS(open(), doctest::Contains("ranks 0 and 1 use two MIG instances of one GPU"),
                       MismatchError);
  CHECK(test_platform::nccl().unique_ids == before.unique_ids);
}
