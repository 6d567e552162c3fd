// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "detail/expert_dispatcher_state.hpp"
#include "detail/route_planner.hpp"
#include "exchange/kernels/expert_rows.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {
namespace {

using detail::refuse;
using device::GatherRows;
using device::WeightedSum;

// Whether two blocks of memory share a byte.
bool overlap(ConstBuffer a, ConstBuffer b) {
  const std::less<const std::byte*> before;
  return a.bytes() > 0 && b.bytes() > 0 && before(a.data, b.data + b.bytes()) &&
         before(b.data, a.data + a.bytes());
}

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

// Validates both buffers and returns the elements of a row. This number does not follow from a
// buffer without rows, so it is taken from the other buffer.
std::int64_t elements_per_row(const GroupCoordinator& group, const NamedRows& a,
                              const NamedRows& b) {
  const std::int64_t h = a.rows > 0   ? a.buffer.count / a.rows
                         : b.rows > 0 ? b.buffer.count / b.rows
                                      : 0;
  if (a.buffer.count != a.rows * h || b.buffer.count != b.rows * h)
    refuse(group,
           fmt::format("{} has {} elements for {} rows, {} has {} for {}", a.name, a.buffer.count,
                       a.rows, b.name, b.buffer.count, b.rows),
           "give both arrays the same number of elements per row");
  if (a.buffer.type != b.buffer.type || a.buffer.kind != b.buffer.kind)
    refuse(group,
           fmt::format("{} is {} in {} memory, {} is {} in {} memory", a.name,
                       to_string(a.buffer.type), to_string(a.buffer.kind), b.name,
                       to_string(b.buffer.type), to_string(b.buffer.kind)),
           "use the same type and the same kind of memory for both");
  if (overlap(a.buffer, b.buffer))
    refuse(group, fmt::format("{} and {} overlap", a.name, b.name), "use separate memory");
  const DataType type = a.buffer.type;
  if (type != DataType::float32 && type != DataType::float64 && type != DataType::float16 &&
      type != DataType::bfloat16)
    throw UnsupportedError{fmt::format("expert dispatcher of '{}': the rows are of type {}",
                                       group.name(), to_string(type)),
                           "use float32, float16, bfloat16 or float64"};
  return h;
}

}  // namespace

// Returns a route's lists in the memory of the rows.
ExpertDispatcher::State::Lists ExpertDispatcher::State::lists(const ExpertRoute& route,
                                                              MemoryKind kind) const {
  if (kind == MemoryKind::host)
    return {route.pack_.data(), route.place_.data(), route.unplace_.data(), route.sum_.data()};
  (void)group.native_nccl();  // throws the reason if there are no devices
  if (route.on_device_ == nullptr)
    refuse(group, "the route was made of ids in host memory, the rows are in device memory",
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

void ExpertDispatcher::State::exchange(const RowBlocks<ConstBuffer>& in,
                                       const RowBlocks<Buffer>& out, std::int64_t row_elements,
                                       StreamRef stream) {
  if (group.size() == 1) return;
  const auto elements = [&](std::vector<std::int64_t> rows) {
    for (std::int64_t& n : rows) n *= row_elements;
    return rows;
  };
  const Blocks in_blocks{elements(in.counts), elements(in.places)};
  const Blocks out_blocks{elements(out.counts), elements(out.places)};
  const Call call{.operation = Operation::all_to_all,
                  .in = in.buffer,
                  .out = out.buffer,
                  .in_blocks = &in_blocks,
                  .out_blocks = &out_blocks,
                  .stream = stream};
  run_or_leak([&] { rankmesh::detail::GroupAccess::run(group, call); }, outgoing, incoming);
}

// Returns scratch memory for rows of `like`, for work on the stream.
ExpertDispatcher::State::Scratch ExpertDispatcher::State::scratch(const ExpertRoute& route,
                                                                  std::int64_t row_elements,
                                                                  const ConstBuffer& like,
                                                                  StreamRef stream) {
  const auto memory = [&](detail::ScratchMemory& from, std::int64_t rows, bool is_needed) {
    const std::int64_t count = rows * row_elements;
    const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(like.type));
    return Buffer{from.get(is_needed ? bytes : 0, like.kind, stream), count, like.type, like.kind};
  };
  return {memory(outgoing, route.all_sent_, true),
          memory(incoming, route.all_received_, !route.is_direct_)};
}

void ExpertDispatcher::reserve(const ExpertRoute& route, std::int64_t row_bytes, MemoryKind kind) {
  state_->outgoing.reserve(route.all_sent_ * row_bytes, kind);
  if (!route.is_direct_) state_->incoming.reserve(route.all_received_ * row_bytes, kind);
}

void ExpertDispatcher::dispatch(const ExpertRoute& route, ConstBuffer tokens, bool is_per_choice,
                                Buffer rows, StreamRef stream) {
  State& s = *state_;
  const std::int64_t share = is_per_choice ? 1 : route.top_k_;
  const std::int64_t h = elements_per_row(
      s.group, {is_per_choice ? "choices" : "tokens", tokens, route.tokens_ * route.top_k_ / share},
      {"rows", rows.as_input(), route.rows()});
  const State::Lists lists = s.lists(route, tokens.kind);
  const std::int64_t row_bytes = h * static_cast<std::int64_t>(size_of(tokens.type));
  const auto [outgoing, incoming] = s.scratch(route, h, tokens, stream);
  run_rows(GatherRows{.to = outgoing.data,
                      .other = tokens.data,
                      .index = lists.pack,
                      .rows = route.all_sent_,
                      .split = 0,
                      .share = share,
                      .row_bytes = row_bytes},
           tokens.kind, stream);
  s.exchange({outgoing.as_input(), route.sent_, places(route.sent_)},
             {route.is_direct_ ? rows : incoming, route.received_, s.received_places(route)}, h,
             stream);
  run_rows(GatherRows{.to = rows.data,
                      .from = incoming.data,
                      .other = tokens.data,
                      .index = lists.place,
                      .rows = route.rows(),
                      .split = route.all_received_,
                      .share = share,
                      .row_bytes = row_bytes},
           tokens.kind, stream);
}

// Sends the rows of this rank's experts back. Returns the rows that other ranks have returned, in
// the order in which they were sent to them.
Buffer ExpertDispatcher::State::send_back(const ExpertRoute& route, const ConstBuffer& rows,
                                          std::int64_t row_elements, StreamRef stream) {
  const auto [returned, packed] = scratch(route, row_elements, rows, stream);
  if (!route.is_direct_)
    run_rows(GatherRows{.to = packed.data,
                        .from = rows.data,
                        .index = lists(route, rows.kind).unplace,
                        .rows = route.all_received_,
                        .row_bytes = row_elements * static_cast<std::int64_t>(size_of(rows.type))},
             rows.kind, stream);
  exchange({route.is_direct_ ? rows : packed.as_input(), route.received_, received_places(route)},
           {returned, route.sent_, places(route.sent_)}, row_elements, stream);
  return returned;
}

void ExpertDispatcher::combine(const ExpertRoute& route, ConstBuffer rows, ConstBuffer weights,
                               Buffer out, StreamRef stream) {
  State& s = *state_;
  const std::int64_t h = elements_per_row(s.group, {"rows", rows, route.rows()},
                                          {"out", out.as_input(), route.tokens_});
  if (weights.count != route.tokens_ * route.top_k_ || weights.kind != rows.kind)
    refuse(s.group,
           fmt::format("{} weights for {} tokens and top-{}", weights.count, route.tokens_,
                       route.top_k_),
           "pass one weight per choice, in the same kind of memory as the rows");
  if (weights.type != DataType::float32)
    refuse(s.group, fmt::format("the weights are {}", to_string(weights.type)),
           "pass weights of the type float32");
  const State::Lists lists = s.lists(route, rows.kind);
  const Buffer returned = s.send_back(route, rows, h, stream);
  run_rows(WeightedSum{.to = out.data,
                       .from = returned.data,
                       .other = rows.data,
                       .index = lists.sum,
                       .weight = reinterpret_cast<const float*>(weights.data),
                       .tokens = route.tokens_,
                       .top_k = route.top_k_,
                       .split = route.all_sent_,
                       .row_elements = h,
                       .type = rows.type},
           rows.kind, stream);
}

void ExpertDispatcher::collect(const ExpertRoute& route, ConstBuffer rows, Buffer choices,
                               StreamRef stream) {
  State& s = *state_;
  const std::int64_t count = route.tokens_ * route.top_k_;
  const std::int64_t h = elements_per_row(s.group, {"rows", rows, route.rows()},
                                          {"choices", choices.as_input(), count});
  const State::Lists lists = s.lists(route, rows.kind);
  const Buffer returned = s.send_back(route, rows, h, stream);
  // A choice that is not sent has the index GatherRows::zeros.
  run_rows(GatherRows{.to = choices.data,
                      .from = returned.data,
                      .other = rows.data,
                      .index = lists.sum,
                      .rows = count,
                      .split = route.all_sent_,
                      .row_bytes = h * static_cast<std::int64_t>(size_of(rows.type))},
           rows.kind, stream);
}

}  // namespace rankmesh::exchange
