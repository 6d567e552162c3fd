// SPDX-License-Identifier: BSD-3-Clause
// Groups that are created while the mesh is open. Each creates one communicator, and no operation
// creates one; the calls of MPI are counted through its profiling interface. The memory and the
// files of closed groups are used again.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "mpi_calls.hpp"
#include "rankmesh/exchange/message.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/patience.hpp"

using rankmesh::GroupCoordinator;
using rankmesh::Mesh;
using rankmesh::Rank;

namespace {

int own_rank = 0;
long nodes = 1;  // of the job
bool is_right = true;

void expect(bool condition, const std::string& what) {
  if (condition) return;
  is_right = false;
  std::fprintf(stderr, "rank %d: %s\n", own_rank, what.c_str());
}

std::vector<Rank> first_ranks(int count) {
  std::vector<Rank> ranks;
  for (int r = 0; r < count; ++r) ranks.emplace_back(r);
  return ranks;
}

bool spans_nodes(const Mesh& mesh, const rankmesh::RankSet& ranks) {
  return mesh.placement().nodes_of(ranks) > 1;
}

// Collectives that shared memory carries, and those that it does not.
void use_collectives(GroupCoordinator& group, const std::string& name) {
  const auto k = static_cast<int>(group.size());
  const auto self = static_cast<int>(group.rank_in_group().value());
  for (const std::size_t n : {std::size_t{3}, std::size_t{60000}}) {
    std::vector<int> sum(n, self + 1);
    group.all_reduce(sum);
    expect(sum == std::vector<int>(n, k * (k + 1) / 2), name + ": all_reduce");
    std::vector<int> product(n, self + 1);
    group.all_reduce(product, [](int a, int b) { return a > b ? a : b; });
    expect(product == std::vector<int>(n, k), name + ": all_reduce with a function");
    std::vector<int> word(n, self);
    group.broadcast_async(word, k - 1).wait();
    expect(word == std::vector<int>(n, k - 1), name + ": broadcast_async");

    std::vector<std::size_t> counts;
    std::vector<int> all, expected;
    for (int m = 0; m < k; ++m) {
      counts.push_back(n + static_cast<std::size_t>(m));
      expected.insert(expected.end(), counts.back(), m);
    }
    all.resize(expected.size());
    group.all_gather_v(std::vector<int>(counts[static_cast<std::size_t>(self)], self), all, counts);
    expect(all == expected, name + ": all_gather_v");
    const std::vector<std::size_t> own(static_cast<std::size_t>(k), n);
    std::vector<int> in(n * own.size(), self), out(in.size());
    group.all_to_all_v_async(in, out, own, own).wait();
    for (int m = 0; m < k; ++m)
      expect(out[n * static_cast<std::size_t>(m)] == m, name + ": all_to_all_v_async");
  }
  group.barrier();
}

// Messages of any size, and objects.
void use_messages(GroupCoordinator& group, const std::string& name) {
  const auto before =
      static_cast<int>((group.rank_in_group().value() + group.size() - 1) % group.size());
  const auto self = static_cast<int>(group.rank_in_group().value());
  for (const std::size_t n : {std::size_t{3}, std::size_t{60000}}) {
    std::vector<int> received(n);
    group.send_recv(std::vector<int>(n, self), received, rankmesh::next, rankmesh::prev, 7);
    expect(received == std::vector<int>(n, before), name + ": send_recv");
    std::vector<std::byte> bytes(n, static_cast<std::byte>(self));
    const auto all = rankmesh::exchange::all_gather_messages(group, bytes);
    expect(all[static_cast<std::size_t>(before)] ==
               rankmesh::exchange::Bytes(n, static_cast<std::byte>(before)),
           name + ": all_gather_messages");
  }
}

// The messages of two groups with the same members do not meet, even if they have the same tags
// and are received in another order.
void use_both(GroupCoordinator& one, GroupCoordinator& other) {
  const auto before = static_cast<int>(one.prev_rank().value());
  for (const std::size_t n : {std::size_t{3}, std::size_t{60000}}) {
    const std::vector<int> first(n, own_rank), second(n, 100 + own_rank);
    std::vector<int> from_one(n), from_other(n);
    auto a = one.send_async(first, rankmesh::next);
    auto b = other.send_async(second, rankmesh::next);
    auto c = other.recv_async(from_other, rankmesh::prev);
    auto d = one.recv_async(from_one, rankmesh::prev);
    for (auto* work : {&c, &d}) work->wait();
    for (auto* work : {&a, &b}) work->wait();
    expect(from_one == std::vector<int>(n, before), "messages of the first of two groups");
    expect(from_other == std::vector<int>(n, 100 + before), "messages of the second group");
  }
  // Members of two groups with common members call collectives in flight at the same time.
  std::vector<int> x(60000, 1), y(60000, 2);
  auto a = one.all_reduce_async(x, [](int v, int w) { return v + w; });
  auto b = other.all_reduce_async(y, [](int v, int w) { return v + w; });
  b.wait();
  a.wait();
  expect(x.front() == one.size() && y.back() == 2 * other.size(), "collectives of two groups");
}

// The formula of docs/performance.md: each member sends a note to the first one, which sends one
// back. A member that waits for longer also sends one to every other member. Members close the
// group in its memory.
void check_messages(Mesh& mesh, int size) {
  calls.sends = 0;
  const auto group = mesh.new_group(first_ranks(size));
  const long sends = own_rank == 0 ? size - 1 : 1;
  expect(calls.sends == sends || calls.sends == sends + size - 1,
         "new_group sends " + std::to_string(calls.sends) + " messages");
  calls.sends = calls.barriers = 0;
  mesh.close(*group);
  expect(calls.sends == 0 && calls.barriers == 0, "close of a group communicates only in memory");
}

// Members without shared memory close a group with one barrier.
void check_barrier(int size) {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", {.check = false}};
  const auto group = mesh.new_group(first_ranks(size));
  calls.sends = calls.barriers = 0;
  mesh.close(*group);
  expect(calls.barriers == (nodes > 1 ? 1 : 0), "close of a group has one barrier");
  mesh.close();
}

// native_mpi() is local: it creates nothing and sends nothing.
void check_native(GroupCoordinator& group) {
  calls.creations = calls.sends = 0;
  MPI_Comm comm = group.native_mpi();
  expect(calls.creations == 0 && calls.sends == 0, "native_mpi() is local");
  int size = 0;
  int rank = -1;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  expect(size == group.size() && rank == group.rank_in_group().value(),
         "the members of native_mpi()");
  int sum = 1;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
  expect(sum == size, "a collective of the program on native_mpi()");
  expect(group.native_mpi() == comm, "native_mpi() returns one communicator");
}

void check_operations(bool check, int size) {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", {.check = check}};
  const bool is_inside = !spans_nodes(mesh, rankmesh::RankSet::of(first_ranks(size)));
  if (!check && is_inside) check_messages(mesh, size);
  calls.creations = 0;
  const auto one = mesh.new_group(first_ranks(size), "one");
  const auto other = mesh.new_group(first_ranks(size), "other");
  std::vector<std::vector<Rank>> pairs;  // each rank is in two of them
  for (int r = 0; r + 1 < size; ++r) pairs.push_back({r, r + 1});
  const auto groups = mesh.new_groups(pairs);
  const long expected =
      2 + std::ranges::count_if(groups, [](const auto& group) { return group != nullptr; });
  expect(calls.creations == expected, "new_group creates one communicator");
  for (const auto& group : {one, other}) {
    use_collectives(*group, group->name());
    use_messages(*group, group->name());
  }
  use_both(*one, *other);
  for (const auto& group : groups)
    if (group != nullptr) {
      use_collectives(*group, group->name());
      use_messages(*group, group->name());
    }
  expect(calls.creations == expected, "operations create no communicator");
  check_native(*one);
  for (const auto& group : groups)
    if (group != nullptr) check_native(*group);
  use_collectives(*one, "one");
  use_messages(*one, "one");
  use_both(*one, *other);
  mesh.close(*one);
  use_messages(*other, "other, after the close of one");
  mesh.close();
}

// When MPI has no more communicators, the error says so on all members, and nothing else is broken.
void check_too_many(int size) {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const auto one = mesh.new_group(first_ranks(size), "one");
  calls.creations_left = 0;
  std::string text;
  std::string hint;
  try {
    (void)mesh.new_group(first_ranks(size), "other");
  } catch (const rankmesh::mpi::MpiError& error) {
    text = error.message();
    hint = error.hint();
  }
  calls.creations_left = -1;
  expect(text.starts_with("the communicator of 'other' cannot be created: "), "too many: " + text);
  expect(hint.find("close groups and meshes") != std::string::npos, "too many, hint: " + hint);
  use_collectives(*one, "when there are too many");
  mesh.close(*one);
  const auto next = mesh.new_group(first_ranks(size), "next");
  use_collectives(*next, "after there were too many");
  mesh.close(*next);
  mesh.close();
}

// If a member cannot create or map the memory of a group, MPI carries the calls of all members.
// @param limited  The member of which the system refuses a resource.
void check_without_memory(int size, int limited, decltype(RLIMIT_FSIZE) resource) {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  rlimit before{};
  getrlimit(resource, &before);
  const rlimit none{0, before.rlim_max};
  if (own_rank == limited) setrlimit(resource, &none);
  const auto group = mesh.new_group(first_ranks(size));
  setrlimit(resource, &before);
  expect(group->explain(rankmesh::Operation::all_reduce, 8).transport == "mpi",
         "the transport of a group without shared memory");
  use_collectives(*group, "a group without shared memory");
  use_messages(*group, "a group without shared memory");
  mesh.close(*group);
  mesh.close();
}

long open_files() {
  return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"},
                       std::filesystem::directory_iterator{});
}

long mappings_of_groups() {
  std::ifstream maps{"/proc/self/maps"};
  long count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("rankmesh") != std::string::npos) ++count;
  return count;
}

// @param group_count  How often a group is created and closed.
void check_reuse(bool check, int size, int group_count) {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", {.check = check}};
  const long files = open_files();
  const long mappings = mappings_of_groups();
  auto kept = mesh.new_group(first_ranks(size));
  for (int i = 0; i < group_count; ++i) {
    // The oldest of two groups is closed first.
    auto next = mesh.new_group(first_ranks(size));
    std::vector<int> large(5000, i), received(large.size());
    next->send_recv(large, received, rankmesh::next, rankmesh::prev);
    expect(received == large, "a message of a group that is created and closed");
    next->all_reduce(large, [](int a, int b) { return std::max(a, b); });
    mesh.close(*kept);
    kept = next;
  }
  mesh.close(*kept);
  expect(open_files() == files, "descriptors of closed groups");
  expect(mappings_of_groups() == mappings, "memory of closed groups");
  mesh.close();
}

void check_all(int size) {
  for (const bool check : {false, true}) check_operations(check, size);
  check_barrier(size);
  check_too_many(size);
  if (nodes == 1) {
    check_without_memory(size, 0, RLIMIT_FSIZE);
    check_without_memory(size, size - 1, RLIMIT_NOFILE);
  }
  for (const bool check : {false, true}) check_reuse(check, size, std::min(1000, 2000 / size));
}

}  // namespace

// Without arguments: on one node. Otherwise: the number of nodes.
int main(int argc, char** argv) {
  // An Environment would end the job, because an attempt that failed leaves a receive in MPI.
  MPI_Init(&argc, &argv);
  rankmesh_test::share_cores();
  if (argc > 1) nodes = std::stol(argv[1]);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  check_all(size);
  int wrong = is_right ? 0 : 1;
  PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
