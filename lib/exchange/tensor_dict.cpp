// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/tensor_dict.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "detail/tensor_metadata.hpp"
#include "group/detail/fused_calls.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/exchange/work_list.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {
namespace {

using rankmesh::detail::GroupAccess;

using detail::DictMetadata;
using detail::TensorMetadata;

DictMetadata metadata_of(const TensorDict& tensors, const TensorDictOptions& options) {
  DictMetadata metadata;
  if (options.all_gather != nullptr) metadata.slices = options.all_gather->size();
  for (const auto& [name, tensor] : tensors)
    metadata.tensors.push_back(
        {.name = name,
         .type = tensor.type(),
         .kind = tensor.kind(),
         .is_sliced = metadata.slices > 1 && tensor.count() % metadata.slices == 0 &&
                      std::ranges::find(options.whole, name) == options.whole.end(),
         .shape = tensor.shape()});
  return metadata;
}

// Returns the tensor of a dictionary into which a tensor can be received, or null.
Tensor* fitting(TensorDict& tensors, const TensorMetadata& incoming) {
  Tensor* there = tensors.find(incoming.name);
  const bool fits = there != nullptr && there->type() == incoming.type &&
                    there->kind() == incoming.kind && there->shape() == incoming.shape;
  return fits ? there : nullptr;
}

// Returns the tensors to receive into, in the order of the metadata. A tensor of the dictionary is
// reused if it fits.
TensorDict prepared(TensorDict& old, const DictMetadata& metadata) {
  TensorDict tensors;
  for (const TensorMetadata& incoming : metadata.tensors) {
    try {
      tensors.add(incoming.name,
                  fitting(old, incoming) != nullptr
                      ? Tensor{}
                      : Tensor::allocate(incoming.type, incoming.shape, incoming.kind));
    } catch (const UsageError& error) {  // no sender can have such a shape or name
      throw DataError{fmt::format("the received description of tensor '{}' is invalid: {}",
                                  incoming.name, error.message()),
                      "use the same version of rankmesh at both ends"};
    } catch (const std::bad_alloc&) {
      throw DataError{
          fmt::format("there is not enough memory to receive the tensor '{}'", incoming.name),
          "send the tensor in parts"};
    } catch (const std::length_error&) {
      throw DataError{
          fmt::format("there is not enough memory to receive the tensor '{}'", incoming.name),
          "send the tensor in parts"};
    }
  }
  // Nothing throws from here on, so the program does not lose these tensors.
  for (const TensorMetadata& incoming : metadata.tensors)
    if (Tensor* there = fitting(old, incoming)) *tensors.find(incoming.name) = std::move(*there);
  return tensors;
}

// A call, and the memory that the tensor owns.
struct TensorCall {
  Call call;
  std::shared_ptr<void> owned;
};

// Runs the calls. On host memory, starts all calls and then waits for them. On device memory, the
// calls are one batch.
void run_all(GroupCoordinator& group, const std::vector<TensorCall>& calls) {
  const auto on_device = [](const TensorCall& of) {
    return (of.call.in.data != nullptr ? of.call.in.kind : of.call.out.kind) == MemoryKind::device;
  };
  WorkList works;
  for (const TensorCall& of : calls)
    if (!on_device(of)) works.add(GroupAccess::start(group, of.call, of.owned));
  if (std::ranges::any_of(calls, on_device)) {
    rankmesh::detail::FusedCalls together{group};
    for (const TensorCall& of : calls)
      if (on_device(of)) GroupAccess::run(group, of.call);
    together.end();
  }
  works.wait();
}

// Returns the part of a tensor that this rank sends or receives.
Buffer part_of(const Buffer& buffer, bool is_sliced, const TensorDictOptions& options) {
  if (!is_sliced) return buffer;
  const std::int64_t n = buffer.count / options.all_gather->size();
  return buffer.slice(options.all_gather->rank_in_group().value() * n, n);
}

// Returns the call for each tensor that has elements. All other tensors consist only of their
// metadata.
template <class CallOf>
std::vector<TensorCall> calls_for(const TensorDict& tensors, CallOf&& call_of) {
  std::vector<TensorCall> calls;
  std::size_t i = 0;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.count() > 0) calls.push_back({call_of(tensor, i), tensor.owned()});
    ++i;
  }
  return calls;
}

void receive_dict(GroupCoordinator& group, TensorDict& tensors, Peer from,
                  const TensorDictOptions& options) {
  const DictMetadata metadata = detail::metadata_from(recv_message(group, from, options.tag));
  const std::int64_t slices = options.all_gather == nullptr ? 1 : options.all_gather->size();
  if (metadata.slices != slices)
    throw DataError{
        fmt::format("the sender divides tensors into {} slices, this rank gathers {}",
                    metadata.slices, slices),
        "pass TensorDictOptions::all_gather at both ends, with groups of the same size"};
  tensors = prepared(tensors, metadata);
  const RankInGroup source = from.resolve(group.rank_in_group(), group.size());
  std::vector<TensorCall> gathers;
  run_all(group, calls_for(tensors, [&](const Tensor& tensor, std::size_t i) {
            const Buffer part = part_of(tensor.buffer(), metadata.tensors[i].is_sliced, options);
            if (metadata.tensors[i].is_sliced)  // this rank's slice is received in place
              gathers.push_back({{.operation = Operation::all_gather,
                                  .in = part.as_input(),
                                  .out = tensor.buffer(),
                                  .stream = options.stream},
                                 tensor.owned()});
            return Call{.operation = Operation::recv,
                        .tag = options.tag,
                        .out = part,
                        .source = source,
                        .stream = options.stream};
          }));
  if (!gathers.empty()) run_all(*options.all_gather, gathers);
}

}  // namespace

void broadcast_tensor_dict(GroupCoordinator& group, TensorDict& tensors, RankInGroup root,
                           StreamRef stream) {
  const bool at_root = group.rank_in_group() == root;
  Bytes bytes = at_root ? to_bytes(metadata_of(tensors, {})) : Bytes{};
  broadcast_message(group, bytes, root);
  if (!at_root) tensors = prepared(tensors, detail::metadata_from(bytes));
  run_all(group, calls_for(tensors, [&](const Tensor& tensor, std::size_t) {
            return Call{.operation = Operation::broadcast,
                        .out = tensor.buffer(),
                        .root = root,
                        .stream = stream};
          }));
}

void send_tensor_dict(GroupCoordinator& group, const TensorDict& tensors, Peer to,
                      const TensorDictOptions& options) {
  const DictMetadata metadata = metadata_of(tensors, options);
  Bytes bytes = to_bytes(metadata);
  run_or_leak([&] { send_message(group, bytes, to, options.tag); }, bytes);
  const RankInGroup destination = to.resolve(group.rank_in_group(), group.size());
  run_all(group, calls_for(tensors, [&](const Tensor& tensor, std::size_t i) {
            const Buffer part = part_of(tensor.buffer(), metadata.tensors[i].is_sliced, options);
            return Call{.operation = Operation::send,
                        .tag = options.tag,
                        .in = part.as_input(),
                        .destination = destination,
                        .stream = options.stream};
          }));
}

void recv_tensor_dict(GroupCoordinator& group, TensorDict& tensors, Peer from,
                      const TensorDictOptions& options) {
  try {
    receive_dict(group, tensors, from, options);
  } catch (const DataError& error) {
    const RankInGroup source = from.resolve(group.rank_in_group(), group.size());
    const auto& names = rankmesh::detail::GroupAccess::runtime(group).control->names;
    throw DataError{fmt::format("{}.recv_tensor_dict from rank {}: {}", group.name(),
                                names(group.ranks().at(source.value())), error.message()),
                    error.hint()};
  }
}

}  // namespace rankmesh::exchange
