// SPDX-License-Identifier: BSD-3-Clause
// Mistakes with checkpoints.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "faults/operations.hpp"
#include "rankmesh/exchange/checkpoint.hpp"

namespace faults {
namespace {

namespace fs = std::filesystem;
using namespace exchange;

// A folder for checkpoints, with one name on all ranks. The first rank removes it.
class Folder {
 public:
  explicit Folder(const Cell& c) : is_owner_{c.rank == 0} {
    long number = ::getpid();
    MPI_Bcast(&number, 1, MPI_LONG, 0, c.world);
    // Emulated hosts share the folder of the program, but not /tmp and /dev/shm.
    path_ = fs::read_symlink("/proc/self/exe").parent_path() /
            ("checkpoints-" + std::to_string(number));
    if (is_owner_) fs::create_directories(path_);
    MPI_Barrier(c.world);
  }
  ~Folder() {
    std::error_code error;
    if (is_owner_) fs::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string path(const std::string& name = {}) const {
    return name.empty() ? path_ : path_ / name;
  }

 private:
  bool is_owner_;
  fs::path path_;
};

using Tensors = std::vector<std::pair<std::string, std::string>>;  // names, and types with shapes

TensorPlacement everywhere(const Cell& c, const std::string& tensor) {
  return TensorPlacement::parse(tensor + " @ x=" + std::to_string(c.size) + " : (_)");
}
std::vector<SavedTensor> saved(Cell& c, const Tensors& tensors) {
  std::vector<SavedTensor> list;
  for (const auto& [name, tensor] : tensors)
    list.push_back({name, everywhere(c, tensor),
                    tensor.ends_with("f64") ? TensorSource{c.memory<double>(64)}
                                            : TensorSource{c.memory<float>(64)}});
  return list;
}
void save(Cell& c, const Tensors& tensors, const CheckpointOptions& options = {}) {
  const Folder folder{c};
  save_checkpoint(*c.group, folder.path(), "step", saved(c, tensors), options);
}

const Tensors usual{{"a", "[64] f32"}, {"b", "[64] f32"}};

void other_name(Cell& c) {
  c.expect({"tensor 'c'"}, {"tensor 'b'"});
  save(c, c.pick(Tensors{usual[0], {"c", "[64] f32"}}, usual));
}
void other_order(Cell& c) {
  c.expect({"tensor 'b'"}, {"tensor 'a'"});
  save(c, c.pick(Tensors{usual[1], usual[0]}, usual));
}
void other_number(Cell& c) {
  c.expect({"no more entries"}, {"tensor 'b'"});
  save(c, c.pick(Tensors{usual[0]}, usual));
}
void other_shape(Cell& c) {
  c.expect({"tensor 'b'", "32"}, {"tensor 'b'", "64"});
  save(c, c.pick(Tensors{usual[0], {"b", "[32] f32"}}, usual));
}
void other_type(Cell& c) {
  c.expect({"tensor 'b'", "f64"}, {"tensor 'b'", "f32"});
  save(c, c.pick(Tensors{usual[0], {"b", "[64] f64"}}, usual));
}
void other_options(Cell& c) {
  c.expect({"4096 bytes per file"}, {"8192 bytes per file"});
  save(c, usual, {.file_bytes = c.pick(4096, 8192)});
}
void other_folder(Cell& c) {
  c.expect({"the folder", "/late"}, {"the folder", "/step"});
  const Folder folder{c};
  save_checkpoint(*c.group, folder.path(), c.pick("late", "step"), saved(c, usual));
}
void other_list_to_load(Cell& c) {
  c.expect({"tensor 'b'"}, {"tensor 'a'"});
  const Folder folder{c};
  save_checkpoint(*c.group, folder.path(), "step", saved(c, usual));
  const LoadedTensor tensor{c.pick("b", "a"), everywhere(c, "[64] f32"),
                            TensorTarget{c.memory<float>(64)}};
  load_checkpoint(*c.group, folder.path("latest"), {&tensor, 1});
}

// The lock of another job that is saving there.
void while_another_job_saves(Cell& c) {
  c.expect({"another job is saving"}, {});
  const Folder folder{c};
  const int descriptor =
      c.is_odd() ? ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (descriptor >= 0) ::flock(descriptor, LOCK_EX);
  MPI_Barrier(c.world);
  try {
    save_checkpoint(*c.group, folder.path(), "step", saved(c, usual));
  } catch (...) {
    if (descriptor >= 0) ::close(descriptor);
    throw;
  }
}
void over_a_file_of_the_user(Cell& c) {
  c.expect({"latest is not a link"}, {});
  const Folder folder{c};
  if (c.rank == 0) std::ofstream{folder.path("latest")} << "mine";
  try {
    save_checkpoint(*c.group, folder.path(), "step", saved(c, usual));
  } catch (...) {
    if (c.rank == 0 && !fs::is_regular_file(folder.path("latest"))) c.wrong("latest");
    throw;
  }
}

}  // namespace

Kinds checkpoints() {
  const auto kind = [](const char* name, void (*fault)(Cell&), Expected expected) {
    return Kind{.name = name, .expected = expected, .fault = fault, .has_one_size = true};
  };
  using enum Expected;
  return {kind("checkpoint_name", other_name, named),
          kind("checkpoint_order", other_order, named),
          kind("checkpoint_number", other_number, named),
          kind("checkpoint_shape", other_shape, named),
          kind("checkpoint_type", other_type, named),
          kind("checkpoint_options", other_options, named),
          kind("checkpoint_folder", other_folder, named),
          kind("checkpoint_load", other_list_to_load, named),
          kind("checkpoint_two_jobs", while_another_job_saves, told),
          kind("checkpoint_latest", over_a_file_of_the_user, told)};
}

}  // namespace faults
