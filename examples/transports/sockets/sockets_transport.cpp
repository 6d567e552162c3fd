// SPDX-License-Identifier: BSD-3-Clause
// Every operation is the same exchange: members send blocks to each other, and then combine what
// they have received, if the operation reduces.
#include "sockets_transport.hpp"

#include <cstddef>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <rankmesh/transport/arithmetic.hpp>

#include "connections.hpp"

namespace {

using rankmesh::Awaited;
using rankmesh::Call;
using rankmesh::Extent;
using rankmesh::OperationFacts;

// Block k of a buffer that has a block for each of n members, or the whole buffer.
template <class AnyBuffer>
AnyBuffer block(const AnyBuffer& buffer, const rankmesh::Blocks* blocks, Extent extent,
                std::size_t k, std::size_t n) {
  if (extent == Extent::none) return {};
  if (extent == Extent::block) return buffer;
  if (blocks != nullptr) return block_of(buffer, blocks, k);
  const auto count = buffer.count / static_cast<std::int64_t>(n);
  return buffer.slice(static_cast<std::int64_t>(k) * count, count);
}

// Returns whether one member sends a block to another one.
bool sends(const Call& call, std::size_t from, std::size_t to) {
  const auto root = static_cast<std::size_t>(call.root.value());
  switch (facts_of(call.operation).awaited) {
    case Awaited::root:
      return from == root;
    case Awaited::all_by_root:
      return to == root;
    case Awaited::earlier:
      return from < to;
    default:
      return true;
  }
}

class Exchange final : public rankmesh::Pending {
 public:
  Exchange(const Call& call, std::shared_ptr<Connections> connections)
      : connections_{std::move(connections)},
        n_{connections_->size()},
        self_{connections_->self()},
        operation_{call.operation},
        reduction_{call.reduction},
        out_{call.out} {
    const OperationFacts& facts = facts_of(operation_);
    const bool has_out =
        has_output(operation_, self_ == static_cast<std::size_t>(call.root.value()));
    // A broadcast has no input: its root sends the output.
    rankmesh::ConstBuffer in = facts.in == Extent::none ? call.out.as_input() : call.in;
    const Extent extent = facts.in == Extent::none ? facts.out : facts.in;
    // What a member receives in place must not replace what it has not sent yet.
    if (operation_ == rankmesh::Operation::all_to_all && call.in.data == call.out.data) {
      copy_.assign(in.data, in.data + in.bytes());
      in.data = copy_.data();
    }
    for (std::size_t k = 0; k < n_; ++k) {
      if (k == self_) continue;
      if (!has_data(operation_)) {
        connections_->send(k, {&signal_, 1, open_});
        connections_->receive(k, {&ignored_, 1, open_});
      }
      if (sends(call, self_, k)) {
        const auto mine = block(in, call.in_blocks, extent, k, n_);
        connections_->send(k, {const_cast<std::byte*>(mine.data), bytes_of(mine), open_});
      }
    }
    if (!has_out) return;
    if (facts.reduces) parts_.resize(n_);
    for (std::size_t k = 0; k < n_; ++k) {
      if (k == self_ || !sends(call, k, self_)) continue;
      auto to = block(out_, call.out_blocks, facts.out, k, n_);
      if (facts.reduces) to.data = parts_[k].emplace(bytes_of(out_)).data();
      connections_->receive(k, {to.data, bytes_of(to), open_});
    }
    if (facts.in == Extent::none || (!facts.reduces && !sends(call, self_, self_))) return;
    const auto own = block(in, call.in_blocks, facts.in, self_, n_);
    if (facts.reduces && !facts.excludes_own)
      parts_[self_].emplace(own.data, own.data + own.bytes());
    else if (!facts.reduces && own.bytes() > 0)
      std::memmove(block(out_, call.out_blocks, facts.out, self_, n_).data, own.data,
                   bytes_of(own));
  }

  bool test() override {
    connections_->progress();
    if (*open_ > 0) return false;
    if (!parts_.empty() && out_.count > 0) combine_parts();
    parts_.clear();
    return true;
  }

 private:
  template <class AnyBuffer>
  static std::size_t bytes_of(const AnyBuffer& buffer) {
    return static_cast<std::size_t>(buffer.bytes());
  }

  // In group order. The first member of an exscan has no part and gets zeros.
  void combine_parts() {
    std::optional<std::vector<std::byte>> result;
    for (auto& part : parts_) {
      if (!part) continue;
      if (!result)
        result = std::move(*part);
      else
        rankmesh::combine(out_.type, reduction_, result->data(), result->data(), part->data(),
                          out_.count);
    }
    if (!result) result.emplace(bytes_of(out_));
    std::memcpy(out_.data, result->data(), result->size());
    if (reduction_ == rankmesh::ReduceOp::avg)
      rankmesh::finish_average(out_.type, out_.data, out_.count, static_cast<std::int64_t>(n_));
  }

  std::shared_ptr<Connections> connections_;
  std::size_t n_, self_;
  rankmesh::Operation operation_;
  rankmesh::ReduceOp reduction_;
  rankmesh::Buffer out_;
  std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);  // pieces on the way
  std::vector<std::byte> copy_;
  std::vector<std::optional<std::vector<std::byte>>> parts_;  // by member
  std::byte signal_{}, ignored_{};
};

class SocketsTransport final : public rankmesh::Transport {
 public:
  explicit SocketsTransport(const rankmesh::TransportGroup& group)
      : connections_{std::make_shared<Connections>(group)} {}

  [[nodiscard]] bool supports(const Call& call) const override { return !call.is_on_device(); }
  [[nodiscard]] std::string why_not(const Call&) const override {
    return "sockets carry host memory only";
  }
  [[nodiscard]] bool has_async_forms() const override { return true; }
  [[nodiscard]] std::unique_ptr<rankmesh::Pending> start(const Call& call) override {
    return std::make_unique<Exchange>(call, connections_);
  }
  void run(const Call& call, rankmesh::Waiter&) override {
    for (Exchange exchange{call, connections_}; !exchange.test();) std::this_thread::yield();
  }
  void give_up(const rankmesh::Error&) override { connections_->end(); }

 private:
  std::shared_ptr<Connections> connections_;
};

}  // namespace

std::unique_ptr<rankmesh::Transport> open_sockets(const rankmesh::TransportGroup& group) {
  return std::make_unique<SocketsTransport>(group);
}
