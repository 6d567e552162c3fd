// SPDX-License-Identifier: BSD-3-Clause
// Calls that cannot be carried out on one member, or end early there, although the calls of all
// members are alike. Every wait here ends by a deadline of the test.
#include <doctest/doctest.h>

#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;

namespace {

// The last rank behaves in another way than the others.
bool is_odd() { return rank() == last(); }

// The ways in which a call is made.
struct Form {
  bool is_checked, is_async, has_deadline;

  [[nodiscard]] MeshOptions options() const {
    MeshOptions result;
    result.check = is_checked;
    result.timeout = Deadline::Duration{10};
    if (has_deadline) result.deadline = Deadline::Duration{10};
    return result;
  }
};
std::vector<Form> forms() {
  std::vector<Form> all;
  for (const bool is_checked : {false, true})
    for (const bool is_async : {false, true})
      for (const bool has_deadline : {false, true})
        all.push_back({is_checked, is_async, has_deadline});
  return all;
}

// Memory of more than 2^31 bytes, of which only those pages exist that are used.
class Vast {
 public:
  static constexpr std::int64_t far = std::int64_t{1} << 31;  // does not fit MPI's int
  static constexpr std::size_t bytes = static_cast<std::size_t>(far) + (1 << 20);

  Vast()
      : memory_{mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)} {
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~Vast() { munmap(memory_, bytes); }
  Vast(const Vast&) = delete;
  Vast& operator=(const Vast&) = delete;

  [[nodiscard]] std::span<std::uint8_t> span() const {
    return {static_cast<std::uint8_t*>(memory_), bytes};
  }

 private:
  void* memory_;
};

std::vector<std::int64_t> ones() {
  return std::vector<std::int64_t>(static_cast<std::size_t>(size()), 1);
}
// The last block lies far behind the others.
std::vector<std::int64_t> far_places() {
  std::vector<std::int64_t> places;
  for (int k = 0; k < size(); ++k) places.push_back(k == last() ? Vast::far : k);
  return places;
}

}  // namespace

TEST_CASE("a displacement that MPI cannot carry is refused before the other members enter MPI") {
  NEEDS_RANKS(2);
  for (const Form form : forms()) {
    CAPTURE(form.is_checked);
    CAPTURE(form.is_async);
    CAPTURE(form.has_deadline);
    const Vast vast;
    std::vector<std::uint8_t> in{static_cast<std::uint8_t>(rank())};
    const Blocks blocks = is_odd() ? Blocks{ones(), far_places()} : Blocks{ones()};
    const auto gather = [&](GroupCoordinator& tp) {
      if (form.is_async)
        tp.gather_v_async(in, vast.span(), blocks, last()).wait();
      else
        tp.gather_v(in, vast.span(), blocks, last());
    };
    MeshOptions options = form.options();
    options.routes = "*.*:host=mpi";
    std::optional<Mesh> mesh;
    mesh.emplace(MPI_COMM_WORLD, "tp=auto", options);
    if (is_odd())
      CHECK_THROWS_AS(gather((*mesh)["tp"]), UnsupportedError);
    else
      CHECK_THROWS_AS(gather((*mesh)["tp"]), PeerError);
    mesh.reset();  // the last member leaves, and the others learn it
    wait_for_all();
  }
}

TEST_CASE("shared memory carries a v-form that MPI cannot carry on one member") {
  NEEDS_RANKS(2);
  constexpr std::int64_t length = 200'000;  // more than fits into a slot
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), length);
  std::vector<std::int64_t> places;
  for (int k = 0; k < size(); ++k) places.push_back(k == last() ? Vast::far : k * length);
  for (const Form form : forms()) {
    CAPTURE(form.is_checked);
    CAPTURE(form.is_async);
    CAPTURE(form.has_deadline);
    MeshOptions options = form.options();
    options.routes = "*.*:host=shm";
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    const Vast vast;
    std::vector<std::uint8_t> in(length, static_cast<std::uint8_t>(rank() + 1));
    const Blocks blocks = is_odd() ? Blocks{counts, places} : Blocks{counts};
    if (form.is_async)
      mesh["tp"].gather_v_async(in, vast.span(), blocks, last()).wait();
    else
      mesh["tp"].gather_v(in, vast.span(), blocks, last());
    for (int k = 0; is_odd() && k < size(); ++k)
      for (const std::int64_t at : {std::int64_t{0}, length - 1})
        CHECK(vast.span()[static_cast<std::size_t>(places[static_cast<std::size_t>(k)] + at)] ==
              k + 1);
    mesh.close();
  }
}

TEST_CASE("displacements of reduce_scatter_v, which MPI does not get, may be large") {
  for (const Form form : forms()) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", form.options()};
    const Vast vast;
    for (const std::int64_t place : far_places()) vast.span()[static_cast<std::size_t>(place)] = 2;
    std::vector<std::uint8_t> out(1);
    const Blocks blocks{ones(), far_places()};
    if (form.is_async)
      mesh["tp"].reduce_scatter_v_async(vast.span(), out, blocks).wait();
    else
      mesh["tp"].reduce_scatter_v(vast.span(), out, blocks);
    CHECK(out[0] == 2 * size());
    mesh.close();
  }
}

namespace {

// A function that cannot be copied from some moment on.
struct Uncopyable {
  static inline int copies_left = -1;  // -1: any number

  Uncopyable() = default;
  Uncopyable(const Uncopyable&) {
    if (copies_left == 0) throw std::bad_alloc{};
    if (copies_left > 0) --copies_left;
  }
  Uncopyable(Uncopyable&&) noexcept {}
  int operator()(int a, int b) const { return a + b; }
};

}  // namespace

// The function is copied once for the operation, and once more for MPI, which is after the members
// have met.
TEST_CASE("a call that cannot be started in MPI ends on all members") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(size() <= 3, "needs at most 3 ranks, because it waits for deadlines");
  for (const Form form : forms()) {
    if (form.is_async == form.has_deadline) continue;  // MPI's blocking functions need no copy
    CAPTURE(form.is_checked);
    CAPTURE(form.is_async);
    CAPTURE(form.has_deadline);
    MeshOptions options = form.options();
    // The other members wait so long.
    options.timeout = Deadline::Duration{1.5};
    if (form.has_deadline) options.deadline = Deadline::Duration{1.5};
    options.routes = "*.*:host=mpi";
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    // Not freed: MPI may still use them on the other members.
    auto& values = *new std::vector<int>(1000, 1);
    const Uncopyable sum;
    bool has_failed = false;
    std::string text;
    try {
      Uncopyable::copies_left = is_odd() ? 1 : -1;
      if (form.is_async)
        mesh["tp"].all_reduce_async(values, sum).wait();
      else
        mesh["tp"].all_reduce(values, sum);
      Uncopyable::copies_left = -1;
      mesh["tp"].barrier();
    } catch (const TimeoutError& error) {
      has_failed = !is_odd();
      text = error.message();
    } catch (const Error& error) {
      has_failed = is_odd();
      text = error.message();
    }
    Uncopyable::copies_left = -1;
    CHECK(has_failed);
    if (is_odd()) CHECK_CONTAINS(text, "there is too little memory for 8000 bytes of buffers");
    if (!is_odd()) CHECK_CONTAINS(text, "rank " + std::to_string(last()));
    CHECK_THROWS_AS(mesh["tp"].barrier(), Error);
    wait_for_all();
  }
}

TEST_CASE("a small symmetric buffer follows the routes, as ordinary memory does") {
  NEEDS_RANKS(2);
  for (const Form form : forms()) {
    MeshOptions options = form.options();
    // The other members wait so long.
    options.timeout = Deadline::Duration{4};
    if (form.has_deadline) options.deadline = Deadline::Duration{4};
    options.routes = "*.*:host=mpi";
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    const auto symmetric = mesh.allocate_symmetric<float>(1024, {"tp"});
    std::vector<float> ordinary(4, 1.0F);
    for (float& value : symmetric) value = 1.0F;
    const auto reduce = [&](auto& values) {
      if (form.is_async)
        mesh["tp"].all_reduce_async(values).wait();
      else
        mesh["tp"].all_reduce(values);
      CHECK(values[0] == static_cast<float>(size()));
      CHECK(values[3] == static_cast<float>(size()));
    };
    auto part = symmetric.subspan(0, 4);
    if (is_odd())
      reduce(part);
    else
      reduce(ordinary);
    mesh.close();
  }
}

namespace {

// A function that knows whether it still exists.
struct Mortal {
  static constexpr int alive = 0x600d;
  static inline int calls_after_its_end = 0;

  Mortal() = default;
  Mortal(const Mortal&) {}
  ~Mortal() { state = 0; }
  int operator()(int a, int b) const {
    if (state != alive) ++calls_after_its_end;
    return a + b;
  }
  volatile int state = alive;
};

// Overwrites the part of the stack that earlier calls have used.
[[gnu::noinline]] void overwrite_stack() {
  volatile char bytes[16384];
  for (volatile char& byte : bytes) byte = 0;
}

}  // namespace

TEST_CASE("a function of the program outlives the operation that a member has given up") {
  NEEDS_RANKS(2);
  for (const bool is_checked : {false, true}) {
    MeshOptions options = Form{is_checked, false, true}.options();
    options.deadline = Deadline::Duration{0.3};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    MPI_Comm comm = MPI_COMM_NULL;  // not freed: an operation may be in flight
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const auto group = mesh.adopt(comm, "all");  // it has no shared memory in which members meet
    auto& in = *new std::vector<int>(4, 1);      // not freed: MPI may still use them
    auto& out = *new std::vector<int>(4);
    if (is_odd()) wait_for_all();  // until the other members have given up
    Mortal::calls_after_its_end = 0;
    bool has_ended = false;
    try {
      group->all_reduce(in, out, Mortal{});
      has_ended = is_odd();
    } catch (const TimeoutError&) {
      has_ended = true;
    }
    CHECK(has_ended);
    overwrite_stack();
    if (!is_odd()) wait_for_all();
    for (int i = 0; i < 40; ++i) {  // MPI continues the operation
      int is_there = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    CHECK(Mortal::calls_after_its_end == 0);
    wait_for_all();
  }
}

TEST_CASE("check: a message that differs ends the waits for other messages at both ends") {
  NEEDS_RANKS(2);
  for (const bool is_async : {false, true}) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", Form{true, false, false}.options()};
    GroupCoordinator& tp = mesh["tp"];
    auto& four = *new std::vector<float>(4);
    auto& eight = *new std::vector<float>(8);
    if (rank() == 0) {
      Work sent = tp.send_async(four, 1, 0);
      if (is_async) {  // the wait for one message finds the difference, and ends the other one
        Work never = tp.recv_async(eight, 1, 1);
        CHECK_THROWS_AS(sent.wait(), MismatchError);
        CHECK_THROWS_AS(never.wait(), MismatchError);
      } else {
        CHECK_THROWS_AS(tp.recv(eight, 1, 1), MismatchError);
        CHECK_THROWS_AS(sent.wait(), Error);
      }
    }
    if (rank() == 1) CHECK_THROWS_AS(tp.recv(eight, 0, 0), MismatchError);
    wait_for_all();
  }
}

TEST_CASE("check: a message that differs does not hold back those behind it") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", Form{true, false, false}.options()};
  GroupCoordinator& tp = mesh["tp"];
  auto& four = *new std::vector<float>(4, static_cast<float>(rank()));
  auto& eight = *new std::vector<float>(8);
  const auto fails_or_ends = [](Work& work) {
    try {
      work.wait();
    } catch (const TimeoutError&) {
      throw;
    } catch (const Error&) {
    }
  };
  if (rank() == 0) {
    Work first = tp.send_async(four, 1);
    Work second = tp.send_async(four, 1);
    CHECK_NOTHROW(fails_or_ends(second));
  }
  if (rank() == 1) {
    Work first = tp.recv_async(eight, 0);
    Work second = tp.recv_async(four, 0);
    CHECK_NOTHROW(fails_or_ends(second));
  }
  wait_for_all();
}
