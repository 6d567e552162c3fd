// SPDX-License-Identifier: BSD-3-Clause
// Members that pass different or invalid arguments to the functions of exchange/ learn what each
// of them has passed.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/exchange/bucket.hpp"
#include "rankmesh/exchange/checkpoint.hpp"
#include "rankmesh/exchange/control_queue.hpp"
#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "rankmesh/exchange/lockstep.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/exchange/sharded_buffer.hpp"
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
  const std::string begin =
      fmt::format("the ranks do not agree: rank {} (tp={}): {}; ", last, last, odd);
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
    CHECK(text.starts_with(
        fmt::format("the ranks do not agree: rank {} (tp={}): failed: ", size() - 1, size() - 1)));
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
  const std::string dispatcher_text = "ExpertDispatcher over 'tp': ";
  const auto text = [&](std::int64_t experts, const std::string& options) {
    return dispatcher_text + fmt::format("{0} experts in {0} slots, {1}", experts, options);
  };
  const std::string defaults = "alignment 1, no capacity";
  check_outlier(tp, text(2 * n, defaults), text(n, defaults), [&] {
    const ExpertDispatcher dispatcher{tp, ExpertMap::contiguous((is_odd ? 2 : 1) * n, n)};
  });
  check_outlier(tp, text(n, "alignment 8, no capacity"), text(n, defaults), [&] {
    const ExpertDispatcher dispatcher{
        tp, ExpertMap::contiguous(n, n), {.alignment = is_odd ? 8 : 1}};
  });
  check_outlier(tp, text(n, "alignment 1, capacity 3"), text(n, "alignment 1, capacity 2"), [&] {
    const ExpertDispatcher dispatcher{
        tp, ExpertMap::contiguous(n, n), {.alignment = 1, .capacity = is_odd ? 3 : 2}};
  });
  // The same numbers, in another order: the first slot that differs is named.
  std::vector<std::int32_t> experts;
  for (std::int32_t i = 0; i < 20 * n; ++i) experts.push_back(i);
  if (is_odd) std::swap(experts[18], experts[19]);
  check_outlier(tp, dispatcher_text + "slot 18 holds expert 19",
                dispatcher_text + "slot 18 holds expert 18", [&] {
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
  check_failure(tp, fmt::format("the expert map is for {} ranks", 2 * n),
                "ExpertDispatcher::set_map over 'tp': ", [&] {
                  dispatcher.set_map(ExpertMap::contiguous(2 * n, is_odd ? 2 * n : n));
                });
  CHECK(dispatcher.map().experts() == n);
  const std::vector<std::int32_t> ids{0, is_odd ? 9999 : 1};
  check_failure(tp, "token 1 has the expert id 9999",
                "ExpertDispatcher::route over 'tp': 2 ids, top-1",
                [&] { (void)dispatcher.route(ids, 1); });
  mesh.close();
}

TEST_CASE("different contents of a bucket are listed") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const bool is_odd = tp.is_last();
  std::vector<float> a(12), b(40);
  const std::string bucket_text = "Bucket over 'tp', collective 0: ";
  check_outlier(tp, bucket_text + "buffer 0 of 40 float32", bucket_text + "buffer 0 of 12 float32",
                [&] {
                  Bucket bucket{tp};
                  bucket.add(is_odd ? b : a);
                  bucket.add(is_odd ? a : b);
                  bucket.wait();
                });
  check_outlier(tp, bucket_text + "1 buffer", bucket_text + "2 buffers", [&] {
    Bucket bucket{tp};
    bucket.add(a);
    if (!is_odd) bucket.add(b);
    bucket.wait();
  });
  std::vector<double> c(12);
  check_outlier(tp, bucket_text + "buffer 0 of 12 float64", bucket_text + "buffer 0 of 12 float32",
                [&] {
                  Bucket bucket{tp};
                  if (is_odd)
                    bucket.add(c);
                  else
                    bucket.add(a);
                  bucket.wait();
                });
  std::vector<std::vector<float>> many(20, std::vector<float>(3));
  if (is_odd) many[17].resize(2);
  check_outlier(tp, bucket_text + "buffer 17 of 2 float32", bucket_text + "buffer 17 of 3 float32",
                [&] {
                  Bucket bucket{tp};
                  for (auto& buffer : many) bucket.add(buffer);
                  bucket.wait();
                });
  mesh.close();
}

TEST_CASE("the first tensor in which sharded buffers, redistributions and checkpoints differ") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const bool is_odd = tp.is_last();
  std::vector<std::int64_t> sizes(20, 3);
  if (is_odd) sizes[17] = 2;
  const std::string sharded = "ShardedBuffer over 'tp': tensor 17 of ";
  check_outlier(tp, sharded + "2 elements", sharded + "3 elements", [&] {
    const ShardedBuffer<float> buffer{tp, sizes};
  });
  const auto place = [&](const char* axes) {
    return TensorPlacement::parse(fmt::format("[12,8] f32 @ tp={} : {}", size(), axes));
  };
  std::vector<TensorTransfer> moves(20, {place("(tp, _)"), place("(_, _)")});
  if (is_odd) moves[17].to = place("(_, tp)");
  const auto moved = [&](const char* to) {
    return fmt::format("Redistribution over 'tp': tensor 17 from '{}' to '{}'",
                       place("(tp, _)").to_string(), place(to).to_string());
  };
  check_outlier(tp, moved("(_, tp)"), moved("(_, _)"), [&] {
    const Redistribution move{tp, plan_transfer(moves)};
  });
  std::vector<float> values(12 * 8);
  std::vector<SavedTensor> saved;
  for (const char* name : {"a", "b", is_odd ? "x" : "c"})
    saved.push_back({name, place("(_, _)"), values});
  const std::string save = "save_checkpoint of /tmp/never/made: tensor ";
  const std::string at = fmt::format(" at '{}'", place("(_, _)").to_string());
  check_outlier(tp, save + "'x'" + at, save + "'c'" + at,
                [&] { save_checkpoint(tp, "/tmp/never", "made", saved); });
  mesh.close();
}

TEST_CASE("different options, steps and proposals of a lockstep are listed") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const bool is_odd = tp.is_last();
  const std::string lockstep = "Lockstep over 'tp': ";
  Lockstep sizes{tp, {.sizes = {8, is_odd ? 12 : 16}, .multiple = 4}};
  check_outlier(tp, lockstep + "size 1 is 12", lockstep + "size 1 is 16",
                [&] { (void)sizes.agree({.tokens = 3 + rank()}); });
  Lockstep multiple{tp, {.multiple = is_odd ? 4 : 2}};
  check_outlier(tp, lockstep + "multiple 4", lockstep + "multiple 2",
                [&] { (void)multiple.agree({}); });
  Lockstep invalid{tp};
  check_outlier(
      tp, lockstep + "step 0 with an invalid proposal of -1 tokens, mode 300", lockstep + "step 0",
      [&] { (void)invalid.agree({.tokens = is_odd ? -1 : 3, .mode = is_odd ? 300 : 2}); });
  Lockstep one{tp}, two{tp};
  (void)one.agree({.tokens = 1});
  check_outlier(tp, lockstep + "step 0", lockstep + "step 1",
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
