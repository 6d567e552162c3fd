#include "detail/rewritten.hpp"

namespace rankmesh::detail {
namespace {

// Where this rank has a result.
bool has_result(const Call& call, RankInGroup self) {
  return call.operation != Operation::reduce || call.root == self;
}

}  // namespace

Rewritten::Rewritten(const Call& call, RankInGroup self) : original_{call}, plain_{call} {
  const bool is_in_place = call.in.data == call.out.data && call.operation != Operation::reduce_scatter;
  if (!has_result(call, self)) original_.out.count = 0;
  out_.resize(static_cast<std::size_t>(original_.out.count));
  plain_.out = {reinterpret_cast<std::byte*>(out_.data()), original_.out.count, DataType::float32};
  if (is_in_place && original_.out.count > 0) {
    widen(call.in.type, call.in.data, out_);
    plain_.in = plain_.out.as_input();
    return;
  }
  in_.resize(static_cast<std::size_t>(call.in.count));
  widen(call.in.type, call.in.data, in_);
  plain_.in = {reinterpret_cast<const std::byte*>(in_.data()), call.in.count, DataType::float32};
}

void Rewritten::finish() { narrow(original_.out.type, out_, original_.out.data); }

}  // namespace rankmesh::detail
