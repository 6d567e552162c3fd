#include "rankmesh/base/narrow_float.hpp"

namespace rankmesh {
namespace {

// Calls use with a number of the type that is named.
template <class Use>
void dispatch(DataType type, Use&& use) {
  switch (type) {
    case DataType::float16:
      return use(Float16{});
    case DataType::bfloat16:
      return use(BFloat16{});
    case DataType::float8_e4m3:
      return use(Float8E4M3{});
    case DataType::float8_e5m2:
      return use(Float8E5M2{});
    case DataType::int8:
    case DataType::uint8:
    case DataType::int16:
    case DataType::uint16:
    case DataType::int32:
    case DataType::uint32:
    case DataType::int64:
    case DataType::uint64:
    case DataType::float32:
    case DataType::float64:
      return;
  }
}

}  // namespace

void widen(DataType type, const std::byte* from, std::span<float> to) {
  dispatch(type, [&]<class Narrow>(Narrow) {
    const auto* stored = reinterpret_cast<const Narrow*>(from);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(stored[i]);
  });
}

void narrow(DataType type, std::span<const float> from, std::byte* to) {
  dispatch(type, [&]<class Narrow>(Narrow) {
    auto* stored = reinterpret_cast<Narrow*>(to);
    for (std::size_t i = 0; i < from.size(); ++i) stored[i] = Narrow{from[i]};
  });
}

}  // namespace rankmesh
