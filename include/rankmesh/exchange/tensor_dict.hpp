// SPDX-License-Identifier: BSD-3-Clause
// Sends named tensors. The receivers need not know the names, shapes and types in advance.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/memory.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/calls.hpp"

namespace rankmesh::exchange {

/// Holds a contiguous row-major array in host or device memory, with its element type and its
/// shape. An empty shape means one element. The tensor owns its memory or refers to memory of the
/// caller. Move-only. After a move, the moved-from tensor has no elements.
class RANKMESH_API Tensor {
 public:
  Tensor() = default;
  /// Allocates a tensor. Host memory is zeroed; device memory is not initialised.
  /// @throws UsageError if a size is negative or too large; NoDeviceError if device memory is
  /// requested and rankmesh was built without CUDA.
  static Tensor allocate(DataType type, std::vector<std::int64_t> shape,
                         MemoryKind kind = MemoryKind::host);
  /// Creates a tensor that refers to memory of the caller. The memory must outlive the tensor. The
  /// product of the sizes in `shape` must be the number of elements.
  /// @throws UsageError if it is not, or if an array is not row-major.
  template <WritableMemory M>
  static Tensor refer(M&& memory, std::vector<std::int64_t> shape) {
    static_assert(rankmesh::detail::is_borrowed<M>, "a temporary container ends before its tensor");
    return Tensor{rankmesh::detail::row_major_buffer_of(memory), std::move(shape)};
  }
  /// Does the same for a tensor with the shape of the memory. If its type does not say one
  /// (MemoryOf), the tensor has one dimension.
  /// @throws UsageError if an array is not row-major.
  template <WritableMemory M>
  static Tensor refer(M&& memory) {
    if constexpr (rankmesh::detail::HasShape<M>) {
      const ArrayShape shape = rankmesh::detail::DescriptionOf<M>::shape(memory);
      return refer(std::forward<M>(memory), {shape.lengths().begin(), shape.lengths().end()});
    } else {
      const auto count = static_cast<std::int64_t>(rankmesh::detail::elements_of(memory));
      return refer(std::forward<M>(memory), {count});
    }
  }

  /// Returns the element type.
  [[nodiscard]] DataType type() const noexcept { return buffer_.type; }
  /// Returns the size of each dimension.
  [[nodiscard]] const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
  /// Returns the kind of the memory.
  [[nodiscard]] MemoryKind kind() const noexcept { return buffer_.kind; }
  /// Returns the number of elements.
  [[nodiscard]] std::int64_t count() const noexcept { return buffer_.count; }
  /// Returns the memory, without the shape.
  [[nodiscard]] const Buffer& buffer() const noexcept { return buffer_; }
  /// Returns the memory that the tensor owns; null if it refers to memory of the caller.
  /// Operations in flight share it.
  [[nodiscard]] const std::shared_ptr<void>& owned() const noexcept { return owned_; }
  /// Returns the elements of a tensor in host memory.
  /// @throws UsageError if the element type is not T, or if the tensor is in device memory.
  template <Element T>
  [[nodiscard]] std::span<T> host() const {
    require(DataTypeOf<T>::value, MemoryKind::host);
    return {reinterpret_cast<T*>(buffer_.data), static_cast<std::size_t>(buffer_.count)};
  }
  /// Returns the elements of a tensor in device memory.
  /// @throws UsageError if the element type is not T, or if the tensor is in host memory.
  template <Element T>
  [[nodiscard]] DeviceSpan<T> device() const {
    require(DataTypeOf<T>::value, MemoryKind::device);
    return {reinterpret_cast<T*>(buffer_.data), static_cast<std::size_t>(buffer_.count)};
  }
  /// Takes over the tensor of `other`.
  Tensor(Tensor&& other) noexcept { swap(other); }
  /// Exchanges the two tensors.
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

/// Holds named tensors in the order in which they were added.
class RANKMESH_API TensorDict {
 public:
  /// A tensor and its name.
  struct Entry {
    std::string name;  ///< The name of the tensor.
    Tensor tensor;     ///< The tensor.
  };
  /// Adds a tensor.
  /// @throws UsageError if the dictionary already has a tensor of this name.
  Tensor& add(std::string name, Tensor tensor);
  /// Returns the tensor of this name, or null if there is none.
  [[nodiscard]] Tensor* find(std::string_view name) noexcept;
  /// Returns the tensor of this name.
  /// @throws UnknownName if no tensor has this name. The hint lists the names.
  [[nodiscard]] Tensor& operator[](std::string_view name);
  /// Returns the number of tensors.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// Returns an iterator to the first Entry.
  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  /// Returns the end of the entries.
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }
  /// Removes all tensors.
  void clear() noexcept { entries_.clear(); }

 private:
  std::vector<Entry> entries_;
};

/// Broadcasts the root's tensors to all members. Collective over the group.
///
/// If the receiver's dictionary already has a tensor with the same name, type, shape and kind of
/// memory, the elements are received into that tensor. Steps with equal shapes therefore allocate
/// nothing. All other tensors of the receiver are replaced. All new device memory is allocated
/// before the first operation on tensors is issued.
///
/// The function blocks until all tensors in host memory have arrived. Tensors in device memory are
/// broadcast on the stream in one batch, and the host does not wait for them. Cost: one
/// broadcast_message() with the metadata (1 KiB for about 20 tensors), and one broadcast for each
/// tensor that has elements.
/// @throws DataError if the received bytes do not describe tensors, or if there is not enough
/// memory.
RANKMESH_API void broadcast_tensor_dict(GroupCoordinator& group, TensorDict& tensors,
                                        RankInGroup root, StreamRef stream = {});

/// The options of the functions for a TensorDict.
struct TensorDictOptions {
  /// A tensor-parallel group whose members all hold the same tensors. Each member sends only its
  /// slice of each tensor, which has 1/size() of the elements. The receivers all-gather the slices
  /// over their own group. The sender and the receiver must both set this option, and the two
  /// groups must have the same size. Tensors that cannot be divided evenly are sent whole.
  GroupCoordinator* all_gather = nullptr;
  /// The names of the tensors that must be sent whole, because their values differ between the
  /// members of `all_gather`. Only the sender uses this list.
  std::vector<std::string> whole{};
  int tag = 0;         ///< Must be the same on the sender and the receiver.
  StreamRef stream{};  ///< The stream on which the program uses device memory.
};

/// Sends tensors to another member. Blocks until the caller may change the tensors in host memory.
/// Tensors in device memory are sent on the stream in one batch, and must stay valid until the
/// stream has run the batch. Cost: one send_message() with the metadata, and one message for each
/// tensor that has elements.
RANKMESH_API void send_tensor_dict(GroupCoordinator& group, const TensorDict& tensors, Peer to,
                                   const TensorDictOptions& options = {});

/// Receives tensors from another member. Tensors of the dictionary are reused as in
/// broadcast_tensor_dict(). If `options.all_gather` is set, the function is collective over that
/// group and needs an additional all_gather for each divided tensor.
/// @throws DataError if the received bytes do not describe tensors, if there is not enough memory,
/// or if the sender divides tensors into a different number of slices than this rank expects.
RANKMESH_API void recv_tensor_dict(GroupCoordinator& group, TensorDict& tensors, Peer from,
                                   const TensorDictOptions& options = {});

}  // namespace rankmesh::exchange
