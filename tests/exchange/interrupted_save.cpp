// SPDX-License-Identifier: BSD-3-Clause
// interrupted_save FOLDER NAME VALUE [CALL NUMBER]: a job that saves a checkpoint of one tensor of
// 3 MB, whose elements are VALUE. Each rank kills itself before its call with this number of the
// system's function CALL: pwrite, fsync or rename.
#include <dlfcn.h>
#include <sys/types.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/exchange/checkpoint.hpp"
#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;
using namespace rankmesh::exchange;

namespace {

std::string deadly_call;
int calls_left = 0;

void count(const char* call) {
  if (deadly_call == call && --calls_left == 0) (void)std::raise(SIGKILL);
}

// The function of the system that a function of this program hides.
template <class Function>
Function* hidden(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t pwrite64(int file, const void* data, std::size_t bytes, off64_t offset) {
  count("pwrite");
  return hidden<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64")(file, data, bytes,
                                                                             offset);
}
extern "C" int fsync(int file) {
  count("fsync");
  return hidden<int(int)>("fsync")(file);
}
extern "C" int rename(const char* from, const char* to) noexcept {
  count("rename");
  return hidden<int(const char*, const char*)>("rename")(from, to);
}

int main(int argc, char** argv) {
  const mpi::Environment environment{argc, argv};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const auto place =
      TensorPlacement::parse(fmt::format("[750,1000] f32 @ tp={} : (tp, _)", mesh.size()));
  const std::vector<float> values(static_cast<std::size_t>(place.local_count(mesh.rank())),
                                  std::strtof(argv[3], nullptr));
  if (argc > 5) {
    deadly_call = argv[4];
    calls_left = std::atoi(argv[5]);
  }
  int status = 0;
  try {
    save_checkpoint(mesh["tp"], argv[1], argv[2],
                    std::vector<SavedTensor>{{"values", place, values}});
  } catch (const Error& error) {
    std::printf("rank %d: %s\n", static_cast<int>(mesh.rank().value()), error.message().c_str());
    status = 1;
  }
  mesh.close();
  return status;
}
