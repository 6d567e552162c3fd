// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of docs/arithmetic.md: the same results on every host transport, for every size
// and every form of a call.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"
#include "support/reductions.hpp"

using namespace rankmesh;
using rankmesh_test::all_reductions;
using rankmesh_test::rank;
using rankmesh_test::reduced;
using rankmesh_test::size;

namespace {

template <class T>
inline constexpr bool is_narrow = is_narrow_float(DataTypeOf<T>::value);

// The type in which a T is computed.
template <class T>
using Computed = std::conditional_t<is_narrow<T>, float, T>;

// Values at the limits of a type. The order of the members does not matter to their sums, products,
// minima and maxima.
template <class T>
std::vector<T> limits(ReduceOp op) {
  using C = Computed<T>;
  using Numbers = std::numeric_limits<C>;
  if constexpr (std::is_integral_v<C>) {
    return {Numbers::max(),
            Numbers::min(),
            static_cast<C>(Numbers::max() - 1),
            C{3},
            C{1},
            static_cast<C>(Numbers::max() / 2 + 1),
            static_cast<C>(-1)};
  } else {
    const C nan = Numbers::quiet_NaN();
    const C inf = Numbers::infinity();
    std::vector<C> values{nan, C{1}, C{-0.0}, inf, C{-2}, -nan, C{0}, C{0.5}, -inf, nan, C{-0.0}};
    if (op == ReduceOp::min || op == ReduceOp::max)
      for (const C more : {Numbers::max(), Numbers::lowest(), C{2.5}}) values.push_back(more);
    // Sums that overflow the narrow type but not float32.
    if ((op == ReduceOp::sum || op == ReduceOp::avg) && is_narrow<T> && sizeof(T) == 2)
      values.insert(values.end(), {C{65504}, C{60000}});
    std::vector<T> result;
    for (const C value : values) result.push_back(static_cast<T>(value));
    return result;
  }
}

// Elements 3 to 5 of 6 are numbers of few digits. The others change from place to place in such a
// way that every limit meets every other one at neighbouring members.
template <class T>
T value_of(ReduceOp op, std::int64_t member, std::int64_t i) {
  if (i % 6 >= 3) return static_cast<T>(static_cast<Computed<T>>(1 + (member * 7 + i) % 3));
  static const std::map<ReduceOp, std::vector<T>> all = [] {
    std::map<ReduceOp, std::vector<T>> result;
    for (const ReduceOp each : all_reductions) result[each] = limits<T>(each);
    return result;
  }();
  const std::vector<T>& choices = all.at(op);
  const auto n = static_cast<std::int64_t>(choices.size());
  return choices[static_cast<std::size_t>((i + member * (1 + i / n)) % n)];
}

template <class T>
T expected_at(ReduceOp op, std::int64_t members, std::int64_t i) {
  if (members == 1) return value_of<T>(op, 0, i);
  return static_cast<T>(reduced<Computed<T>>(op, members, [&](std::int64_t member) {
    return static_cast<Computed<T>>(value_of<T>(op, member, i));
  }));
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<Computed<T>>(value));
}

// The number of elements that differ. Which NaN a result is does not matter; all other bits do.
template <class T>
std::int64_t differences(const std::vector<T>& is, const std::vector<T>& expected) {
  std::int64_t count = is.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(is.size(), expected.size()); ++i)
    if (std::memcmp(&is[i], &expected[i], sizeof(T)) != 0 &&
        !(is_nan(is[i]) && is_nan(expected[i])))
      ++count;
  return count;
}

template <class T>
std::vector<T> part(const std::vector<T>& all, std::int64_t from, std::int64_t count) {
  return {all.begin() + from, all.begin() + from + count};
}

template <class T>
std::vector<T> sized(std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count));
}

// Every operation with arithmetic, on vectors whose values are given by `value` and whose results
// are given by `expected`, for elements 0 .. size * count - 1.
template <class T>
void check_all(GroupCoordinator& group, ReduceOp op, std::int64_t count,
               const std::vector<T>& value, const std::vector<T>& expected) {
  const std::int64_t n = group.size();
  const std::int64_t self = group.rank_in_group().value();
  const auto in = part(value, 0, count);
  const auto first = part(expected, 0, count);

  auto out = sized<T>(count);
  group.all_reduce(in, out, op);
  CHECK(differences(out, first) == 0);
  auto in_place = in;
  group.all_reduce(in_place, op);
  CHECK(differences(in_place, first) == 0);
  in_place = in;
  group.all_reduce_async(in_place, op).wait();
  CHECK(differences(in_place, first) == 0);

  out = sized<T>(count);
  group.reduce(in, out, n - 1, op);
  if (group.is_last()) CHECK(differences(out, first) == 0);
  in_place = in;
  group.reduce(in_place, n - 1, op);
  CHECK(differences(in_place, group.is_last() ? first : in) == 0);
  group.reduce_async(in, out, 0, op).wait();
  if (group.is_first()) CHECK(differences(out, first) == 0);

  const auto mine = part(expected, self * count, count);
  out = sized<T>(count);
  group.reduce_scatter(value, out, op);
  CHECK(differences(out, mine) == 0);
  out = sized<T>(count);
  group.reduce_scatter_async(value, out, op).wait();
  CHECK(differences(out, mine) == 0);

  // Blocks of different sizes: the last member has one element more than the others, of two blocks.
  std::vector<std::int64_t> counts(static_cast<std::size_t>(n), count / 2);
  counts.back() += std::min<std::int64_t>(1, count - count / 2);
  const std::int64_t all = (n - 1) * (count / 2) + counts.back();
  const auto own = part(expected, self * (count / 2), counts[static_cast<std::size_t>(self)]);
  out = sized<T>(static_cast<std::int64_t>(own.size()));
  group.reduce_scatter_v(part(value, 0, all), out, counts, op);
  CHECK(differences(out, own) == 0);
  out = sized<T>(static_cast<std::int64_t>(own.size()));
  const auto wide = part(value, 0, all);
  group.reduce_scatter_v_async(wide, out, counts, op).wait();
  CHECK(differences(out, own) == 0);
}

template <class T>
void check_type(GroupCoordinator& group, std::int64_t largest) {
  CAPTURE(to_string(DataTypeOf<T>::value));
  const std::int64_t n = group.size();
  const std::int64_t self = group.rank_in_group().value();
  for (const ReduceOp op : all_reductions) {
    CAPTURE(to_string(op));
    std::vector<T> value;
    std::vector<T> expected;
    for (std::int64_t i = 0; i < n * largest; ++i) {
      value.push_back(value_of<T>(op, self, i));
      expected.push_back(expected_at<T>(op, n, i));
    }
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{13}, largest}) {
      CAPTURE(count);
      check_all(group, op, count, part(value, 0, n * count), part(expected, 0, n * count));
    }
  }
}

MeshOptions options_for(const std::string& routes, bool has_deadline) {
  MeshOptions options;
  options.routes = routes;
  if (has_deadline) options.deadline = Deadline::Duration{60};
  return options;
}

}  // namespace

// The sizes lie below and above those at which the transports and the libraries of MPI change their
// algorithms.
TEST_CASE("limits of every type, on every host transport, in every form of a call") {
  for (const std::string routes : {"*.*:host=shm", "*.*:host=mpi", ""})
    for (const bool has_deadline : {false, true}) {
      CAPTURE(routes);
      CAPTURE(has_deadline);
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_for(routes, has_deadline)};
      auto& tp = mesh["tp"];
      check_type<std::int8_t>(tp, 1031);
      check_type<std::uint8_t>(tp, 1031);
      check_type<std::int16_t>(tp, 1031);
      check_type<std::uint16_t>(tp, 1031);
      check_type<std::int32_t>(tp, 1031);
      check_type<std::uint32_t>(tp, 1031);
      check_type<std::int64_t>(tp, 1031);
      check_type<std::uint64_t>(tp, 1031);
      check_type<float>(tp, 5003);
      check_type<double>(tp, 2351);
      check_type<Float16>(tp, 1031);
      check_type<BFloat16>(tp, 1031);
      check_type<Float8E4M3>(tp, 1031);
      check_type<Float8E5M2>(tp, 1031);
      mesh.close();
    }
}

// The sums of these depend on the order, which is from the first member to the last in shared
// memory and MPI's own over MPI. All members of a call get the same bits, and two members have only
// one order.
TEST_CASE("sums of floats are rounded in one order, and equal on all members") {
  for (const std::string routes : {"*.*:host=shm", "*.*:host=mpi"})
    for (const bool has_deadline : {false, true}) {
      CAPTURE(routes);
      CAPTURE(has_deadline);
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_for(routes, has_deadline)};
      auto& tp = mesh["tp"];
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::avg})
        for (const std::int64_t count : {1, 1000, 40000}) {
          CAPTURE(to_string(op));
          CAPTURE(count);
          const auto value = [](std::int64_t member, std::int64_t i) {
            return 1.0F + static_cast<float>((member * 7919 + i * 104729) % 1000003) / 999.0F;
          };
          std::vector<float> out;
          std::vector<float> expected;
          for (std::int64_t i = 0; i < count; ++i) {
            out.push_back(value(rank(), i));
            expected.push_back(
                reduced<float>(op, size(), [&](std::int64_t member) { return value(member, i); }));
          }
          tp.all_reduce(out, op);
          const bool is_shared = routes == "*.*:host=shm" && mesh.placement().node_count() == 1;
          if (size() <= 2 || is_shared) CHECK(differences(out, expected) == 0);
          auto of_first = out;
          tp.broadcast(of_first, 0);
          CHECK(differences(out, of_first) == 0);
          for (std::size_t i = 0; i < out.size(); i += 97)
            CHECK(out[i] == doctest::Approx(expected[i]).epsilon(1e-5));
        }
      mesh.close();
    }
}
