// SPDX-License-Identifier: BSD-3-Clause
#include "order.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <tuple>

#include "common/settings.hpp"
#include "machine.hpp"

namespace fake {
namespace {

constexpr int first_by_hash = 22600;  // an older version keeps the order of first use
constexpr int first_by_size = 22200;  // an older version keeps the order of the calls

// Bytes that a collective moves, as ncclFuncTrafficPerByte (src/enqueue.cc) weighs them.
std::size_t traffic_of(const Comm& comm, const Operation& o) {
  const std::size_t bytes = o.count * type_bytes(o.type);
  if (o.kind == fake_all_reduce) return 2 * bytes;
  if (o.kind == fake_all_gather || o.kind == fake_reduce_scatter)
    return static_cast<std::size_t>(comm.seat.ranks) * bytes;
  return bytes;
}

// The class of sizes of ncclTaskCollSorter (src/include/comm.h): four for each power of two of
// KiB. Everything below 1 KiB is in one class, and so is everything from 1 GiB on.
std::uint32_t size_class(std::size_t traffic) {
  const auto kib = static_cast<std::uint32_t>(std::min(traffic, std::size_t{1} << 30) >> 10);
  if (kib < 4) return kib;
  const int exponent = static_cast<int>(std::bit_width(kib)) - 1;
  return static_cast<std::uint32_t>(4 * (exponent - 1)) + ((kib >> (exponent - 2)) & 3);
}

// Collectives with equal keys share a list in ncclPrepareTasks (src/enqueue.cc). What moves data
// is counted in bytes there; a minimum and a maximum are one function.
std::tuple<int, int, int> list_key(const Operation& o) {
  const bool moves = o.kind == fake_all_gather || o.kind == fake_broadcast;
  return {o.kind, moves ? 0 : static_cast<int>(o.op == ncclMin ? ncclMax : o.op),
          moves ? 0 : static_cast<int>(o.type)};
}

bool is_collective_task(const Operation& o) {
  return o.kind == fake_all_reduce || o.kind == fake_reduce || o.kind == fake_broadcast ||
         o.kind == fake_all_gather || o.kind == fake_reduce_scatter;
}

// ncclPrepareTasks (src/enqueue.cc, from 2.22 on) takes the collectives by falling size, the last
// call of a class first, and puts each in front of the list of its function, operator and type.
// ncclLaunchPrepare takes these lists and then the messages, among them those that AlltoAll,
// Gather and Scatter are made of.
void sort_by_size(const Comm& comm, std::vector<Operation>& operations) {
  const auto messages =
      std::stable_partition(operations.begin(), operations.end(), is_collective_task);
  std::vector<Operation> falling(std::make_reverse_iterator(messages), operations.rend());
  std::stable_sort(falling.begin(), falling.end(), [&](const Operation& a, const Operation& b) {
    return size_class(traffic_of(comm, a)) > size_class(traffic_of(comm, b));
  });
  std::vector<std::vector<Operation>> lists;
  for (const Operation& o : falling) {
    const auto same = [&](const auto& list) { return list_key(list.front()) == list_key(o); };
    auto found = std::find_if(lists.begin(), lists.end(), same);
    if (found == lists.end()) found = lists.emplace(lists.end());
    found->insert(found->begin(), o);
  }
  std::vector<Operation> sorted;
  for (const auto& list : lists) sorted.insert(sorted.end(), list.begin(), list.end());
  sorted.insert(sorted.end(), messages, operations.end());
  operations = std::move(sorted);
}

struct Range {
  const char* begin;
  std::size_t bytes;
  bool meets(const Range& other) const {
    const std::less<const char*> before;
    return bytes > 0 && other.bytes > 0 && before(begin, other.begin + other.bytes) &&
           before(other.begin, begin + bytes);
  }
};

struct Footprint {
  Operation* operation;
  int rank;
  Range in, out;
  bool depends_on(const Footprint& other) const {
    // A rank's message to itself in place is left out (scheduleP2pTasksToPlan, src/enqueue.cc).
    const bool both_own = operation->point_to_point() && other.operation->point_to_point() &&
                          operation->root == rank && other.operation->root == rank;
    if (both_own && in.begin == other.out.begin && out.begin == other.in.begin) return false;
    return out.meets(other.in) || out.meets(other.out) || in.meets(other.out);
  }
};

// Operations of a group may share a kernel or run in kernels on different streams, so one must not
// use what another writes.
void mark_undefined(Batches& batches) {
  std::vector<Footprint> uses;
  for (auto& [comm, operations] : batches)
    for (Operation& o : operations) {
      Extent extent = bytes_used(*comm, o);
      // The root of a broadcast in place only sends (src/device/broadcast.h).
      if (o.kind == fake_broadcast && o.send == o.receive && extent.send > 0) extent.receive = 0;
      uses.push_back({&o,
                      comm->seat.rank,
                      {static_cast<const char*>(o.send), extent.send},
                      {static_cast<const char*>(o.receive), extent.receive}});
    }
  for (const Footprint& one : uses)
    for (const Footprint& other : uses)
      if (&one != &other && one.depends_on(other)) one.operation->is_undefined = true;
}

}  // namespace

void arrange(Batches& batches) {
  // ncclGroupCommJoin (src/include/group.h) inserts by ascending commHash, the hash of the unique
  // ID: neither the order of the calls nor that of the inits.
  if (version() >= first_by_hash && !broken("hash_order"))
    std::stable_sort(batches.begin(), batches.end(), [](const auto& a, const auto& b) {
      return hash_of(*a.first) < hash_of(*b.first);
    });
  if (version() >= first_by_size && !broken("size_order"))
    for (auto& [comm, operations] : batches) sort_by_size(*comm, operations);
  if (!broken("shared_kernel")) mark_undefined(batches);
}

}  // namespace fake
