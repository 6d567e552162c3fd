// SPDX-License-Identifier: BSD-3-Clause
// What belongs to the program alone: rankmesh leaves no message on its communicator, however long
// it takes to open a mesh, and calls no function of MPI in a child process. Delays and counts calls
// through MPI's profiling interface.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/detail/patience.hpp"
#include "rankmesh/rankmesh.hpp"

namespace {

std::chrono::milliseconds delay{0};  // before this rank introduces itself to the others
long keys = 0;                       // of attributes, that were created

}  // namespace

// The library's calls come through here. NOLINTBEGIN
extern "C" int MPI_Igather(const void* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u,
                           int root, MPI_Comm c, MPI_Request* r) {
  std::this_thread::sleep_for(delay);
  return PMPI_Igather(in, n, t, out, m, u, root, c, r);
}
extern "C" int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function* copy,
                                      MPI_Comm_delete_attr_function* erase, int* key, void* state) {
  ++keys;
  return PMPI_Comm_create_keyval(copy, erase, key, state);
}
// NOLINTEND

namespace {

using Clock = std::chrono::steady_clock;

// The others ask the late rank what it does, when half of their time has passed.
bool leaves_no_message(bool is_late) {
  rankmesh::detail::patience_of_tests().before_deadline = std::chrono::seconds{3};
  rankmesh::MeshOptions options;
  options.devices = rankmesh::DeviceUse::off;
  options.timeout = std::chrono::seconds{6};
  delay = std::chrono::milliseconds{is_late ? 4000 : 0};
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto", options};
  delay = {};
  int left = 0;
  for (const auto end = Clock::now() + std::chrono::milliseconds{100}; Clock::now() < end;) {
    int is_there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    left += is_there;
  }
  mesh.close();
  if (left != 0) std::fprintf(stderr, "a message was left on the program's communicator\n");
  return left == 0;
}

bool child_calls_nothing() {
  rankmesh::MeshOptions options;
  options.devices = rankmesh::DeviceUse::off;
  std::optional<rankmesh::Mesh> mesh{std::in_place, MPI_COMM_WORLD, "dp=auto", options};
  const pid_t child = fork();
  if (child == 0) {
    keys = 0;
    mesh.reset();
    std::_Exit(keys == 0 ? 0 : 1);
  }
  int status = 0;
  const bool has_ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
  mesh->close();
  if (has_ended && WEXITSTATUS(status) == 0) return true;
  std::fprintf(stderr, "a child process that destroyed its copy of a mesh called MPI\n");
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bool is_right = leaves_no_message(rank == size - 1);
  is_right = child_calls_nothing() && is_right;
  int wrong = is_right ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return wrong == 0 ? 0 : 1;
}
