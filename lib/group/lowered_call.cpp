#include "detail/lowered_call.hpp"

#include <cstring>

#include "rankmesh/base/narrow_float.hpp"

namespace rankmesh::detail {
namespace {

bool has_result(const Call& call, RankInGroup self) {
  const bool is_at_root =
      call.operation == Operation::reduce || call.operation == Operation::gather;
  return !is_at_root || call.root == self;
}

// Calls use(place in the whole, place in the packed blocks, bytes) for every stretch: in the whole
// the members' stretches take turns, packed their blocks follow each other. Places are in bytes.
template <class Use>
void for_each_stretch(const Call& call, std::int64_t size, Use&& use) {
  const bool gathers =
      call.operation == Operation::all_gather || call.operation == Operation::gather;
  const std::int64_t block = gathers ? call.in.bytes() : call.out.bytes();
  const std::int64_t stretch = block / call.rows;
  for (std::int64_t member = 0; member < size; ++member)
    for (std::int64_t row = 0; row < call.rows; ++row)
      use((row * size + member) * stretch, member * block + row * stretch,
          static_cast<std::size_t>(stretch));
}

}  // namespace

LoweredCall::LoweredCall(const Call& call, RankInGroup self, std::int64_t size)
    : original_{call}, plain_{call}, size_{size}, has_result_{has_result(call, self)} {
  plain_.rows = 1;
  plain_.in.window = nullptr;  // scratch memory is nobody's but this rank's
  plain_.out.window = nullptr;
  if (call.rows != 1) {
    const bool gathers =
        call.operation == Operation::all_gather || call.operation == Operation::gather;
    const bool has_whole_in =
        !gathers && (call.operation == Operation::reduce_scatter || call.root == self);
    if (has_whole_in) {
      blocks_.resize(static_cast<std::size_t>(call.in.bytes()));
      for_each_stretch(call, size, [&](std::int64_t whole, std::int64_t packed, std::size_t bytes) {
        std::memcpy(blocks_.data() + packed, call.in.data + whole, bytes);
      });
      plain_.in.data = blocks_.data();
    } else if (gathers && has_result_) {
      blocks_.resize(static_cast<std::size_t>(call.out.bytes()));
      plain_.out.data = blocks_.data();
    }
  }
  if (is_narrow_float(call.in.type) && reduces(call.operation)) widen_all();
}

void LoweredCall::widen_all() {
  const ConstBuffer in = plain_.in;
  const Buffer out = plain_.out.slice(0, has_result_ ? plain_.out.count : 0);
  out_.resize(static_cast<std::size_t>(out.count));
  plain_.out = {reinterpret_cast<std::byte*>(out_.data()), out.count, DataType::float32};
  if (in.data == out.data && in.count == out.count && out.count > 0) {  // in place
    widen(in.type, in.data, out_);
    plain_.in = plain_.out.as_input();
    return;
  }
  in_.resize(static_cast<std::size_t>(in.count));
  widen(in.type, in.data, in_);
  plain_.in = {reinterpret_cast<const std::byte*>(in_.data()), in.count, DataType::float32};
}

void LoweredCall::finish() {
  if (plain_.out.type != original_.out.type)
    return narrow(original_.out.type, out_, original_.out.data);
  if (plain_.out.data == original_.out.data) return;
  for_each_stretch(original_, size_,
                   [&](std::int64_t whole, std::int64_t packed, std::size_t bytes) {
                     std::memcpy(original_.out.data + whole, blocks_.data() + packed, bytes);
                   });
}

}  // namespace rankmesh::detail
