// SPDX-License-Identifier: BSD-3-Clause
// Sends tensors by name; the receivers need not know their names, shapes and types.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/calls.hpp"

namespace rankmesh::exchange {

/// Holds a contiguous array in host or device memory, with an element type and a row-major shape.
/// An empty shape means one element. The tensor owns its memory or refers to memory of the caller.
/// Move-only; a moved-from tensor has no elements.
class RANKMESH_API Tensor {
 public:
  Tensor() = default;
  /// Allocates a tensor. Host memory is zeroed; device memory is not initialised.
  /// @throws UsageError  A size is negative or too large. @throws NoDeviceError
  static Tensor allocate(DataType type, std::vector<std::int64_t> shape,
                         MemoryKind kind = MemoryKind::host);
  /// Creates a tensor that refers to memory of the caller. The memory must outlive the tensor. The
  /// product of the shape must be the number of elements.
  template <WritableMemory M>
  static Tensor refer(M&& memory, std::vector<std::int64_t> shape) {
    static_assert(rankmesh::detail::is_borrowed<M>, "a temporary container ends before its tensor");
    return Tensor{buffer_of(memory), std::move(shape)};
  }
  template <WritableMemory M>
  static Tensor refer(M&& memory) {
    return refer(std::forward<M>(memory), {static_cast<std::int64_t>(memory.size())});
  }

  [[nodiscard]] DataType type() const noexcept { return buffer_.type; }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
  [[nodiscard]] MemoryKind kind() const noexcept { return buffer_.kind; }
  [[nodiscard]] std::int64_t count() const noexcept { return buffer_.count; }
  [[nodiscard]] const Buffer& buffer() const noexcept { return buffer_; }
  /// Return the elements in host memory or in device memory.
  /// @throws UsageError  The tensor has another type or another kind of memory.
  template <Element T>
  [[nodiscard]] std::span<T> host() const {
    require(DataTypeOf<T>::value, MemoryKind::host);
    return {reinterpret_cast<T*>(buffer_.data), static_cast<std::size_t>(buffer_.count)};
  }
  template <Element T>
  [[nodiscard]] DeviceSpan<T> device() const {
    require(DataTypeOf<T>::value, MemoryKind::device);
    return {reinterpret_cast<T*>(buffer_.data), static_cast<std::size_t>(buffer_.count)};
  }
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    swap(other);
    return *this;
  }

 private:
  Tensor(Buffer buffer, std::vector<std::int64_t> shape);
  void require(DataType type, MemoryKind kind) const;
  void swap(Tensor& other) noexcept {
    std::swap(shape_, other.shape_);
    std::swap(buffer_, other.buffer_);
    std::swap(owned_, other.owned_);
  }
  std::vector<std::int64_t> shape_{0};
  Buffer buffer_{};
  std::shared_ptr<void> owned_{};
};

/// Holds tensors with names, in the order in which the tensors were added.
class RANKMESH_API TensorDict {
 public:
  struct Entry {
    std::string name;
    Tensor tensor;
  };
  /// Adds a tensor. @throws UsageError  The dictionary already has the name.
  Tensor& add(std::string name, Tensor tensor);
  /// Returns the tensor of that name, or null.
  [[nodiscard]] Tensor* find(std::string_view name) noexcept;
  /// Returns the tensor of that name. @throws UnknownName  The hint lists the names.
  [[nodiscard]] Tensor& operator[](std::string_view name);
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }
  void clear() noexcept { entries_.clear(); }

 private:
  std::vector<Entry> entries_;
};

/// Broadcasts the root's tensors to all members. Collective over the group.
///
/// If the receiver's dictionary already has a tensor with the same name, type, shape and kind of
/// memory, the elements are received into that tensor, so steps with equal shapes allocate nothing.
/// All other tensors of the receiver are replaced. New device memory is allocated before the first
/// operation is issued.
///
/// The function blocks until host tensors are complete. Device tensors are broadcast on the stream,
/// in one batch; the host does not wait for them. Cost: the metadata as one message (see
/// broadcast_message(); 1 KiB for about 20 tensors), then one broadcast per tensor with elements.
/// @throws DataError  The received bytes do not describe tensors.
RANKMESH_API void broadcast_tensor_dict(GroupCoordinator& group, TensorDict& tensors,
                                        RankInGroup root, StreamRef stream = {});

struct TensorDictOptions {
  /// A tensor-parallel group whose members hold the same tensors. Each member sends only its slice
  /// of each tensor (1/size of the elements), and the receivers all-gather the slices over their
  /// own group. Sender and receiver must both set this option, and their groups must have the same
  /// size. Tensors that cannot be divided evenly are sent whole.
  GroupCoordinator* all_gather = nullptr;
  /// The names of the tensors that are always sent whole, because their values differ between the
  /// members of `all_gather`. Only the sender uses this list.
  std::vector<std::string> whole{};
  int tag = 0;  ///< Must be the same at both ends.
  StreamRef stream{};
};

/// Sends tensors to another member. Blocks until host tensors may be changed. Device tensors are
/// sent on the stream, as one batch, and must stay valid until the stream has run the batch. Cost:
/// the metadata as one message (see send_message()), then one message per tensor.
RANKMESH_API void send_tensor_dict(GroupCoordinator& group, const TensorDict& tensors, Peer to,
                                   const TensorDictOptions& options = {});

/// Receives tensors from another member, into the memory of the dictionary if it fits (see
/// broadcast_tensor_dict()). With `options.all_gather`, the function is collective over that group
/// and costs an additional all_gather per divided tensor.
/// @throws DataError  The received bytes do not describe tensors, or the sender divides tensors
/// into another number of slices.
RANKMESH_API void recv_tensor_dict(GroupCoordinator& group, TensorDict& tensors, Peer from,
                                   const TensorDictOptions& options = {});

}  // namespace rankmesh::exchange
