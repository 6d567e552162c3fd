// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "detail/checkpoint_files.hpp"
#include "detail/checkpoint_steps.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {
namespace {

using detail::CheckpointLayout;
using detail::File;
using detail::TensorInFile;

// One call of save_checkpoint().
class Saving {
 public:
  Saving(GroupCoordinator& group, const std::string& root, const std::string& name,
         std::span<const SavedTensor> tensors, const CheckpointOptions& options)
      : group_{group},
        root_{root},
        name_{name},
        tensors_{tensors},
        options_{options},
        files_{root + "/" + name, File::Mode::write},
        activity_{fmt::format("save_checkpoint of {}/{}", root, name)} {}

  void run() {
    const rankmesh::detail::CalledBy by{rankmesh::detail::GroupAccess::runtime(group_),
                                        detail::UserFunction::save_checkpoint};
    std::vector<std::string> arguments{
        fmt::format("the folder {}/{}", root_, name_),
        fmt::format("{} bytes of memory, {} bytes per file", options_.memory, options_.file_bytes)};
    for (const SavedTensor& tensor : tensors_)
      arguments.push_back(
          fmt::format("tensor '{}' at '{}'", tensor.name, tensor.place.to_string()));
    detail::on_all(
        group_, activity_,
        [&] {
          validate();
          layout_ = CheckpointLayout{stored(tensors_), options_.file_bytes};
          checksums_.resize(2 * static_cast<std::size_t>(layout_.pieces));
        },
        arguments);
    detail::on_all(group_, activity_, [&] {
      if (!is_first()) return;
      lock_.emplace(root_);
      detail::create_folder(root_, name_);
    });
    try {
      detail::on_all(group_, activity_, [&] { create_files(); });
      write_tensors();
      detail::on_all(group_, activity_, [&] { files_.sync(); });
      run_or_leak([&] { group_.all_reduce_async(checksums_, ReduceOp::max).wait(); }, checksums_);
      publish();
    } catch (...) {
      give_up();
      throw;
    }
  }

 private:
  static std::vector<StoredTensor> stored(std::span<const SavedTensor> tensors) {
    std::vector<StoredTensor> list;
    for (const SavedTensor& tensor : tensors)
      list.push_back({tensor.name, tensor.place.type(), tensor.place.shape()});
    return list;
  }

  [[nodiscard]] std::int64_t self() const { return group_.rank_in_group().value(); }
  [[nodiscard]] bool is_first() const { return group_.is_first(); }

  void validate() const {
    const auto refuse = [&](const std::string& what, const std::string& hint) {
      throw UsageError{fmt::format("{}: {}", activity_, what), hint};
    };
    if (name_.empty() || name_.find('/') != std::string::npos || name_ == "latest" ||
        name_.front() == '.')
      refuse(fmt::format("'{}' cannot be the name of the folder", name_),
             "use a name such as step-1000");
    if (options_.memory < 1 || options_.file_bytes < 1)
      refuse(fmt::format("{} bytes of memory, {} bytes per file", options_.memory,
                         options_.file_bytes),
             "set both to 1 or more");
    std::set<std::string> names;
    for (const SavedTensor& tensor : tensors_)
      if (tensor.name.empty() || tensor.name == "__metadata__" || !names.insert(tensor.name).second)
        refuse(fmt::format("the name '{}' of a tensor is empty, reserved, or occurs twice",
                           tensor.name),
               "give each tensor a name of its own");
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      if (!detail::is_utf8(tensors_[t].name))
        refuse(fmt::format("the name of tensor {} is not UTF-8", t), "use names in UTF-8");
  }

  // Creates the files with their headers and their final sizes.
  void create_files() {
    for (std::size_t i = 0; i < layout_.files.size(); ++i) {
      if (static_cast<std::int64_t>(i) % group_.size() != self()) continue;
      const detail::CheckpointFile& wanted = layout_.files[i];
      File file{fmt::format("{}/{}/{}", root_, name_, wanted.name), File::Mode::create};
      file.resize(wanted.bytes);
      file.write(0, std::as_bytes(std::span{wanted.header}));
      file.sync();
    }
  }

  void write_tensors() {
    std::vector<const TensorInFile*> list;
    for (const TensorInFile& tensor : layout_.tensors)
      if (tensor.pieces > 0) list.push_back(&tensor);
    detail::for_each_batch(list, options_.memory * group_.size(),
                           [&](std::size_t first, std::size_t last) {
                             write_batch(std::span{list}.subspan(first, last - first));
                           });
  }

  void write_batch(std::span<const TensorInFile* const> batch) {
    detail::MovingBatch moving;
    detail::on_all(group_, activity_, [&] {
      for (const TensorInFile* tensor : batch) {
        const auto number = static_cast<std::size_t>(tensor - layout_.tensors.data());
        const SavedTensor& saved = tensors_[number];
        moving.memory.emplace_back(*tensor, self(), group_.size());
        moving.moves.push_back({saved.place, moving.memory.back().place(), saved.name});
        moving.sources.push_back(saved.source);
        moving.targets.emplace_back().memory = moving.memory.back().buffer();
      }
      moving.check(Rank{self()});
    });
    moving.run(group_, options_.memory);
    detail::on_all(group_, activity_, [&] {
      for (std::size_t t = 0; t < batch.size(); ++t)
        moving.memory[t].for_each([&](std::int64_t piece, std::span<const std::byte> bytes) {
          write_piece(*batch[t], piece, bytes);
        });
    });
  }

  void write_piece(const TensorInFile& tensor, std::int64_t piece,
                   std::span<const std::byte> bytes) {
    files_[layout_.files[tensor.file].name].write(tensor.begin + piece * tensor.piece_bytes, bytes);
    const Hash128 sum = hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const auto number = static_cast<std::size_t>(tensor.first_piece + piece);
    checksums_[2 * number] = sum.high;
    checksums_[2 * number + 1] = sum.low;
  }

  // The link exists before the first rank may rename it, and nobody goes on after an error before
  // it is gone. So a rank that was excluded, or that others do not wait for any longer, cannot
  // replace `latest` afterwards, whenever it was stopped.
  void publish() {
    detail::on_all(group_, activity_, [&] {
      if (is_first()) finish();
    });
    may_be_published_ = true;
    detail::on_all(group_, activity_, [] {});  // all know that the link exists
    detail::on_all(group_, activity_, [&] {
      if (is_first()) detail::set_latest(root_, link());
    });
  }

  // Whoever has removed the link knows that it was not renamed and will not be. In a mesh that may
  // survive, the folder stays: an excluded rank may come here when the others have saved again.
  void give_up() const noexcept {
    const bool is_unpublished = detail::remove_link(root_, link()) || !may_be_published_;
    const auto& mesh = *rankmesh::detail::GroupAccess::runtime(group_).control;
    if (is_unpublished && mesh.losses == nullptr) detail::remove_folder(root_, name_);
  }

  [[nodiscard]] std::string link() const { return "latest.new-" + name_; }

  // Called when all elements are on disk.
  void finish() {
    std::vector<Hash128> sums;
    for (std::size_t i = 0; i < checksums_.size(); i += 2)
      sums.push_back({checksums_[i], checksums_[i + 1]});
    const std::string folder = root_ + "/" + name_;
    detail::write_file(folder + "/model.safetensors.index.json", detail::index_text(layout_));
    detail::write_file(folder + "/manifest.json",
                       detail::manifest_text(layout_, options_.file_bytes, sums));
    detail::make_link(root_, link(), name_);
  }

  GroupCoordinator& group_;
  const std::string& root_;
  const std::string& name_;
  std::span<const SavedTensor> tensors_;
  const CheckpointOptions& options_;
  CheckpointLayout layout_{{}, 1};        // empty until the arguments are valid
  std::vector<std::uint64_t> checksums_;  // two words per piece; 0 for the pieces of other ranks
  detail::OpenFiles files_;
  std::string activity_;
  std::optional<detail::FolderLock> lock_;  // on the first rank
  bool may_be_published_ = false;           // the first rank may rename the link
};

}  // namespace

void save_checkpoint(GroupCoordinator& group, const std::string& root, const std::string& name,
                     std::span<const SavedTensor> tensors, const CheckpointOptions& options) {
  Saving{group, root, name, tensors, options}.run();
}

}  // namespace rankmesh::exchange
