// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/detail/overlap.hpp"
#include "detail/expert_dispatcher_state.hpp"
#include "detail/route_planner.hpp"
#include "exchange/kernels/expert_rows.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {
namespace {

using detail::DispatcherCall;
using device::GatherRows;
using device::WeightedSum;
using rankmesh::detail::CalledBy;
using rankmesh::detail::UserFunction;

std::vector<std::int64_t> places(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> result(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), result.begin(), std::int64_t{0});
  return result;
}

template <class RowWork>
void run_rows(const RowWork& work, MemoryKind kind, StreamRef stream) {
  if (kind == MemoryKind::device)
    device::launch(work, stream);
  else
    device::run_on_host(work);
}

struct NamedRows {
  std::string_view name;
  ConstBuffer buffer;
  std::int64_t rows;
};

Blocks blocks_of(std::vector<std::int64_t> rows, std::vector<std::int64_t> places,
                 std::int64_t row_elements) {
  for (std::int64_t& n : rows) n *= row_elements;
  for (std::int64_t& n : places) n *= row_elements;
  return {std::move(rows), std::move(places)};
}

// Starts an exchange on host memory. The rows that arrive are put in their places before the Work
// is complete. In a group of one rank, there are none.
template <class RowStep>
Work start(GroupCoordinator& group, const RowStep& step, std::shared_ptr<void> kept) {
  if (group.size() == 1) {
    device::run_on_host(step.finish);
    return {};
  }
  return rankmesh::detail::GroupAccess::start(
      group, step.exchange.call(), std::move(kept),
      [finish = step.finish] { device::run_on_host(finish); });
}

// Validates both buffers and returns the elements of a row. This number does not follow from a
// buffer without rows, so it is taken from the other buffer.
std::int64_t elements_per_row(const DispatcherCall& by, const NamedRows& a, const NamedRows& b) {
  const std::int64_t h = a.rows > 0   ? a.buffer.count / a.rows
                         : b.rows > 0 ? b.buffer.count / b.rows
                                      : 0;
  if (a.buffer.count != a.rows * h || b.buffer.count != b.rows * h)
    by.refuse(fmt::format("{} has {} elements for {} rows, {} has {} for {}", a.name,
                          a.buffer.count, a.rows, b.name, b.buffer.count, b.rows),
              "give both arrays the same number of elements per row");
  if (a.buffer.type != b.buffer.type || a.buffer.kind != b.buffer.kind)
    by.refuse(fmt::format("{} is {} in {} memory, {} is {} in {} memory", a.name,
                          to_string(a.buffer.type), to_string(a.buffer.kind), b.name,
                          to_string(b.buffer.type), to_string(b.buffer.kind)),
              "use the same type and the same kind of memory for both");
  if (rankmesh::detail::overlap(a.buffer, b.buffer))
    by.refuse(fmt::format("{} and {} overlap", a.name, b.name), "use separate memory");
  const DataType type = a.buffer.type;
  if (type != DataType::float32 && type != DataType::float64 && type != DataType::float16 &&
      type != DataType::bfloat16)
    throw UnsupportedError{fmt::format("{}: the rows are of type {}", by.name(), to_string(type)),
                           "use float32, float16, bfloat16 or float64"};
  return h;
}

}  // namespace

// Returns a route's lists in the memory of the rows.
ExpertDispatcher::State::Lists ExpertDispatcher::State::lists(const DispatcherCall& by,
                                                              const ExpertRoute& route,
                                                              MemoryKind kind) const {
  if (std::ssize(route.sent_) != group.size())
    by.refuse(fmt::format("the route is one of a group of {} ranks", route.sent_.size()),
              "pass a route that this dispatcher has made");
  if (kind == MemoryKind::host)
    return {route.pack_.data(), route.place_.data(), route.unplace_.data(), route.sum_.data()};
  (void)group.native_nccl();  // throws the reason if there are no devices
  if (rankmesh::detail::GroupAccess::runtime(group).batch.is_open())
    by.refuse(
        "it is called inside an NcclGroup",
        "end the group first: its operations have not been issued, and the rows would be used "
        "before they arrive");
  if (route.on_device_ == nullptr)
    by.refuse("the route was made of ids in host memory, the rows are in device memory",
              "make the route of ids in device memory");
  const std::int64_t* first = route.on_device_->lists.get();
  const std::int64_t* place = first + route.pack_.size();
  const std::int64_t* unplace = place + route.place_.size();
  return {first, place, unplace, unplace + route.unplace_.size()};
}

// Returns the first received row of each rank. With one slot per rank, rows are received in their
// places among all rows, so this rank's own rows leave a gap.
std::vector<std::int64_t> ExpertDispatcher::State::received_places(const ExpertRoute& route) const {
  std::vector<std::int64_t> counts = route.received_;
  if (route.is_direct_)
    counts[static_cast<std::size_t>(group.rank_in_group().value())] =
        route.counts_.front() - route.all_received_;
  return places(counts);
}

// The other side of each message is packed in memory that is not registered, and NCCL must not get
// registered memory on one side only. So registered rows are copied to or from scratch memory in
// which they have the same places.
bool ExpertDispatcher::State::is_direct(const ExpertRoute& route, const ConstBuffer& rows) const {
  return route.is_direct_ &&
         (rows.kind == MemoryKind::host ||
          !rankmesh::detail::GroupAccess::connection(group).device()->is_registered(rows.data));
}

std::shared_ptr<ExpertDispatcher::State::StepMemory> ExpertDispatcher::State::idle_memory() {
  for (const auto& memory : of_async)
    if (memory.use_count() == 1) return memory;
  return of_async.emplace_back(std::make_shared<StepMemory>());
}

Call ExpertDispatcher::State::RowExchange::call() const {
  return {.operation = Operation::all_to_all,
          .in = in,
          .out = out,
          .in_blocks = &in_blocks,
          .out_blocks = &out_blocks,
          .stream = stream};
}

template <class RowWork>
void ExpertDispatcher::State::run(const RowStep<RowWork>& step) {
  const RowExchange& exchange = step.exchange;
  if (group.size() > 1) {
    run_or_leak([&] { rankmesh::detail::GroupAccess::run(group, exchange.call()); },
                of_blocking.outgoing, of_blocking.incoming);
    if (exchange.copy != nullptr)
      device::detail::copy_on_device(exchange.copy, exchange.out.data,
                                     static_cast<std::size_t>(exchange.out.bytes()),
                                     exchange.stream);
  }
  run_rows(step.finish, exchange.in.kind, exchange.stream);
}

// Returns scratch memory for an exchange of these rows, for work on the stream.
ExpertDispatcher::State::Scratch ExpertDispatcher::State::scratch(StepMemory& memory,
                                                                  const ExpertRoute& route,
                                                                  std::int64_t row_elements,
                                                                  const ConstBuffer& rows,
                                                                  StreamRef stream) const {
  const auto of = [&](detail::ScratchMemory& from, std::int64_t number) {
    const std::int64_t count = number * row_elements;
    const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(rows.type));
    return Buffer{from.get(bytes, rows.kind, stream), count, rows.type, rows.kind};
  };
  const std::int64_t received = !route.is_direct_        ? route.all_received_
                                : is_direct(route, rows) ? 0
                                                         : route.counts_.front();
  return {of(memory.outgoing, route.all_sent_), of(memory.incoming, received)};
}

void ExpertDispatcher::reserve(const ExpertRoute& route, std::int64_t row_bytes, MemoryKind kind) {
  State::StepMemory& memory = state_->of_blocking;
  memory.outgoing.reserve(route.all_sent_ * row_bytes, kind);
  if (!route.is_direct_) memory.incoming.reserve(route.all_received_ * row_bytes, kind);
}

auto ExpertDispatcher::State::dispatch_step(const DispatcherCall& by, StepMemory& memory,
                                            const ExpertRoute& route, const ConstBuffer& tokens,
                                            bool is_per_choice, const Buffer& rows,
                                            StreamRef stream) const -> RowStep<GatherRows> {
  const std::int64_t share = is_per_choice ? 1 : route.top_k_;
  const std::int64_t h = elements_per_row(
      by, {is_per_choice ? "choices" : "tokens", tokens, route.tokens_ * route.top_k_ / share},
      {"rows", rows.as_input(), route.rows()});
  const Lists of_route = lists(by, route, tokens.kind);
  const std::int64_t row_bytes = h * static_cast<std::int64_t>(size_of(tokens.type));
  const auto [outgoing, incoming] = scratch(memory, route, h, rows.as_input(), stream);
  const bool direct = is_direct(route, rows.as_input());
  run_rows(GatherRows{.to = outgoing.data,
                      .other = tokens.data,
                      .index = of_route.pack,
                      .rows = route.all_sent_,
                      .split = 0,
                      .share = share,
                      .row_bytes = row_bytes},
           tokens.kind, stream);
  return {{outgoing.as_input(), direct ? rows : incoming,
           blocks_of(route.sent_, places(route.sent_), h),
           blocks_of(route.received_, received_places(route), h), stream,
           route.is_direct_ && !direct ? rows.data : nullptr},
          {.to = rows.data,
           .from = incoming.data,
           .other = tokens.data,
           .index = of_route.place,
           .rows = route.rows(),
           .split = route.all_received_,
           .share = share,
           .row_bytes = row_bytes}};
}

void ExpertDispatcher::dispatch(const ExpertRoute& route, ConstBuffer tokens, bool is_per_choice,
                                Buffer rows, StreamRef stream) {
  State& s = state();
  const CalledBy caller =
      s.called_by(is_per_choice ? UserFunction::dispatch_choices : UserFunction::dispatch);
  const auto by = s.call_of(is_per_choice ? "::dispatch_choices" : "::dispatch");
  s.run(s.dispatch_step(by, s.of_blocking, route, tokens, is_per_choice, rows, stream));
}

Work ExpertDispatcher::start_dispatch(const ExpertRoute& route, ConstBuffer tokens, Buffer rows) {
  State& s = state();
  const CalledBy caller = s.called_by(UserFunction::dispatch);
  auto memory = s.idle_memory();
  const auto step =
      s.dispatch_step(s.call_of("::dispatch_async"), *memory, route, tokens, false, rows, {});
  return start(s.group, step, std::move(memory));
}

// Packs the rows of this rank's experts that other ranks get. They return the rows in the order in
// which they were sent to them.
ExpertDispatcher::State::RowExchange ExpertDispatcher::State::send_back(
    const DispatcherCall& by, StepMemory& memory, const ExpertRoute& route, const ConstBuffer& rows,
    std::int64_t row_elements, StreamRef stream) const {
  const auto [returned, packed] = scratch(memory, route, row_elements, rows, stream);
  const bool direct = is_direct(route, rows);
  if (route.is_direct_ && !direct)
    device::detail::copy_on_device(packed.data, rows.data, static_cast<std::size_t>(packed.bytes()),
                                   stream);
  if (!route.is_direct_)
    run_rows(GatherRows{.to = packed.data,
                        .from = rows.data,
                        .index = lists(by, route, rows.kind).unplace,
                        .rows = route.all_received_,
                        .row_bytes = row_elements * static_cast<std::int64_t>(size_of(rows.type))},
             rows.kind, stream);
  return {direct ? rows : packed.as_input(), returned,
          blocks_of(route.received_, received_places(route), row_elements),
          blocks_of(route.sent_, places(route.sent_), row_elements), stream};
}

auto ExpertDispatcher::State::combine_step(const DispatcherCall& by, StepMemory& memory,
                                           const ExpertRoute& route, const ConstBuffer& rows,
                                           const ConstBuffer& weights, const Buffer& out,
                                           StreamRef stream) const -> RowStep<WeightedSum> {
  const std::int64_t h =
      elements_per_row(by, {"rows", rows, route.rows()}, {"out", out.as_input(), route.tokens_});
  if (weights.count != route.tokens_ * route.top_k_ || weights.kind != rows.kind)
    by.refuse(fmt::format("{} weights for {} tokens and top-{}", weights.count, route.tokens_,
                          route.top_k_),
              "pass one weight per choice, in the same kind of memory as the rows");
  if (weights.type != DataType::float32 && weights.type != rows.type)
    by.refuse(fmt::format("the weights are {}", to_string(weights.type)),
              "pass weights of the type float32, or of the type of the rows");
  const Lists of_route = lists(by, route, rows.kind);
  RowExchange exchange = send_back(by, memory, route, rows, h, stream);
  const WeightedSum sum{.to = out.data,
                        .from = exchange.out.data,
                        .other = rows.data,
                        .index = of_route.sum,
                        .weight = weights.data,
                        .tokens = route.tokens_,
                        .top_k = route.top_k_,
                        .split = route.all_sent_,
                        .row_elements = h,
                        .type = rows.type,
                        .has_weights_of_type = weights.type == rows.type};
  return {std::move(exchange), sum};
}

void ExpertDispatcher::combine(const ExpertRoute& route, ConstBuffer rows, ConstBuffer weights,
                               Buffer out, StreamRef stream) {
  State& s = state();
  const CalledBy caller = s.called_by(UserFunction::combine);
  s.run(s.combine_step(s.call_of("::combine"), s.of_blocking, route, rows, weights, out, stream));
}

Work ExpertDispatcher::start_combine(const ExpertRoute& route, ConstBuffer rows,
                                     ConstBuffer weights, Buffer out) {
  State& s = state();
  const CalledBy caller = s.called_by(UserFunction::combine);
  struct Kept {
    std::shared_ptr<State::StepMemory> memory;
    std::vector<std::byte> weights;
  };
  auto kept = std::make_shared<Kept>(
      Kept{s.idle_memory(), std::vector<std::byte>(weights.data, weights.data + weights.bytes())});
  weights.data = kept->weights.data();
  const auto step =
      s.combine_step(s.call_of("::combine_async"), *kept->memory, route, rows, weights, out, {});
  return start(s.group, step, std::move(kept));
}

void ExpertDispatcher::collect(const ExpertRoute& route, ConstBuffer rows, Buffer choices,
                               StreamRef stream) {
  State& s = state();
  const CalledBy caller = s.called_by(UserFunction::collect_choices);
  const std::int64_t count = route.tokens_ * route.top_k_;
  const auto by = s.call_of("::collect_choices");
  const std::int64_t h =
      elements_per_row(by, {"rows", rows, route.rows()}, {"choices", choices.as_input(), count});
  const State::Lists lists = s.lists(by, route, rows.kind);
  State::RowExchange exchange = s.send_back(by, s.of_blocking, route, rows, h, stream);
  // A choice that is not sent has the index GatherRows::zeros.
  const GatherRows finish{.to = choices.data,
                          .from = exchange.out.data,
                          .other = rows.data,
                          .index = lists.sum,
                          .rows = count,
                          .split = route.all_sent_,
                          .row_bytes = h * static_cast<std::int64_t>(size_of(rows.type))};
  s.run(State::RowStep<GatherRows>{std::move(exchange), finish});
}

}  // namespace rankmesh::exchange
