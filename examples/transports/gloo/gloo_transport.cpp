// SPDX-License-Identifier: BSD-3-Clause
// The transport over Gloo: what it carries, and how each operation is passed on.
#include "gloo_transport.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>

#include <rankmesh/transport/arithmetic.hpp>

#include "connect.hpp"

namespace {

using rankmesh::Call;
using rankmesh::Operation;
using rankmesh::ReduceOp;

/// The bytes of the buffer that all members pass with the same size.
std::int64_t common_bytes(const Call& call) {
  const bool has_common_out =
      call.operation == Operation::broadcast || call.operation == Operation::scatter;
  return has_common_out ? call.out.bytes() : call.in.bytes();
}

class GlooTransport final : public rankmesh::Transport {
 public:
  explicit GlooTransport(std::shared_ptr<gloo::Context> context) : context_{std::move(context)} {}

  [[nodiscard]] bool supports(const Call& call) const override { return why_not(call).empty(); }

  [[nodiscard]] std::string why_not(const Call& call) const override {
    if (call.operation == Operation::barrier) return "";
    if (call.operation == Operation::reduce_scatter) return "Gloo has no reduce_scatter";
    if (facts_of(call.operation).awaited == rankmesh::Awaited::earlier) return "Gloo has no scans";
    if (call.has_blocks() && call.operation != Operation::all_gather)
      return "it carries blocks of different sizes in all_gather only";
    if (call.has_blocks()) return "";
    if (common_bytes(call) == 0) return "Gloo cannot send empty buffers";
    return "";
  }

  void run(const Call& call, rankmesh::Waiter&) override {
    ++tag_;  // Gloo tells operations apart by their tags
    switch (call.operation) {
      case Operation::barrier:
        return barrier();
      case Operation::broadcast:
        return broadcast(call);
      case Operation::reduce:
        return reduce(call);
      case Operation::all_reduce:
        return all_reduce(call);
      case Operation::all_gather:
        return call.has_blocks() ? all_gather_v(call) : all_gather(call);
      case Operation::gather:
        return gather(call);
      case Operation::scatter:
        return scatter(call);
      case Operation::all_to_all:
        return all_to_all(call);
      default:
        return;  // supports() has declined it
    }
  }

  /// Closes the connections, so that members that are inside run() do not wait any longer.
  void give_up(const rankmesh::Error&) override { context_->closeConnections(); }

 private:
  /// Returns the options of an operation, with its tag.
  template <class Options>
  Options options() const {
    Options result{context_};
    result.setTag(tag_);
    return result;
  }
  // Gloo takes its inputs as pointers to values that are not const, but it does not change them.
  static char* in_of(const Call& call) {
    return const_cast<char*>(reinterpret_cast<const char*>(call.in.data));
  }
  static char* out_of(const Call& call) { return reinterpret_cast<char*>(call.out.data); }
  static std::size_t bytes_of(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }
  [[nodiscard]] bool is_root(const Call& call) const { return call.root.value() == context_->rank; }

  void barrier() {
    auto of_gloo = options<gloo::BarrierOptions>();
    gloo::barrier(of_gloo);
  }

  void broadcast(const Call& call) {
    auto of_gloo = options<gloo::BroadcastOptions>();
    of_gloo.setRoot(static_cast<int>(call.root.value()));
    of_gloo.setOutput(out_of(call), bytes_of(call.out.bytes()));
    gloo::broadcast(of_gloo);
  }

  // Gloo takes the type of the elements from a pointer. Here only their size matters, and rankmesh
  // has 1, 2, 4 and 8 bytes.
  template <class Options>
  static void set_buffers(Options& of_gloo, const Call& call, std::byte* out) {
    const auto set = [&]<class T>(T*) {
      const auto count = static_cast<std::size_t>(call.in.count);
      const void* const in = call.in.data;
      if (in != out) of_gloo.setInput(const_cast<T*>(static_cast<const T*>(in)), count);
      of_gloo.setOutput(static_cast<T*>(static_cast<void*>(out)), count);
    };
    switch (size_of(call.in.type)) {
      case 1:
        return set(static_cast<std::uint8_t*>(nullptr));
      case 2:
        return set(static_cast<std::uint16_t*>(nullptr));
      case 4:
        return set(static_cast<std::uint32_t*>(nullptr));
      default:
        return set(static_cast<std::uint64_t*>(nullptr));
    }
  }

  // Gloo's own minimum of a number and a NaN depends on their order, so Gloo combines elements with
  // a function of rankmesh. It also allows averages: a sum that is divided at the end.
  template <class Options>
  static void set_reduction(Options& of_gloo, const Call& call) {
    of_gloo.setReduceFunction([type = call.in.type, op = call.reduction](
                                  void* out, const void* a, const void* b, std::size_t count) {
      rankmesh::combine(type, op, out, a, b, static_cast<std::int64_t>(count));
    });
  }
  void finish_average(const Call& call) const {
    if (call.reduction == ReduceOp::avg)
      rankmesh::finish_average(call.out.type, call.out.data, call.out.count, context_->size);
  }

  void all_reduce(const Call& call) {
    auto of_gloo = options<gloo::AllreduceOptions>();
    set_reduction(of_gloo, call);
    set_buffers(of_gloo, call, call.out.data);
    gloo::allreduce(of_gloo);
    finish_average(call);
  }

  void reduce(const Call& call) {
    // Every member of Gloo's ring needs an output; only the root's is the program's.
    if (!is_root(call)) scratch_.resize(bytes_of(call.in.bytes()));
    auto of_gloo = options<gloo::ReduceOptions>();
    of_gloo.setRoot(static_cast<int>(call.root.value()));
    set_reduction(of_gloo, call);
    set_buffers(of_gloo, call, is_root(call) ? call.out.data : scratch_.data());
    gloo::reduce(of_gloo);
    if (is_root(call)) finish_average(call);
  }

  void all_gather(const Call& call) {
    auto of_gloo = options<gloo::AllgatherOptions>();
    const std::byte* const own_block = call.out.data + context_->rank * call.in.bytes();
    if (call.in.data != own_block) of_gloo.setInput(in_of(call), bytes_of(call.in.bytes()));
    of_gloo.setOutput(out_of(call), bytes_of(call.out.bytes()));
    gloo::allgather(of_gloo);
  }

  void all_gather_v(const Call& call) {
    // Gloo's blocks follow each other, so they are copied if the program's do not.
    const auto& counts = call.out_blocks->counts();
    const auto& places = call.out_blocks->displacements();
    const auto width = static_cast<std::int64_t>(size_of(call.out.type));
    std::vector<std::size_t> sizes;
    std::size_t total = 0;
    for (const std::int64_t count : counts) {
      sizes.push_back(bytes_of(count * width));
      total += sizes.back();
    }
    if (total == 0) return;  // on all members
    scratch_.resize(total);
    auto of_gloo = options<gloo::AllgathervOptions>();
    of_gloo.setInput(in_of(call), bytes_of(call.in.bytes()));
    of_gloo.setOutput(reinterpret_cast<char*>(scratch_.data()), sizes);
    gloo::allgatherv(of_gloo);
    std::size_t at = 0;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const auto from = scratch_.begin() + static_cast<std::ptrdiff_t>(at);
      std::copy(from, from + static_cast<std::ptrdiff_t>(sizes[k]),
                call.out.data + places[k] * width);
      at += sizes[k];
    }
  }

  void gather(const Call& call) {
    auto of_gloo = options<gloo::GatherOptions>();
    of_gloo.setRoot(static_cast<int>(call.root.value()));
    of_gloo.setInput(in_of(call), bytes_of(call.in.bytes()));
    if (is_root(call)) of_gloo.setOutput(out_of(call), bytes_of(call.out.bytes()));
    gloo::gather(of_gloo);
  }

  void scatter(const Call& call) {
    auto of_gloo = options<gloo::ScatterOptions>();
    of_gloo.setRoot(static_cast<int>(call.root.value()));
    const std::size_t block = bytes_of(call.out.bytes());
    if (is_root(call)) {
      std::vector<char*> blocks;
      for (int k = 0; k < context_->size; ++k)
        blocks.push_back(in_of(call) + static_cast<std::size_t>(k) * block);
      of_gloo.setInputs(blocks, block);
    }
    of_gloo.setOutput(out_of(call), block);
    gloo::scatter(of_gloo);
  }

  void all_to_all(const Call& call) {
    auto of_gloo = options<gloo::AlltoallOptions>();
    // Gloo's blocks must not change while others are still sent, so calls in place use a copy.
    const char* in = in_of(call);
    const std::size_t size = bytes_of(call.in.bytes());
    if (call.in.data == call.out.data) {
      scratch_.assign(call.in.data, call.in.data + size);
      in = reinterpret_cast<const char*>(scratch_.data());
    }
    of_gloo.setInput(const_cast<char*>(in), size);
    of_gloo.setOutput(out_of(call), size);
    gloo::alltoall(of_gloo);
  }

  std::shared_ptr<gloo::Context> context_;
  std::uint32_t tag_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace

std::unique_ptr<rankmesh::Transport> open_gloo(const rankmesh::TransportGroup& group) {
  return std::make_unique<GlooTransport>(connect_gloo(group));
}
