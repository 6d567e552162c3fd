// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/group/coordinator.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "detail/call_dispatcher.hpp"
#include "detail/check_call.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh {
namespace detail {
namespace {

// Throws an error of a call, in the words of the checks that every call passes.
[[noreturn]] void refuse(const CallDispatcher& of, std::string_view operation, std::string problem,
                         std::string hint) {
  throw UsageError{fmt::format("{}.{} on rank {} of {} in the group: {}", of.name(), operation,
                               of.self().value(), of.size(), problem),
                   std::move(hint)};
}

}  // namespace

CallIssuer::CallIssuer(std::unique_ptr<CallDispatcher> dispatcher)
    : dispatcher_{std::move(dispatcher)},
      size_{dispatcher_->size()},
      self_{dispatcher_->self()},
      name_index_{dispatcher_->name_index()} {}
CallIssuer::~CallIssuer() = default;

void CallIssuer::run_any(const Call& call) { dispatcher_->run(call); }
Work CallIssuer::start_any(const Call& call, std::shared_ptr<void> kept) {
  return dispatcher_->start(call, std::move(kept));
}

std::optional<std::int64_t> CallIssuer::arrived(RankInGroup from, int tag) {
  return dispatcher_->arrived(from, tag);
}

void CallIssuer::require_sizes(const Call& call, bool of_arrays) const {
  check_sizes(call, of_arrays, dispatcher_->name(), self_, size_);
}

CalledBy::CalledBy(MeshRuntime& runtime, UserFunction function)
    : runtime_{runtime}, before_{runtime.caller} {
  runtime_.slow_path.add();
  if (before_ == UserFunction::none) runtime_.caller = function;
}
CalledBy::CalledBy(const CallIssuer& group, UserFunction function)
    : CalledBy{*group.dispatcher_->runtime(), function} {}
CalledBy::~CalledBy() {
  runtime_.caller = before_;
  runtime_.slow_path.remove();
}

void CallIssuer::require_divisible(std::size_t elements) const {
  if (elements % static_cast<std::size_t>(size_) != 0)
    refuse(*dispatcher_, "all_to_all",
           fmt::format("the {} elements of in cannot be divided by {} members", elements, size_),
           "give every member the same number of elements");
}

void CallIssuer::require_same_axes(const Call& call, const ArrayShape& in, const ArrayShape& out,
                                   bool has_axis) const {
  const bool is_root = call.root == self_;
  const bool has_in = has_input(call.operation, is_root);
  const bool has_out = has_output(call.operation, is_root);
  const auto refuse_axes = [&](std::string_view problem, const char* hint) {
    refuse(*dispatcher_, to_string(call.operation),
           fmt::format("in is {}, out is {}: {}", in.to_string(), out.to_string(), problem), hint);
  };
  const bool is_sliced =
      std::ranges::any_of(std::array{call.in_blocks, call.out_blocks},
                          [](const Blocks* b) { return b != nullptr && b->rows() > 0; });
  if (is_sliced && ((has_in && !in.is_row_major()) || (has_out && !out.is_row_major())))
    refuse_axes("a SlicedAxis divides a row-major array", "pass row-major arrays");
  if (!has_in || !has_out) return;
  if (in.axes() < 2 || out.axes() < 2 || in.count() == 0 || out.count() == 0) return;
  if (in.axes() != out.axes()) {
    if (!in.is_row_major() || !out.is_row_major())
      refuse_axes("arrays with different numbers of axes must be row-major",
                  "pass arrays with the same axes");
    return;
  }
  const auto both_have = [&](std::size_t k) { return in.lengths()[k] > 1 && out.lengths()[k] > 1; };
  for (std::size_t k = 0; k < in.axes(); ++k)
    for (std::size_t l = 0; l < k; ++l)
      if (both_have(k) && both_have(l) &&
          (in.strides()[k] < in.strides()[l]) != (out.strides()[k] < out.strides()[l]))
        refuse_axes("their axes have different orders in memory",
                    "copy one of them to the order of the other, for example row-major");
  // Without an axis, block k of an array is the k-th part of its memory: a part of the slowest
  // axis.
  const OperationFacts& facts = facts_of(call.operation);
  if (has_axis || is_sliced || (facts.in == Extent::block && facts.out == Extent::block)) return;
  const ArrayShape& whole = in.count() < out.count() ? out : in;
  std::size_t slowest = 0;
  for (std::size_t k = 1; k < whole.axes(); ++k)
    if (whole.lengths()[k] > 1 &&
        (whole.lengths()[slowest] == 1 || whole.strides()[k] > whole.strides()[slowest]))
      slowest = k;
  for (std::size_t k = 0; k < whole.axes(); ++k)
    if (k != slowest && in.lengths()[k] != out.lengths()[k])
      refuse_axes(
          fmt::format("blocks follow each other along axis {}, the slowest one, but axis {} "
                      "has different lengths",
                      slowest, k),
          "pass an Axis, or arrays that differ along the slowest axis only");
}

template <Operation operation>
void CallIssuer::run_fast(const Call& call) {
  dispatcher_->run_fast<operation>(call);
}
// Instantiates run_fast() for every operation.
struct CallIssuer::FastPaths {
  using FastPath = void (CallIssuer::*)(const Call&);
  template <std::size_t... number>
  static constexpr std::array<FastPath, operation_count> of(std::index_sequence<number...>) {
    return {&CallIssuer::run_fast<static_cast<Operation>(number)>...};
  }
  static const std::array<FastPath, operation_count> all;
};
const std::array<CallIssuer::FastPaths::FastPath, operation_count> CallIssuer::FastPaths::all =
    of(std::make_index_sequence<operation_count>{});

std::unique_ptr<GroupCoordinator> GroupAccess::make(std::string name,
                                                    std::shared_ptr<Connection> connection,
                                                    std::shared_ptr<MeshRuntime> runtime) {
  return std::unique_ptr<GroupCoordinator>{new GroupCoordinator{std::make_unique<CallDispatcher>(
      std::move(name), std::move(connection), std::move(runtime))}};
}

void GroupAccess::run(GroupCoordinator& group, const Call& call) {
  Call own = call;
  own.name_index = group.name_index_;
  group.dispatcher_->run(own);
}
Work GroupAccess::start(GroupCoordinator& group, const Call& call, std::shared_ptr<void> kept,
                        std::function<void()> finish) {
  Call own = call;
  own.name_index = group.name_index_;
  return group.dispatcher_->start(own, std::move(kept), std::move(finish));
}
Work GroupAccess::start(GroupCoordinator& group, const SequenceDescription& description,
                        std::unique_ptr<MessageSequence> sequence) {
  return group.dispatcher_->start(description, std::move(sequence));
}
Work GroupAccess::start(GroupCoordinator& group, const SequenceDescription& description,
                        StreamRef stream, std::shared_ptr<DeviceSequence> sequence) {
  return group.dispatcher_->start(description, stream, std::move(sequence));
}
void GroupAccess::require_no_batch(const GroupCoordinator& group, std::string_view function) {
  const CallLock lock{runtime(group)};
  group.dispatcher_->require_no_batch(function);
}
std::unique_ptr<SequenceMessages> GroupAccess::messages(const GroupCoordinator& group) {
  return std::make_unique<SequenceMessages>(group.dispatcher_->shared_connection(),
                                            group.dispatcher_->name_index());
}
MeshRuntime& GroupAccess::runtime(const GroupCoordinator& group) {
  return *group.dispatcher_->runtime();
}
std::shared_ptr<const Lifetime> GroupAccess::lifetime(const GroupCoordinator& group) {
  return group.dispatcher_->lifetime();
}
Connection& GroupAccess::connection(const GroupCoordinator& group) {
  return group.dispatcher_->connection();
}

}  // namespace detail

GroupCoordinator::GroupCoordinator(std::unique_ptr<detail::CallDispatcher> dispatcher)
    : CallIssuer{std::move(dispatcher)} {}
GroupCoordinator::~GroupCoordinator() = default;

const std::string& GroupCoordinator::name() const noexcept { return dispatcher_->name(); }
const RankSet& GroupCoordinator::ranks() const noexcept {
  return dispatcher_->connection().group.ranks;
}
Rank GroupCoordinator::rank() const noexcept { return dispatcher_->runtime()->rank; }
std::int32_t GroupCoordinator::local_rank() const noexcept {
  return dispatcher_->runtime()->local_rank;
}

MPI_Comm GroupCoordinator::native_mpi() const {
  dispatcher_->require_open("take the handle before close()");
  return dispatcher_->connection().comm().native();
}

ncclComm* GroupCoordinator::native_nccl() const {
  dispatcher_->require_open("take the handle before close()");
  if (!dispatcher_->connection().is_usable())
    throw ClosedError{
        fmt::format("'{}' is broken: {}", name(), dispatcher_->connection().why_unusable()),
        "take the handle before the failure"};
  return dispatcher_->device("native_nccl").native();
}

StreamRef GroupCoordinator::stream() const {
  dispatcher_->require_open("close() destroys the stream of the group");
  return dispatcher_->device("stream").stream();
}

void GroupCoordinator::wait(StreamRef stream) { dispatcher_->wait_for_stream(stream); }

const BootstrapReport* GroupCoordinator::bootstrap() const noexcept {
  const DeviceTransport* device = dispatcher_->connection().device();
  return device == nullptr ? nullptr : device->bootstrap();
}

RouteExplanation GroupCoordinator::explain(Operation operation, std::int64_t bytes, MemoryKind kind,
                                           DataType type, bool capture) const {
  // A call without memory: transports decide by sizes and types only.
  Call call{.operation = operation};
  const bool has_size = bytes >= 0;
  const auto width = static_cast<std::int64_t>(size_of(type));
  const std::int64_t whole = has_data(operation) ? std::max<std::int64_t>(bytes, 0) / width : 0;
  const std::int64_t block = whole / size_;
  // On host memory, these reductions are carried out in float32 (see ScratchCall).
  if (kind == MemoryKind::host && is_narrow_float(type) && reduces(operation))
    type = DataType::float32;
  call.in = {nullptr, whole, type, kind};
  call.out = {nullptr, whole, type, kind};
  if (gathers(operation)) call.in.count = block;
  if (scatters(operation)) call.out.count = block;
  const Blocks blocks{std::vector<std::int64_t>(static_cast<std::size_t>(size_))};
  if (!has_size && !is_point_to_point(operation)) call.in_blocks = call.out_blocks = &blocks;
  RouteExplanation explanation = dispatcher_->explain(call, capture);
  const bool with_bytes = has_data(operation) && has_size;
  explanation.question =
      fmt::format("{}.{}{} on the {}", name(), rankmesh::to_string(operation),
                  with_bytes ? fmt::format(" of {} bytes", bytes) : "", rankmesh::to_string(kind));
  for (RouteExplanation& form : explanation.async_form)
    form.question = explanation.question + ", asynchronously";
  return explanation;
}

}  // namespace rankmesh
