#include "rankmesh/exchange/expert_dispatcher.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "device/kernels/expert_rows.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::exchange {

using device::DeviceBuffer;
using device::GatherRows;
using device::WeightedSum;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t padded(std::int64_t rows, std::int64_t alignment) {
  return (rows + alignment - 1) / alignment * alignment;
}

// Whether two stretches of memory share a byte.
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

// The lists of a route in one kind of memory.
struct Lists {
  const std::int64_t *pack, *place, *unplace, *sum;
};

// What a call fails with, unless that is a UsageError, leaves its memory lent to MPI: it is never
// freed.
template <class Action, class... Buffers>
void lending(Action&& action, Buffers&... buffers) {
  try {
    action();
  } catch (const UsageError&) {
    throw;
  } catch (...) {
    (void)new std::tuple<Buffers...>{std::exchange(buffers, Buffers{})...};  // NOLINT
    throw;
  }
}

template <class Work>
void run(const Work& work, MemoryKind kind, StreamRef stream) {
  if (kind == MemoryKind::device)
    device::launch(work, stream);
  else
    device::run_on_host(work);
}

}  // namespace

struct ExpertRoute::OnDevice {
  DeviceBuffer<std::int64_t> lists;  // pack, place, unplace, sum, one after the other
};

struct ExpertDispatcher::State {
  // Memory that only grows.
  class Scratch {
   public:
    std::byte* get(std::int64_t bytes, MemoryKind kind) {
      if (kind == MemoryKind::device) {
        if (on_device_.size() < at(bytes)) {
          on_device_ = {};  // first: both may not fit together
          on_device_ = DeviceBuffer<std::byte>{at(bytes)};
        }
        return on_device_.data();
      }
      if (size_ < bytes) {
        on_host_.reset();
        on_host_ = std::make_unique_for_overwrite<std::byte[]>(at(bytes));
        size_ = bytes;
      }
      return on_host_.get();
    }

   private:
    std::unique_ptr<std::byte[]> on_host_;
    std::int64_t size_ = 0;
    DeviceBuffer<std::byte> on_device_;
  };

  GroupCoordinator& group;
  ExpertMap map;
  ExpertDispatcherOptions options;
  Scratch outgoing, incoming;

  [[noreturn]] void refuse(std::string_view what, std::string_view hint) const {
    throw UsageError{fmt::format("expert dispatcher of '{}' on rank {} of {} in the group: {}",
                                 group.name(), group.rank_in_group().value(), group.size(), what),
                     std::string{hint}};
  }

  // All ranks have the same, or all throw the same.
  void agree(const ExpertMap& wanted) const {
    if (wanted.ranks() != group.size())
      refuse(fmt::format("the expert map is for {} ranks", wanted.ranks()),
             "make it for the group's size");
    const auto slots = wanted.physical_to_logical();
    const Hash128 map_hash =
        hash_bytes({reinterpret_cast<const char*>(slots.data()), slots.size_bytes()});
    const std::string all =
        fmt::format("{} {} {} {} {}", to_string(map_hash), wanted.experts(), wanted.slots(),
                    options.alignment, options.capacity.value_or(0));
    const Hash128 hash = hash_bytes(all);
    std::vector<std::uint64_t> most{hash.high, hash.low, ~hash.high, ~hash.low};
    lending([&] { group.all_reduce(most, ReduceOp::max); }, most);
    if (most[0] != ~most[2] || most[1] != ~most[3])
      throw MismatchError{fmt::format("the members of '{}' pass different expert maps or options "
                                      "to their expert dispatcher",
                                      group.name()),
                          "pass the same map, alignment and capacity on every rank", false};
  }

  // H, from whichever of the two has rows; checks both.
  [[nodiscard]] std::int64_t row_elements(ConstBuffer a, std::string_view a_name,
                                          std::int64_t a_rows, ConstBuffer b,
                                          std::string_view b_name, std::int64_t b_rows) const {
    const std::int64_t h = a_rows > 0 ? a.count / a_rows : b_rows > 0 ? b.count / b_rows : 0;
    if (a.count != a_rows * h || b.count != b_rows * h)
      refuse(fmt::format("{} has {} elements for {} rows, {} has {} for {}", a_name, a.count,
                         a_rows, b_name, b.count, b_rows),
             "both have their rows x H elements");
    if (overlap(a, b))
      refuse(fmt::format("{} and {} overlap", a_name, b_name), "use separate memory");
    if (a.type != DataType::float32 && a.type != DataType::float64 && a.type != DataType::float16 &&
        a.type != DataType::bfloat16)
      throw UnsupportedError{
          fmt::format("expert dispatcher of '{}': rows of {}", group.name(), to_string(a.type)),
          "use float32, float16, bfloat16 or float64"};
    return h;
  }

  // The lists of a route, in the memory of the rows.
  [[nodiscard]] Lists lists(const ExpertRoute& route, MemoryKind kind) const {
    if (kind == MemoryKind::host)
      return {route.pack_.data(), route.place_.data(), route.unplace_.data(), route.sum_.data()};
    (void)group.native_nccl();  // says why there are no devices
    if (route.on_device_ == nullptr)
      refuse("a route of ids in host memory for rows in device memory",
             "make it of ids in device memory");
    const std::int64_t* first = route.on_device_->lists.data();
    const std::int64_t* place = first + route.pack_.size();
    const std::int64_t* unplace = place + route.place_.size();
    return {first, place, unplace, unplace + route.unplace_.size()};
  }

  // Where the rows of each rank begin that are received, or sent back. With one slot per rank that
  // is their place in the block, where this rank's own stand among them.
  [[nodiscard]] std::vector<std::int64_t> received_places(const ExpertRoute& route) const {
    std::vector<std::int64_t> counts = route.received_;
    if (route.is_direct_)
      counts[at(group.rank_in_group().value())] = route.counts_.front() - route.all_received_;
    return places(counts);
  }

  // The exchange of `in` for `out`, rows of so many elements; the other way round on the way back.
  void exchange(const std::vector<std::int64_t>& sent, const std::vector<std::int64_t>& received,
                ConstBuffer in, Buffer out, const std::vector<std::int64_t>& out_places,
                const std::vector<std::int64_t>& in_places, std::int64_t row_elements,
                StreamRef stream) {
    if (group.size() == 1) return;
    const auto elements = [&](std::vector<std::int64_t> rows) {
      for (std::int64_t& n : rows) n *= row_elements;
      return rows;
    };
    const Blocks in_blocks{elements(sent), elements(in_places)};
    const Blocks out_blocks{elements(received), elements(out_places)};
    const Call call{.operation = Operation::all_to_all,
                    .in = in,
                    .out = out,
                    .in_blocks = &in_blocks,
                    .out_blocks = &out_blocks,
                    .stream = stream};
    lending([&] { rankmesh::detail::GroupAccess::run(group, call); }, outgoing, incoming);
  }
};

ExpertDispatcher::ExpertDispatcher(GroupCoordinator& group, ExpertMap map,
                                   ExpertDispatcherOptions options)
    : state_{new State{group, std::move(map), options, {}, {}}} {
  if (options.alignment < 1 || options.capacity.value_or(1) < 1)
    state_->refuse(fmt::format("the alignment is {}, the capacity {}", options.alignment,
                               options.capacity.value_or(1)),
                   "both are at least 1");
  state_->agree(state_->map);
}
ExpertDispatcher::~ExpertDispatcher() = default;
ExpertDispatcher::ExpertDispatcher(ExpertDispatcher&&) noexcept = default;
ExpertDispatcher& ExpertDispatcher::operator=(ExpertDispatcher&&) noexcept = default;

const ExpertMap& ExpertDispatcher::map() const { return state_->map; }

void ExpertDispatcher::set_map(ExpertMap map) {
  state_->agree(map);
  state_->map = std::move(map);
}

ExpertRoute ExpertDispatcher::route(std::span<const std::int32_t> ids, std::int64_t top_k) {
  return plan(ids, top_k);
}

ExpertRoute ExpertDispatcher::route(DeviceSpan<const std::int32_t> ids, std::int64_t top_k,
                                    StreamRef stream) {
  (void)state_->group.native_nccl();  // says why there are no devices
  std::vector<std::int32_t> on_host(ids.size());
  device::detail::copy(on_host.data(), ids.data(), ids.size() * sizeof(std::int32_t),
                       device::detail::Direction::to_host, stream);
  ExpertRoute route = plan(on_host, top_k);
  std::vector<std::int64_t> lists;
  for (const auto* list : {&route.pack_, &route.place_, &route.unplace_, &route.sum_})
    lists.insert(lists.end(), list->begin(), list->end());
  auto uploaded = std::make_shared<ExpertRoute::OnDevice>();
  uploaded->lists = DeviceBuffer<std::int64_t>{lists.size()};
  uploaded->lists.upload(lists, stream);
  route.on_device_ = std::move(uploaded);
  return route;
}

// Choices are sorted by slot, then by token and choice: a counting sort, so the order is the same
// everywhere.
ExpertRoute ExpertDispatcher::plan(std::span<const std::int32_t> ids, std::int64_t top_k) {
  State& s = *state_;
  const ExpertMap& map = s.map;
  const std::int64_t n = s.group.size(), self = s.group.rank_in_group().value();
  const std::int64_t local = map.slots_per_rank(), choices = static_cast<std::int64_t>(ids.size());
  if (top_k < 1 || choices % top_k != 0)
    s.refuse(fmt::format("{} expert ids for top-{}", ids.size(), top_k), "give k ids per token");

  ExpertRoute route;
  route.tokens_ = choices / top_k;
  route.top_k_ = top_k;
  route.experts_.assign(map.experts_of(self).begin(), map.experts_of(self).end());
  route.is_direct_ = local == 1;

  // The slot of each choice, -1 for none; how many there are for each slot.
  std::vector<std::int32_t> slot(ids.size(), -1);
  std::vector<std::int64_t> used(at(map.slots()));
  std::vector<std::int64_t> turn(at(map.experts()), self);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int32_t expert = ids[i];
    if (expert == -1) continue;
    if (expert < -1 || expert >= map.experts())
      s.refuse(
          fmt::format("expert id {} of token {}", expert, static_cast<std::int64_t>(i) / top_k),
          fmt::format("ids run from 0 to {}, and -1 is no choice", map.experts() - 1));
    const auto replicas = map.replicas(expert);
    const auto e = static_cast<std::size_t>(expert);
    const std::int32_t p = replicas[static_cast<std::size_t>(turn[e]++) % replicas.size()];
    if (s.options.capacity && used[static_cast<std::size_t>(p)] >= *s.options.capacity) continue;
    slot[i] = p;
    ++used[static_cast<std::size_t>(p)];
  }
  route.dropped_ = std::ranges::count(slot, -1);

  // Rows from this rank to each slot, and from each rank to each slot of this one.
  std::vector<std::int64_t> to_slot = used;
  std::vector<std::int64_t> from_rank(at(n * local), s.options.capacity.value_or(0));
  if (s.options.capacity)
    std::ranges::fill(to_slot, *s.options.capacity);
  else
    lending([&] { s.group.all_to_all(to_slot, from_rank); }, to_slot, from_rank);

  // Where the rows lie: sent ones by slot, received ones by rank and slot, in both this rank's own
  // left out; this rank's rows by slot and rank.
  std::vector<std::int64_t> send_place(at(map.slots())), row_place(at(n * local));
  route.sent_.resize(at(n));
  route.received_.resize(at(n));
  for (std::int64_t p = 0; p < map.slots(); ++p) {
    send_place[at(p)] = route.all_sent_;
    if (p / local == self) continue;
    route.sent_[at(p / local)] += to_slot[at(p)];
    route.all_sent_ += to_slot[at(p)];
  }
  std::int64_t end = 0;
  for (std::int64_t e = 0; e < local; ++e) {
    std::int64_t count = 0;
    for (std::int64_t r = 0; r < n; ++r) {
      row_place[at(r * local + e)] = end + count;
      count += from_rank[at(r * local + e)];
      if (r == self) continue;
      route.received_[at(r)] += from_rank[at(r * local + e)];
      route.all_received_ += from_rank[at(r * local + e)];
    }
    route.counts_.push_back(count);
    end += padded(count, s.options.alignment);
    route.offsets_.push_back(end);
  }

  // The four lists.
  route.pack_.assign(at(route.all_sent_), GatherRows::zeros);
  route.place_.assign(at(end), GatherRows::zeros);
  route.unplace_.resize(at(route.is_direct_ ? 0 : route.all_received_));
  route.sum_.assign(ids.size(), GatherRows::zeros);
  std::int64_t received = 0;
  for (std::int64_t r = 0; r < n; ++r) {
    if (r == self) continue;
    for (std::int64_t e = 0; e < local; ++e) {
      const std::int64_t first = row_place[at(r * local + e)], count = from_rank[at(r * local + e)];
      for (std::int64_t i = 0; i < count; ++i, ++received) {
        route.place_[at(first + i)] = route.is_direct_ ? GatherRows::keep : received;
        if (!route.is_direct_) route.unplace_[at(received)] = first + i;
      }
    }
  }
  std::vector<std::int64_t> next(at(map.slots()));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (slot[i] < 0) continue;
    const std::int64_t p = slot[i];
    const std::int64_t nth = next[at(p)]++;
    if (p / local == self) {
      const std::int64_t row = row_place[at(self * local + p % local)] + nth;
      route.place_[at(row)] = route.all_received_ + static_cast<std::int64_t>(i);
      route.sum_[i] = route.all_sent_ + row;
    } else {
      route.pack_[at(send_place[at(p)] + nth)] = static_cast<std::int64_t>(i);
      route.sum_[i] = send_place[at(p)] + nth;
    }
  }
  return route;
}

void ExpertDispatcher::reserve(const ExpertRoute& route, std::int64_t row_bytes, MemoryKind kind) {
  (void)state_->outgoing.get(route.all_sent_ * row_bytes, kind);
  if (!route.is_direct_) (void)state_->incoming.get(route.all_received_ * row_bytes, kind);
}

void ExpertDispatcher::dispatch(const ExpertRoute& route, ConstBuffer tokens, bool is_per_choice,
                                Buffer rows, StreamRef stream) {
  State& s = *state_;
  const std::int64_t share = is_per_choice ? 1 : route.top_k_;
  const std::int64_t h =
      s.row_elements(tokens, is_per_choice ? "choices" : "tokens",
                     route.tokens_ * route.top_k_ / share, rows.as_input(), "rows", route.rows());
  const Lists lists = s.lists(route, tokens.kind);
  const std::int64_t row_bytes = h * static_cast<std::int64_t>(size_of(tokens.type));
  reserve(route, row_bytes, tokens.kind);
  const Buffer outgoing{s.outgoing.get(0, tokens.kind), route.all_sent_ * h, tokens.type,
                        tokens.kind};
  const Buffer incoming{s.incoming.get(0, tokens.kind), route.all_received_ * h, tokens.type,
                        tokens.kind};
  run(GatherRows{.to = outgoing.data,
                 .other = tokens.data,
                 .index = lists.pack,
                 .rows = route.all_sent_,
                 .split = 0,
                 .share = share,
                 .row_bytes = row_bytes},
      tokens.kind, stream);
  s.exchange(route.sent_, route.received_, outgoing.as_input(), route.is_direct_ ? rows : incoming,
             s.received_places(route), places(route.sent_), h, stream);
  run(GatherRows{.to = rows.data,
                 .from = incoming.data,
                 .other = tokens.data,
                 .index = lists.place,
                 .rows = route.rows(),
                 .split = route.all_received_,
                 .share = share,
                 .row_bytes = row_bytes},
      tokens.kind, stream);
}

void ExpertDispatcher::combine(const ExpertRoute& route, ConstBuffer rows, ConstBuffer weights,
                               Buffer out, StreamRef stream) {
  State& s = *state_;
  const std::int64_t h =
      s.row_elements(rows, "rows", route.rows(), out.as_input(), "out", route.tokens_);
  if (weights.count != route.tokens_ * route.top_k_ || weights.kind != rows.kind)
    s.refuse(fmt::format("{} weights for {} tokens and top-{}", weights.count, route.tokens_,
                         route.top_k_),
             "give one per choice, in the same kind of memory as the rows");
  const Lists lists = s.lists(route, rows.kind);
  const std::int64_t row_bytes = h * static_cast<std::int64_t>(size_of(rows.type));
  reserve(route, row_bytes, rows.kind);
  const Buffer outgoing{s.outgoing.get(0, rows.kind), route.all_sent_ * h, rows.type, rows.kind};
  const Buffer incoming{s.incoming.get(0, rows.kind), route.all_received_ * h, rows.type,
                        rows.kind};
  if (!route.is_direct_)
    run(GatherRows{.to = incoming.data,
                   .from = rows.data,
                   .index = lists.unplace,
                   .rows = route.all_received_,
                   .row_bytes = row_bytes},
        rows.kind, stream);
  s.exchange(route.received_, route.sent_, route.is_direct_ ? rows : incoming.as_input(), outgoing,
             places(route.sent_), s.received_places(route), h, stream);
  run(WeightedSum{.to = out.data,
                  .from = outgoing.data,
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

}  // namespace rankmesh::exchange
