// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/checkpoint_files.hpp"
#include "detail/checkpoint_steps.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {
namespace {

using detail::File;
using detail::TensorInFile;

constexpr std::int64_t digest_end = 256;  // the first bytes of a manifest have the digest of all

std::string manifest_path(const std::string& folder) { return folder + "/manifest.json"; }

// Returns the first `most` bytes of a manifest; all of them if it is shorter.
std::string read_manifest(const std::string& folder, std::int64_t most = INT64_MAX) {
  const std::string path = manifest_path(folder);
  std::error_code error;  // the file says why it cannot be opened
  if (!std::filesystem::exists(path, error) && !error &&
      std::filesystem::exists(folder + "/latest", error))
    throw FileError{fmt::format("{} is the folder of all checkpoints", folder),
                    fmt::format("pass that of one checkpoint, such as {}/latest", folder)};
  File file{path, File::Mode::read};
  std::string text(static_cast<std::size_t>(std::min(file.size(), most)), '\0');
  file.read(0, std::as_writable_bytes(std::span{text}));
  return text;
}

std::filesystem::path without_slash(const std::filesystem::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

// Returns where a link such as `latest` leads; empty if the folder is no link. A job that saves may
// replace the link while this one loads.
std::string target_of(const std::string& folder) {
  std::error_code error;
  return std::filesystem::read_symlink(without_slash(folder), error).string();
}

std::string followed(const std::string& folder, const std::string& target) {
  return target.empty() ? folder : without_slash(folder).replace_filename(target).string();
}

// One call of load_checkpoint().
class Loading {
 public:
  Loading(GroupCoordinator& group, const std::string& folder, std::span<const LoadedTensor> tensors,
          const CheckpointOptions& options)
      : group_{group},
        folder_{folder},
        tensors_{tensors},
        options_{options},
        activity_{fmt::format("load_checkpoint of {}", folder)} {}

  void run() {
    const rankmesh::detail::CalledBy by{rankmesh::detail::GroupAccess::runtime(group_),
                                        detail::UserFunction::load_checkpoint};
    std::string target, text;
    detail::on_all(group_, activity_, [&] {
      if (!group_.is_first()) return;
      target = target_of(folder_);
      folder_ = followed(folder_, target);
      text = read_manifest(folder_);
      check_files(detail::parse_manifest(text, manifest_path(folder_)).layout);
    });
    broadcast(target);
    broadcast(text);
    if (!group_.is_first()) folder_ = followed(folder_, target);
    std::vector<std::string> arguments{fmt::format("{} bytes of memory", options_.memory)};
    for (const LoadedTensor& tensor : tensors_)
      arguments.push_back(
          fmt::format("tensor '{}' at '{}'", tensor.name, tensor.place.to_string()));
    detail::on_all(
        group_, activity_,
        [&] {
          // The folder has another path where it is mounted elsewhere. A rank that loads nothing
          // need not have it, and the others cannot open the files then.
          std::error_code error;
          const std::string own = std::filesystem::exists(manifest_path(folder_), error)
                                      ? read_manifest(folder_, digest_end)
                                      : text.substr(0, digest_end);
          arguments.push_back("manifest " + to_string(hash_bytes(own)));
          manifest_.emplace(detail::parse_manifest(text, manifest_path(folder_)));
          for (const LoadedTensor& tensor : tensors_) wanted_.push_back(&find(tensor));
        },
        arguments);
    detail::for_each_batch(wanted_, options_.memory * group_.size(),
                           [&](std::size_t first, std::size_t last) { load_batch(first, last); });
  }

 private:
  // Only the first rank opens all files. The headers follow from the manifest.
  void check_files(const detail::CheckpointLayout& layout) {
    for (const detail::CheckpointFile& wanted : layout.files) {
      File file{folder_ + "/" + wanted.name, File::Mode::read};
      if (file.size() != wanted.bytes)
        throw FileError{fmt::format("{} is cut or altered: it has {} bytes, the manifest says {}",
                                    file.path(), file.size(), wanted.bytes),
                        "load another checkpoint"};
      std::string header(wanted.header.size(), '\0');
      file.read(0, std::as_writable_bytes(std::span{header}));
      if (header != wanted.header)
        throw FileError{
            fmt::format("{} is altered: its header is not that of the manifest", file.path()),
            "load another checkpoint"};
    }
  }

  void broadcast(std::string& text) {
    std::vector<std::int64_t> size{std::ssize(text)};
    const RankInGroup first{0};
    run_or_leak([&] { group_.broadcast_async(size, first).wait(); }, size);
    text.resize(static_cast<std::size_t>(size[0]));
    run_or_leak([&] { group_.broadcast_async(text, first).wait(); }, text);
  }

  [[nodiscard]] const TensorInFile& find(const LoadedTensor& tensor) const {
    const auto& list = manifest_->layout.tensors;
    const auto found =
        std::ranges::find(list, tensor.name, [](const TensorInFile& t) { return t.tensor.name; });
    if (found == list.end())
      throw UsageError{fmt::format("{}: there is no tensor '{}'", activity_, tensor.name),
                       "list_checkpoint() returns the tensors of a checkpoint"};
    if (found->tensor.shape != tensor.place.shape())
      throw UsageError{
          fmt::format("{}: the tensor '{}' has the shape [{}], not [{}]", activity_, tensor.name,
                      fmt::join(found->tensor.shape, ","), fmt::join(tensor.place.shape(), ",")),
          "pass a place with the shape of the file"};
    return *found;
  }

  void load_batch(std::size_t first, std::size_t last) {
    detail::MovingBatch moving;
    const std::int64_t self = group_.rank_in_group().value();
    detail::on_all(group_, activity_, [&] {
      for (std::size_t t = first; t < last; ++t) {
        if (wanted_[t]->pieces == 0) continue;
        detail::PieceMemory& memory = moving.memory.emplace_back(*wanted_[t], self, group_.size());
        memory.for_each([&](std::int64_t piece, std::span<std::byte> bytes) {
          read_piece(*wanted_[t], piece, bytes);
        });
        moving.moves.push_back({memory.place(), tensors_[t].place, tensors_[t].name});
        moving.sources.emplace_back().memory = memory.buffer().as_input();
        moving.targets.push_back(tensors_[t].target);
      }
      moving.check(Rank{self});
    });
    moving.run(group_, options_.memory);
  }

  void read_piece(const TensorInFile& tensor, std::int64_t piece, std::span<std::byte> bytes) {
    File& file = file_of(manifest_->layout.files[tensor.file]);
    const std::int64_t offset = tensor.begin + piece * tensor.piece_bytes;
    file.read(offset, bytes);
    const Hash128 sum = hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (to_string(sum) !=
        manifest_->checksums[static_cast<std::size_t>(tensor.first_piece + piece)])
      throw FileError{
          fmt::format("{} is altered: the checksum of the bytes {} to {}, of the "
                      "tensor '{}', is wrong",
                      file.path(), offset, offset + std::ssize(bytes) - 1, tensor.tensor.name),
          "load another checkpoint"};
  }

  File& file_of(const detail::CheckpointFile& file) {
    if (!files_) files_.emplace(folder_, File::Mode::read);
    return (*files_)[file.name];
  }

  GroupCoordinator& group_;
  std::string folder_;  // without the link, which must be the same on all ranks
  std::span<const LoadedTensor> tensors_;
  const CheckpointOptions& options_;
  std::optional<detail::OpenFiles> files_;
  std::string activity_;
  std::optional<detail::Manifest> manifest_;
  std::vector<const TensorInFile*> wanted_;  // of `tensors_`
};

}  // namespace

void load_checkpoint(GroupCoordinator& group, const std::string& folder,
                     std::span<const LoadedTensor> tensors, const CheckpointOptions& options) {
  Loading{group, folder, tensors, options}.run();
}

std::vector<StoredTensor> list_checkpoint(const std::string& folder) {
  std::vector<StoredTensor> list;
  const std::string text = read_manifest(folder);
  for (TensorInFile& tensor : detail::parse_manifest(text, manifest_path(folder)).layout.tensors)
    list.push_back(std::move(tensor.tensor));
  return list;
}

}  // namespace rankmesh::exchange
