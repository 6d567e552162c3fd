// SPDX-License-Identifier: BSD-3-Clause
// Members that pass different or invalid arguments to the functions of exchange/ learn what each
// of them has passed.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>

#include <fmt/format.h>

#include "rankmesh/exchange/bucket.hpp"
#include "rankmesh/exchange/control_queue.hpp"
#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "rankmesh/exchange/lockstep.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using namespace rankmesh::exchange;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

// The text of the error that a call throws; "" if it throws none.
template <class Expected>
std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.message();
  } catch (const Error& error) {
    FAIL_CHECK("another error: ", error.message());
  }
  return {};
}

// A call that differs on the last rank must throw one text on all ranks, which begins with the
// words of that rank, and leave the group usable.
void check_outlier(GroupCoordinator& group, const std::string& odd, const std::string& others,
                   const std::function<void()>& call) {
  CAPTURE(odd);
  const std::string text = text_of<MismatchError>(call);
  const int last = size() - 1;
  const std::string begin = fmt::format("rank {} (tp={}): {}; ", last, last, odd);
  CHECK_CONTAINS(text, begin);
  CHECK(text.starts_with(begin));
  CHECK_CONTAINS(text, fmt::format("{}: {}",
                                   last == 1   ? "rank 0 (tp=0)"
                                   : last == 2 ? std::string{"ranks 0-1"}
                                               : fmt::format("ranks 0-{}", last - 1),
                                   others));
  const auto hash = static_cast<std::int64_t>(std::hash<std::string>{}(text) >> 2);
  std::vector<std::int64_t> extremes{hash, -hash};
  group.all_reduce(extremes, ReduceOp::max);
  CHECK(extremes[0] == -extremes[1]);
}

// A call that is invalid on the last rank: that rank gets the UsageError, the others learn it.
void check_failure(GroupCoordinator& group, const std::string& reason, const std::string& others,
                   const std::function<void()>& call) {
  CAPTURE(reason);
  if (group.is_last()) {
    CHECK_CONTAINS(text_of<UsageError>(call), reason);
  } else {
    const std::string text = text_of<MismatchError>(call);
    CHECK(text.starts_with(fmt::format("rank {} (tp={}): failed: ", size() - 1, size() - 1)));
    CHECK_CONTAINS(text, reason);
    CHECK_CONTAINS(text, others);
  }
  group.barrier();
}

}  // namespace

TEST_CASE("expert maps and options that differ are listed") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const std::int64_t n = tp.size();
  const bool is_odd = tp.is_last();
  // A map with one slot for each expert, in their order.
  const auto text = [&](std::int64_t experts, const std::string& options) {
    std::string list;
    for (std::int64_t e = 0; e < std::min<std::int64_t>(experts, 8); ++e)
      list += fmt::format("{}{}", e == 0 ? "" : ", ", e);
    return fmt::format("ExpertDispatcher over 'tp': {0} experts in {0} slots ({1}{2}", experts,
                       list, options);
  };
  const std::string defaults = "), alignment 1, no capacity";
  // Eight slots are listed, and the first that differs, if it comes later.
  const std::string rest = n < 5   ? ""
                           : n < 8 ? ", ..."
                                   : fmt::format(", ...; number {0} is {0}", n);
  check_outlier(tp, text(2 * n, rest + defaults), text(n, defaults), [&] {
    const ExpertDispatcher dispatcher{tp, ExpertMap::contiguous((is_odd ? 2 : 1) * n, n)};
  });
  check_outlier(tp, text(n, "), alignment 8, no capacity"), text(n, defaults), [&] {
    const ExpertDispatcher dispatcher{
        tp, ExpertMap::contiguous(n, n), {.alignment = is_odd ? 8 : 1}};
  });
  check_outlier(
      tp, text(n, "), alignment 1, capacity 3"), text(n, "), alignment 1, capacity 2"), [&] {
        const ExpertDispatcher dispatcher{
            tp, ExpertMap::contiguous(n, n), {.alignment = 1, .capacity = is_odd ? 3 : 2}};
      });
  // The same numbers, in another order: the first slot that differs is named.
  std::vector<std::int32_t> experts;
  for (std::int32_t i = 0; i < 20 * n; ++i) experts.push_back(i);
  if (is_odd) std::swap(experts[18], experts[19]);
  check_outlier(tp, text(20 * n, ", ...; number 18 is 19" + defaults),
                text(20 * n, ", ...; number 18 is 18" + defaults), [&] {
                  const ExpertDispatcher dispatcher{tp, ExpertMap{experts, 20 * n, n}};
                });
  mesh.close();
}

TEST_CASE("arguments of an expert dispatcher that are invalid on one rank") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const std::int64_t n = tp.size();
  const bool is_odd = tp.is_last();
  const std::string others = "ExpertDispatcher over 'tp': ";
  check_failure(tp, "the alignment is 0", others, [&] {
    const ExpertDispatcher dispatcher{
        tp, ExpertMap::contiguous(n, n), {.alignment = is_odd ? 0 : 1}};
  });
  check_failure(tp, fmt::format("the expert map is for {} ranks", n + 1), others, [&] {
    const ExpertDispatcher dispatcher{tp, ExpertMap::contiguous(n, is_odd ? n + 1 : n)};
  });
  ExpertDispatcher dispatcher{tp, ExpertMap::contiguous(n, n)};
  check_failure(tp, fmt::format("the expert map is for {} ranks", 2 * n), others,
                [&] { dispatcher.set_map(ExpertMap::contiguous(2 * n, is_odd ? 2 * n : n)); });
  CHECK(dispatcher.map().experts() == n);
  const std::vector<std::int32_t> ids{0, is_odd ? 9999 : 1};
  check_failure(tp, "token 1 has the expert id 9999", "route() of 'tp': 2 ids, top-1",
                [&] { (void)dispatcher.route(ids, 1); });
  mesh.close();
}

TEST_CASE("different contents of a bucket are listed") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const bool is_odd = tp.is_last();
  std::vector<float> a(12), b(40);
  check_outlier(tp, "Bucket over 'tp', collective 0: 2 buffers of 40, 12 float32",
                "Bucket over 'tp', collective 0: 2 buffers of 12, 40 float32", [&] {
                  Bucket bucket{tp};
                  bucket.add(is_odd ? b : a);
                  bucket.add(is_odd ? a : b);
                  bucket.wait();
                });
  std::vector<double> c(12);
  check_outlier(tp, "Bucket over 'tp', collective 0: 1 buffer of 12 float64",
                "Bucket over 'tp', collective 0: 1 buffer of 12 float32", [&] {
                  Bucket bucket{tp};
                  if (is_odd)
                    bucket.add(c);
                  else
                    bucket.add(a);
                  bucket.wait();
                });
  std::vector<std::vector<float>> many(20, std::vector<float>(3));
  if (is_odd) many[17].resize(2);
  const std::string begin =
      "Bucket over 'tp', collective 0: 20 buffers of 3, 3, 3, 3, 3, 3, 3, 3, ...; number 17 is ";
  check_outlier(tp, begin + "2 float32", begin + "3 float32", [&] {
    Bucket bucket{tp};
    for (auto& buffer : many) bucket.add(buffer);
    bucket.wait();
  });
  mesh.close();
}

TEST_CASE("different options, steps and proposals of a lockstep are listed") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const bool is_odd = tp.is_last();
  const std::string step = "Lockstep over 'tp', step ";
  Lockstep sizes{tp, {.sizes = {8, is_odd ? 12 : 16}, .multiple = 4}};
  check_outlier(tp, step + "0: sizes 8, 12, multiple 4", step + "0: sizes 8, 16, multiple 4",
                [&] { (void)sizes.agree({.tokens = 3}); });
  Lockstep multiple{tp, {.multiple = is_odd ? 4 : 2}};
  check_outlier(tp, step + "0: no sizes, multiple 4", step + "0: no sizes, multiple 2",
                [&] { (void)multiple.agree({}); });
  Lockstep invalid{tp};
  check_outlier(tp, step + "0: an invalid proposal of -1 tokens, mode 300",
                step + "0: a proposal of 3 tokens, mode 2", [&] {
                  (void)invalid.agree({.tokens = is_odd ? -1 : 3, .mode = is_odd ? 300 : 2});
                });
  Lockstep one{tp}, two{tp};
  (void)one.agree({.tokens = 1});
  check_outlier(tp, step + "0: a proposal of 1 tokens, mode 0",
                step + "1: a proposal of 1 tokens, mode 0",
                [&] { (void)(is_odd ? two : one).agree({.tokens = 1}); });
  mesh.close();
}

TEST_CASE("different arguments of a control queue are listed, and invalid ones reported") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const bool is_odd = tp.is_last();
  const std::string queue = "ControlQueue over 'tp': ";
  check_outlier(tp, queue + "writer 1, 256 slots of 4096 bytes",
                queue + "writer 0, 256 slots of 4096 bytes", [&] {
                  const ControlQueue opened{tp, is_odd ? 1 : 0};
                });
  check_outlier(tp, queue + "writer 0, 16 slots of 512 bytes",
                queue + "writer 0, 32 slots of 512 bytes", [&] {
                  const ControlQueue opened{tp, 0, {.slots = is_odd ? 16 : 32, .slot_bytes = 512}};
                });
  check_failure(tp, "a control queue has 0 slots", queue + "writer 0, 16 slots", [&] {
    const ControlQueue opened{tp, 0, {.slots = is_odd ? 0 : 16}};
  });
  check_failure(tp, "the writer of a control queue of 'tp' is", queue + "writer 0", [&] {
    const ControlQueue opened{tp, is_odd ? tp.size() : 0};
  });
  const ControlQueue opened{tp, 0};
  mesh.close();
}
