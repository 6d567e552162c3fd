// SPDX-License-Identifier: BSD-3-Clause
// Checkpoints: saved on one mesh, loaded on others; damaged files are named.
#include <doctest/doctest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "exchange/placed_tensors.hpp"
#include "rankmesh/exchange/checkpoint.hpp"
#include "rankmesh/exchange/sharded_buffer.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh::exchange::CheckpointOptions;
using rankmesh::exchange::FileError;
using rankmesh::exchange::list_checkpoint;
using rankmesh::exchange::load_checkpoint;
using rankmesh::exchange::LoadedTensor;
using rankmesh::exchange::save_checkpoint;
using rankmesh::exchange::SavedTensor;
using rankmesh_test::check;
using rankmesh_test::fill;
using rankmesh_test::Local;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

namespace {

// A folder that all ranks share, and that is removed at the end.
class Folder {
 public:
  explicit Folder(GroupCoordinator& group) : group_{group} {
    // Memory, where writing to disk costs nothing, if the ranks are on one host.
    for (const std::filesystem::path& parent :
         {std::filesystem::path{"/dev/shm"}, std::filesystem::current_path()}) {
      path = (parent / "rankmesh-XXXXXX").string();
      const bool is_made = !group.is_first() || ::mkdtemp(path.data()) != nullptr;
      std::vector<std::uint8_t> ending(path.end() - 6, path.end());
      group.broadcast(ending, RankInGroup{0});
      std::ranges::copy(ending, path.end() - 6);
      std::error_code error;
      int is_shared = is_made && std::filesystem::exists(path, error) ? 1 : 0;
      group.all_reduce(is_shared, ReduceOp::min);
      if (is_shared == 1) return;
      if (group.is_first()) std::filesystem::remove(path, error);
    }
    FAIL("the ranks share no folder");
  }
  ~Folder() {
    group_.barrier();
    std::error_code error;
    if (group_.is_first()) std::filesystem::remove_all(path, error);
  }
  std::string path;

 private:
  GroupCoordinator& group_;
};

struct Named {
  std::string name, place;
};

const std::vector<Named> model{
    {"embedding", "[3001,700] f32 @ tp=N : (tp, _)"},  // three pieces
    {"norm", "[37] bf16 @ tp=N : (_)"},
    {"scalar", "[] f64 @ tp=N : ()"},
    {"gradient", "[12,9] f32 @ tp=N : (_, _) sum(tp)"},
    {"empty", "[0,5] i32 @ tp=N : (_, tp)"},
    {"head", "[64,33] i64 @ tp=N : (_, tp)"},
};
const std::vector<Named> other{
    {"head", "[64,33] i64 @ w=1 : (_, _)"},       {"empty", "[0,5] i32 @ tp=N : (_, _)"},
    {"gradient", "[12,9] f32 @ tp=N : (tp, _)"},  {"scalar", "[] f64 @ tp=N : ()"},
    {"norm", "[37] f32 @ tp=N : (tp:cyclic(2))"}, {"embedding", "[3001,700] bf16 @ tp=N : (_, tp)"},
};

void save(GroupCoordinator& group, const std::string& root, const std::string& name, int round,
          const CheckpointOptions& options = {}) {
  std::vector<Local> memory;
  std::vector<SavedTensor> tensors;
  for (const Named& tensor : model) {
    const auto place = rankmesh_test::place(tensor.place);
    fill(place, memory.emplace_back(place), round);
    tensors.push_back({tensor.name, place, memory.back().source()});
  }
  save_checkpoint(group, root, name, tensors, options);
}

void load(GroupCoordinator& group, const std::string& folder, int round,
          const CheckpointOptions& options = {}) {
  std::vector<Local> memory;
  std::vector<LoadedTensor> tensors;
  for (const Named& tensor : other) {
    const auto place = rankmesh_test::place(tensor.place);
    memory.emplace_back(place, 0);
    tensors.push_back({tensor.name, place, memory.back().target()});
  }
  load_checkpoint(group, folder, tensors, options);
  for (std::size_t t = 0; t < tensors.size(); ++t)
    check(tensors[t].place, memory[t], round, tensors[t].name == "gradient" ? size() : 1);
}

// Exactly one rank throws a FileError with this text, the others learn it.
template <class Action>
void check_file_error(GroupCoordinator& group, const std::string& text, Action&& action) {
  std::vector<int> failed{0};
  try {
    action();
    FAIL_CHECK("no error");
  } catch (const FileError& error) {
    failed[0] = 1;
    CHECK_CONTAINS(error.message(), text);
  } catch (const MismatchError& error) {
    CHECK_CONTAINS(error.message(), text);
  }
  group.all_reduce(failed);
  CHECK(failed[0] == 1);
}

// Carries broadcasts, after a function of the test.
class BeforeBroadcast final : public Transport {
 public:
  explicit BeforeBroadcast(std::function<void()> action) : action_{std::move(action)} {}
  [[nodiscard]] bool supports(const Call& call) const override {
    return call.operation == Operation::broadcast && call.is_plain();
  }
  [[nodiscard]] bool has_async_forms() const override { return true; }
  void run(const Call& call, Waiter&) override { broadcast(call); }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override {
    struct Complete final : Pending {
      bool test() override { return true; }
    };
    broadcast(call);
    return std::make_unique<Complete>();
  }

 private:
  void broadcast(const Call& call) {
    action_();
    MPI_Bcast(call.out.data, static_cast<int>(call.out.bytes()), MPI_BYTE,
              static_cast<int>(call.root.value()), MPI_COMM_WORLD);
  }

  std::function<void()> action_;
};

void alter(const std::string& path, std::int64_t offset) {
  std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
  file.seekg(offset);
  const int byte = file.get();
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 1));
}

}  // namespace

TEST_CASE("the parts of a sharded buffer are saved, and loaded by one member") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const Folder folder{mesh["world"]};
  const std::vector<std::int64_t> sizes{5, 3, 0, 40, 7};
  const auto values_of = [&](std::int64_t t) {
    return std::vector<double>(static_cast<std::size_t>(sizes[static_cast<std::size_t>(t)]),
                               1.5 * static_cast<double>(t));
  };
  exchange::ShardedBuffer<double> weights{mesh["dp"], sizes, {.bytes = 80}};
  for (std::int64_t t = 0; t < weights.tensors(); ++t) weights.load(t, values_of(t));
  save_checkpoint(mesh["world"], folder.path, "one", weights.saved("weights"));
  if (const auto alone = mesh.new_group(std::vector{mesh.rank()})) {
    exchange::ShardedBuffer<double> loaded{*alone, sizes, {.keep_whole = true}};
    load_checkpoint(*alone, folder.path + "/one", loaded.loaded("weights"));
    loaded.changed();
    for (std::int64_t t = 0; t < loaded.tensors(); ++t) {
      const auto whole = loaded.gather(t);
      CHECK(std::ranges::equal(whole, values_of(t)));
    }
    mesh.close(alone);
  }
}

TEST_CASE("a checkpoint is saved on one mesh and loaded on others") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const Folder folder{tp};
  save(tp, folder.path, "step-1", 1);
  load(tp, folder.path + "/latest", 1);
  // Small files and little memory: several files, and several batches.
  const CheckpointOptions small{.memory = 100, .file_bytes = 1};
  save(tp, folder.path, "step-2", 2, small);
  CHECK(std::filesystem::exists(folder.path + "/step-2/model-00005-of-00005.safetensors"));
  load(tp, folder.path + "/latest", 2, small);
  load(tp, folder.path + "/step-1", 1, small);
  // On fewer ranks.
  const auto alone = mesh.new_group({mesh.rank()});
  Local scalar{TensorPlacement::parse("[] f64 @ w=1 : ()")};
  const auto head_place = TensorPlacement::parse("[64,33] i64 @ w=1 : (_, _)");
  std::vector<std::int64_t> head(64 * 33);
  load_checkpoint(*alone, folder.path + "/step-1",
                  std::vector<LoadedTensor>{{"head", head_place, head}});
  for (std::size_t i = 0; i < head.size(); ++i)
    REQUIRE(static_cast<double>(head[i]) ==
            rankmesh_test::value_of(static_cast<std::int64_t>(i), 1));
  const auto list = list_checkpoint(folder.path + "/step-1");
  REQUIRE(list.size() == model.size());
  CHECK(list[1].name == "norm");
  CHECK(list[1].type == DataType::bfloat16);
  CHECK(list[5].shape == std::vector<std::int64_t>{64, 33});
  tp.barrier();
}

TEST_CASE("a cut or altered file of a checkpoint is named") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const Folder folder{tp};
  const std::string file = folder.path + "/step/model-00001-of-00001.safetensors";
  const std::string manifest = folder.path + "/step/manifest.json";
  save(tp, folder.path, "step", 1);
  const auto damage = [&](auto&& action) {
    tp.barrier();
    if (tp.is_first()) action();
    tp.barrier();
  };
  const auto loads = [&] { load(tp, folder.path + "/step", 1); };
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(file));
  damage([&] { alter(file, bytes - 1); });
  check_file_error(tp, fmt::format("{} is altered: the checksum", file), loads);
  damage([&] { alter(file, bytes - 1); });
  loads();
  damage([&] { alter(file, 5'000'000); });  // in the second piece of the embedding
  check_file_error(tp, "of the tensor 'embedding', is wrong", loads);
  damage([&] { alter(file, 5'000'000); });
  damage([&] { alter(file, 20); });
  check_file_error(tp, fmt::format("{} is altered: its header", file), loads);
  damage([&] { alter(file, 20); });
  damage([&] { alter(manifest, 300); });
  check_file_error(tp, manifest, loads);
  damage([&] { alter(manifest, 300); });
  damage([&] { std::filesystem::resize_file(file, static_cast<std::uintmax_t>(bytes - 1)); });
  check_file_error(tp, fmt::format("{} is cut or altered: it has {} bytes", file, bytes - 1),
                   loads);
  damage([&] { std::filesystem::remove(file); });
  check_file_error(tp, "cannot open " + file, loads);
  CHECK_THROWS_WITH_AS((void)list_checkpoint(folder.path),
                       doctest::Contains("is the folder of all checkpoints"), FileError);
}

TEST_CASE("a save that replaces `latest` during a load does not disturb it") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const Folder folder{mesh["tp"]};
  const CheckpointOptions small{.memory = 100, .file_bytes = 1};  // many files
  save(mesh["tp"], folder.path, "step-1", 1, small);
  save(mesh["tp"], folder.path, "step-2", 2);
  const std::string latest = folder.path + "/latest";
  const auto link_to = [&](const char* name) {
    if (rank() != 0) return;
    std::filesystem::remove(latest);
    std::filesystem::create_directory_symlink(name, latest);
  };
  // The first broadcast comes after rank 0 has read the manifest, and before others open files.
  for (const char* ending : {"", "/"}) {
    link_to("step-1");
    MeshOptions options;
    options.routes = "*.broadcast=relinking";
    options.transports["relinking"] = [&](const TransportGroup&) {
      return std::make_unique<BeforeBroadcast>([&] { link_to("step-2"); });
    };
    Mesh loading{MPI_COMM_WORLD, "tp=auto", options};
    load(loading["tp"], latest + ending, 1);
    loading.close();
    if (rank() == 0 && size() > 1) CHECK(std::filesystem::read_symlink(latest) == "step-2");
  }
}

TEST_CASE("ranks that load different checkpoints learn it") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const Folder folder{mesh["tp"]};
  save(mesh["tp"], folder.path, "step-1", 1);
  save(mesh["tp"], folder.path, "step-2", 2);
  const std::string second = folder.path + "/step-2";
  const bool is_odd = rank() == size() - 1;
  const auto text = thrown_by<MismatchError>([&] {
                      load(mesh["tp"], is_odd ? second : folder.path + "/step-1", 1);
                    }).message();
  CHECK_CONTAINS(text, "load_checkpoint of " + second + ": manifest ");
  // The path may differ.
  load(mesh["tp"], is_odd ? second : second + "/../step-2", 2);
}

TEST_CASE("a checkpoint may have more files than a process may open") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const Folder folder{tp};
  const auto place = rankmesh_test::place("[1] i32 @ tp=N : (_)");
  std::vector<int> saved_values(200), loaded_values(200);
  std::vector<SavedTensor> saved;
  std::vector<LoadedTensor> loaded;
  for (std::size_t t = 0; t < 200; ++t) {
    saved_values[t] = static_cast<int>(t);
    saved.push_back({std::to_string(t), place, std::span{saved_values}.subspan(t, 1)});
    loaded.push_back({std::to_string(t), place, std::span{loaded_values}.subspan(t, 1)});
  }
  const std::filesystem::directory_iterator descriptors{"/proc/self/fd"};
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const auto opened = std::distance(begin(descriptors), end(descriptors));
  const rlimit limited{static_cast<rlim_t>(opened) + 100, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &limited);
  const CheckpointOptions one_tensor{.file_bytes = 1};
  save_checkpoint(tp, folder.path, "many", saved, one_tensor);
  load_checkpoint(tp, folder.path + "/many", loaded, one_tensor);
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(loaded_values == saved_values);
}

TEST_CASE("a checkpoint that cannot be written leaves the last one loadable") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const Folder folder{tp};
  save(tp, folder.path, "step-1", 1);
  check_file_error(tp, "cannot create " + folder.path + "/step-1",
                   [&] { save(tp, folder.path, "step-1", 2); });
  load(tp, folder.path + "/latest", 1);
  // A limit on the size of files is an error like a full disk.
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limited{1'000'000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limited);
  check_file_error(tp, "cannot enlarge " + folder.path + "/step-2/model-00001-of-00001",
                   [&] { save(tp, folder.path, "step-2", 2); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK_FALSE(std::filesystem::exists(folder.path + "/step-2"));
  load(tp, folder.path + "/latest", 1);
  save(tp, folder.path, "step-2", 3);
  load(tp, folder.path + "/latest", 3);
}

TEST_CASE("wrong arguments of checkpoints are refused") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const Folder folder{tp};
  const auto place = rankmesh_test::place("[6] f32 @ tp=N : (_)");
  std::vector<float> values(6);
  const auto saved = [&](const std::string& name, const std::vector<SavedTensor>& tensors) {
    return thrown_by<UsageError>([&] { save_checkpoint(tp, folder.path, name, tensors); })
        .message();
  };
  CHECK_CONTAINS(saved("step", {{"a", place, values}, {"a", place, values}}), "occurs twice");
  CHECK_CONTAINS(saved("step", {{"a", place, values}, {"\xff", place, values}}),
                 "the name of tensor 1 is not UTF-8");
  CHECK_CONTAINS(saved("", {}), "cannot be the name of the folder");
  CHECK_CONTAINS(saved("latest", {}), "cannot be the name of the folder");
  CHECK_CONTAINS(saved("short", {{"a", place, std::span{values}.first(5)}}),
                 "it has 5 elements, 6 are needed");
  save_checkpoint(tp, folder.path, "step", std::vector<SavedTensor>{{"a", place, values}});
  const auto loaded = [&](const std::string& name, const std::string& to) {
    const std::vector<LoadedTensor> tensors{{name, rankmesh_test::place(to), values}};
    return thrown_by<UsageError>([&] { load_checkpoint(tp, folder.path + "/step", tensors); })
        .message();
  };
  CHECK_CONTAINS(loaded("b", "[6] f32 @ tp=N : (_)"), "there is no tensor 'b'");
  CHECK_CONTAINS(loaded("a", "[2,3] f32 @ tp=N : (_, _)"), "has the shape [6], not [2,3]");
  CHECK_CONTAINS(loaded("a", "[6] i32 @ tp=N : (_)"), "cannot become int32");
  if (size() > 1) {
    const std::string name = rank() == size() - 1 ? "b" : "a";
    CHECK_THROWS_AS(
        save_checkpoint(tp, folder.path, "other", std::vector<SavedTensor>{{name, place, values}}),
        MismatchError);
  }
}
