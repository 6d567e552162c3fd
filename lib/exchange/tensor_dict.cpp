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

// Returns the tensors to receive into, in the order of the metadata. A tensor of the dictionary is
// reused if it fits.
TensorDict prepared(TensorDict& old, const DictMetadata& metadata) {
  TensorDict tensors;
  for (const TensorMetadata& incoming : metadata.tensors) {
    Tensor* there = old.find(incoming.name);
    const bool fits = there != nullptr && there->type() == incoming.type &&
                      there->kind() == incoming.kind && there->shape() == incoming.shape;
    try {
      tensors.add(incoming.name,
                  fits ? std::move(*there)
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
  return tensors;
}

// Runs the calls. On host memory, starts all calls and then waits for them. On device memory, the
// calls are one batch.
void run_all(GroupCoordinator& group, const std::vector<Call>& calls) {
  const auto on_device = [](const Call& call) {
    return (call.in.data != nullptr ? call.in.kind : call.out.kind) == MemoryKind::device;
  };
  WorkList works;
  for (const Call& call : calls)
    if (!on_device(call)) works.add(GroupAccess::start(group, call));
  if (std::ranges::any_of(calls, on_device)) {
    rankmesh::detail::FusedCalls together{group};
    for (const Call& call : calls)
      if (on_device(call)) GroupAccess::run(group, call);
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
std::vector<Call> calls_for(const TensorDict& tensors, CallOf&& call_of) {
  std::vector<Call> calls;
  std::size_t i = 0;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.count() > 0) calls.push_back(call_of(tensor.buffer(), i));
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
  std::vector<Call> gathers;
  run_all(group, calls_for(tensors, [&](const Buffer& buffer, std::size_t i) {
            const Buffer part = part_of(buffer, metadata.tensors[i].is_sliced, options);
            if (metadata.tensors[i].is_sliced)  // this rank's slice is received in place
              gathers.push_back({.operation = Operation::all_gather,
                                 .in = part.as_input(),
                                 .out = buffer,
                                 .stream = options.stream});
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
  run_all(group, calls_for(tensors, [&](const Buffer& buffer, std::size_t) {
            return Call{
                .operation = Operation::broadcast, .out = buffer, .root = root, .stream = stream};
          }));
}

void send_tensor_dict(GroupCoordinator& group, const TensorDict& tensors, Peer to,
                      const TensorDictOptions& options) {
  const DictMetadata metadata = metadata_of(tensors, options);
  send_message(group, to_bytes(metadata), to, options.tag);
  const RankInGroup destination = to.resolve(group.rank_in_group(), group.size());
  run_all(group, calls_for(tensors, [&](const Buffer& buffer, std::size_t i) {
            return Call{.operation = Operation::send,
                        .tag = options.tag,
                        .in = part_of(buffer, metadata.tensors[i].is_sliced, options).as_input(),
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
