// SPDX-License-Identifier: BSD-3-Clause
// Converts objects to bytes in cereal's portable binary format, and converts bytes to objects after
// validating them.
//
// Only this header and objects.hpp need cereal (libcereal-dev).
#pragma once

#include <algorithm>
#include <cereal/archives/portable_binary.hpp>
#include <cereal/cereal.hpp>
#include <cereal/types/array.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/vector.hpp>
#include <cstdint>
#include <cstring>
#include <exception>
#include <ios>
#include <ostream>
#include <span>
#include <streambuf>
#include <string>
#include <type_traits>

#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/exchange/message.hpp"

namespace rankmesh::exchange::detail {

/// A stream buffer that appends its output to a vector of bytes.
class ByteSink final : public std::streambuf {
 public:
  explicit ByteSink(Bytes& bytes) : bytes_{bytes} {}

 protected:
  std::streamsize xsputn(const char* data, std::streamsize n) override {
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + n);
    return n;
  }
  int_type overflow(int_type c) override {
    bytes_.push_back(static_cast<std::byte>(c));
    return c;
  }

 private:
  Bytes& bytes_;
};

/// Reads the output of cereal::PortableBinaryOutputArchive. Unlike cereal's input archive, the
/// reader checks the length of a container against the number of remaining bytes before it resizes
/// the container. Therefore invalid bytes can make the reader allocate at most sizeof(element)
/// bytes per byte of input. The reader also rejects a bool that is neither 0 nor 1.
class ObjectReader : public cereal::InputArchive<ObjectReader, cereal::AllowEmptyClassElision> {
 public:
  explicit ObjectReader(std::span<const std::byte> bytes)
      : cereal::InputArchive<ObjectReader, cereal::AllowEmptyClassElision>{this}, bytes_{bytes} {
    std::uint8_t is_little = 0;
    take<1>(&is_little, 1);
    if (is_little > 1) throw cereal::Exception{"the byte order is neither little nor big"};
    swaps_ = is_little != cereal::portable_binary_detail::is_little_endian();
  }
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }

  /// Copies `size` bytes to `to`. Swaps the bytes of each element if the writer has the other byte
  /// order.
  /// @tparam element  The size of an element in bytes.
  template <std::size_t element>
  void take(void* to, std::size_t size) {
    if (size > bytes_.size()) throw cereal::Exception{"the bytes end too early"};
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    if (!swaps_) return;
    for (std::size_t i = 0; i < size; i += element)
      cereal::portable_binary_detail::swap_bytes<element>(static_cast<std::uint8_t*>(to) + i);
  }

  /// Throws if the remaining bytes cannot hold a container of `length` elements. Each element takes
  /// at least one byte, unless its class is empty.
  void check_length(cereal::size_type length) const {
    constexpr std::size_t empty_elements = 4096;
    if (length > bytes_.size() + empty_elements) throw cereal::Exception{"the bytes end too early"};
  }

 private:
  std::span<const std::byte> bytes_;
  bool swaps_ = false;
};

// cereal finds these functions by argument-dependent lookup.
template <class T>
  requires std::is_arithmetic_v<T>
void CEREAL_LOAD_FUNCTION_NAME(ObjectReader& archive, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    std::uint8_t byte = 0;
    archive.take<1>(&byte, 1);
    if (byte > 1) throw cereal::Exception{"a bool is neither true nor false"};
    value = byte == 1;
  } else {
    archive.take<sizeof(T)>(&value, sizeof(T));
  }
}
template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(ObjectReader& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}
template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(ObjectReader& archive, cereal::SizeTag<T>& tag) {
  archive(tag.size);
  archive.check_length(tag.size);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(ObjectReader& archive, cereal::BinaryData<T>& data) {
  archive.take<sizeof(std::remove_pointer_t<T>)>(data.data, static_cast<std::size_t>(data.size));
}

}  // namespace rankmesh::exchange::detail

CEREAL_REGISTER_ARCHIVE(rankmesh::exchange::detail::ObjectReader)
// cereal requires each input archive to name its output archive.
template <>
struct cereal::traits::detail::get_output_from_input<rankmesh::exchange::detail::ObjectReader> {
  using type = cereal::PortableBinaryOutputArchive;
};

namespace rankmesh::exchange {

/// Returns the object in cereal's portable binary format.
/// @throws all exceptions that the object's save function throws.
template <class T>
Bytes to_bytes(const T& object) {
  Bytes bytes;
  detail::ByteSink sink{bytes};
  std::ostream stream{&sink};
  cereal::PortableBinaryOutputArchive archive{stream};
  archive(object);
  return bytes;
}

/// Reads an object from bytes.
/// @throws DataError if the bytes are not a T, if there are too few or too many bytes, or if T's
/// load function throws.
template <class T>
void from_bytes(std::span<const std::byte> bytes, T& object) {
  try {
    detail::ObjectReader reader{bytes};
    reader(object);
    if (reader.left() > 0)
      throw cereal::Exception{std::to_string(reader.left()) + " bytes are left over"};
  } catch (...) {
    const auto reasons = rankmesh::detail::current_reasons();
    std::throw_with_nested(DataError{
        std::to_string(bytes.size()) +
            " bytes are not an object of the requested type: " + reasons.message,
        reasons.hint_and("use the same type and the same version of its serialize function at both "
                         "ends")});
  }
}
template <class T>
T from_bytes(std::span<const std::byte> bytes) {
  T object{};
  from_bytes(bytes, object);
  return object;
}

}  // namespace rankmesh::exchange
