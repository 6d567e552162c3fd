// Tensors by name, between ranks that do not know what will come.
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

/// A contiguous array: element type, shape (row-major; empty: one element), host or device memory.
/// It owns its memory, or refers to the caller's. Move-only; a moved-from tensor has no elements.
class RANKMESH_API Tensor {
 public:
  Tensor() = default;
  /// With memory of its own: on the host zeroed, on the device as it is. @throws UsageError for a
  /// negative or too large size; NoDeviceError.
  static Tensor allocate(DataType type, std::vector<std::int64_t> shape,
                         MemoryKind kind = MemoryKind::host);
  /// The caller's memory, which must outlive the tensor; its size is the product of the shape.
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
  /// The elements of a tensor on the host, on the device. @throws UsageError where its type or its
  /// memory is another.
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

/// Tensors in the order in which they were added.
class RANKMESH_API TensorDict {
 public:
  struct Entry {
    std::string name;
    Tensor tensor;
  };
  /// @throws UsageError where the name is there already.
  Tensor& add(std::string name, Tensor tensor);
  /// Null where there is none of that name.
  [[nodiscard]] Tensor* find(std::string_view name) noexcept;
  /// @throws UnknownName; the hint lists the names.
  [[nodiscard]] Tensor& operator[](std::string_view name);
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }
  void clear() noexcept { entries_.clear(); }

 private:
  std::vector<Entry> entries_;
};

/// The root's tensors, everywhere. Collective over the group. Where the receiver's dictionary has a
/// tensor of the same name, type, shape and memory already, that is written to; all else is
/// replaced by new memory (device memory: allocated before anything is issued), so that steps of
/// equal shapes allocate nothing.
///
/// Host tensors are there when it returns; device tensors are broadcast on the stream, all in one
/// batch. Cost: the metadata as one message (see broadcast_message: 1 KiB for about 20 tensors, a
/// second part for more), then one broadcast per tensor that has elements.
/// @throws DataError where the metadata that came is none.
RANKMESH_API void broadcast_tensor_dict(GroupCoordinator& group, TensorDict& tensors,
                                        RankInGroup root, StreamRef stream = {});

struct TensorDictOptions {
  /// The tensor-parallel group, where all its members hold the same tensors: each sends only its
  /// slice of each tensor (1/size of the elements), and the receivers all-gather the slices over
  /// their own group of that name. Both ends give it; the groups have the same size. Tensors whose
  /// elements cannot be divided evenly are sent whole.
  GroupCoordinator* all_gather = nullptr;
  /// Names of tensors that are sent whole although they could be divided, since they differ between
  /// the members of `all_gather`. Of the sender.
  std::vector<std::string> whole{};
  int tag = 0;  ///< both ends
  StreamRef stream{};
};

/// To another member. Returns when host tensors may be changed; device tensors are sent on the
/// stream, as one batch, and must live until it has run that. Cost: the metadata as one message of
/// 1 KiB (and the rest of longer metadata), then a message per tensor.
RANKMESH_API void send_tensor_dict(GroupCoordinator& group, const TensorDict& tensors, Peer to,
                                   const TensorDictOptions& options = {});

/// From another member; into what the dictionary has, as in broadcast_tensor_dict. With slices,
/// collective over `options.all_gather`, and one all_gather per sliced tensor more.
/// @throws DataError where the metadata that came is none, or says slices of another number of
/// ranks.
RANKMESH_API void recv_tensor_dict(GroupCoordinator& group, TensorDict& tensors, Peer from,
                                   const TensorDictOptions& options = {});

}  // namespace rankmesh::exchange
