// SPDX-License-Identifier: BSD-3-Clause
// Values of any type between ranks, and bytes that are not values.
#include "rankmesh/exchange/objects.hpp"

#include <doctest/doctest.h>

#include <cereal/types/memory.hpp>
#include <cereal/types/variant.hpp>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using exchange::Bytes;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

// What an engine might send to its workers before a step.
struct EngineStep {
  std::int64_t number = 0;
  bool is_prefill = false;
  std::vector<std::string> requests;
  std::map<std::string, std::vector<float>> sampling;
  std::optional<std::variant<int, std::string>> extra;
  std::unique_ptr<EngineStep> following;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(number, is_prefill, requests, sampling, extra, following);
  }
  friend bool operator==(const EngineStep& a, const EngineStep& b) {
    return a.number == b.number && a.is_prefill == b.is_prefill && a.requests == b.requests &&
           a.sampling == b.sampling && a.extra == b.extra &&
           (a.following == nullptr) == (b.following == nullptr) &&
           (a.following == nullptr || *a.following == *b.following);
  }
};

EngineStep engine_step(std::int64_t seed, int requests) {
  EngineStep result;
  result.number = seed;
  result.is_prefill = seed % 2 == 0;
  for (int i = 0; i < requests; ++i)
    result.requests.push_back("request-" + std::to_string(seed * 1000 + i));
  result.sampling["temperature"] = std::vector<float>(static_cast<std::size_t>(requests), 0.5F);
  result.extra = std::string{"x"};
  result.following = std::make_unique<EngineStep>();
  result.following->number = -seed;
  return result;
}

struct Refuses {
  template <class Archive>
  void save(Archive&) const {
    throw std::runtime_error{"not for others"};
  }
  template <class Archive>
  void load(Archive&) {}
};

struct Empty {
  template <class Archive>
  void serialize(Archive&) {}
};

// Stored as one value of another type.
struct Celsius {
  double degrees = 0;
  template <class Archive>
  double save_minimal(const Archive&) const {
    return degrees;
  }
  template <class Archive>
  void load_minimal(const Archive&, const double& value) {
    degrees = value;
  }
};

}  // namespace

TEST_CASE("objects are broadcast, sent and gathered") {
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "dp=2,tp=auto" : "dp=1,tp=auto"};
  auto& tp = mesh["tp"];
  for (const int requests : {0, 3, 2000}) {
    CAPTURE(requests);
    const std::int64_t root = tp.size() - 1;
    EngineStep mine = tp.is_last() ? engine_step(7, requests) : EngineStep{};
    exchange::broadcast_object(tp, mine, root);
    CHECK(mine == engine_step(7, requests));
    const auto gathered = exchange::gather_objects(
        tp, engine_step(tp.rank_in_group().value(), requests + rank()), root);
    REQUIRE(std::ssize(gathered) == (tp.is_last() ? tp.size() : 0));
    for (std::size_t r = 0; r < gathered.size(); ++r)
      CHECK(gathered[r].number == static_cast<std::int64_t>(r));
    const auto all = exchange::all_gather_objects(tp, std::to_string(rank()));
    for (std::int64_t r = 0; r < tp.size(); ++r)
      CHECK(all[static_cast<std::size_t>(r)] == std::to_string(tp.ranks().at(r).value()));
    if (tp.size() < 2) continue;
    if (tp.is_first()) exchange::send_object(tp, engine_step(5, requests), tp.size() - 1, 9);
    if (tp.is_last())
      CHECK(exchange::recv_object<EngineStep>(tp, 0, 9) == engine_step(5, requests));
  }
  mesh.close();
}

TEST_CASE("an object is received if it has arrived") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  for (const int requests : {0, 2000}) {  // of one message and of two
    CAPTURE(requests);
    if (tp.is_first()) {
      CHECK(!exchange::try_recv_object<EngineStep>(tp, prev, 9).has_value());
      tp.barrier();  // the last member sends after this
      std::optional<EngineStep> step;
      while (!(step = exchange::try_recv_object<EngineStep>(tp, prev, 9))) mesh.progress();
      CHECK(*step == engine_step(5, requests));
      // The second object is not received as a part of the first one, and no third one comes.
      while (!(step = exchange::try_recv_object<EngineStep>(tp, prev, 9))) mesh.progress();
      CHECK(*step == engine_step(6, requests));
      CHECK(!exchange::try_recv_object<EngineStep>(tp, prev, 9).has_value());
      CHECK(!exchange::try_recv_object<std::string>(tp, prev, 8).has_value());
    } else {
      tp.barrier();
    }
    if (tp.is_last()) {
      exchange::send_object(tp, engine_step(5, requests), next, 9);
      exchange::send_object(tp, engine_step(6, requests), next, 9);
    }
    tp.barrier();
  }
  // An object of another type throws, and the group stays usable.
  if (tp.is_last()) exchange::send_object(tp, std::string{"no step"}, next);
  if (tp.is_first()) {
    while (!tp.probe(prev)) mesh.progress();
    CHECK_THROWS_AS((void)exchange::try_recv_object<std::vector<EngineStep>>(tp, prev), DataError);
  }
  tp.barrier();
  mesh.close();
}

TEST_CASE("an object that cannot be serialised fails on every member") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  Refuses refuses;
  CHECK_THROWS_WITH_AS(exchange::broadcast_object(tp, refuses, 0),
                       doctest::Contains("not for others"), DataError);
  CHECK_THROWS_WITH_AS((void)exchange::gather_objects(tp, refuses, 0),
                       doctest::Contains("not for others"), DataError);
  if (size() > 1 && tp.is_first())
    CHECK_THROWS_AS(exchange::send_object(tp, refuses, 1), DataError);
  if (rank() == 1)
    CHECK_THROWS_WITH_AS((void)exchange::recv_object<Refuses>(tp, 0),
                         doctest::Contains("not for others"), DataError);
  tp.barrier();
  mesh.close();
}

TEST_CASE("an object of another type throws at its receiver only, and the group stays usable") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  if (tp.is_first()) exchange::send_object(tp, std::string{"fourteen bytes"}, 1);
  if (rank() == 1)
    CHECK_THROWS_WITH_AS((void)exchange::recv_object<std::vector<double>>(tp, 0),
                         doctest::Contains("are not an object"), DataError);
  std::vector<int> one{1};
  tp.all_reduce(one);
  CHECK(one[0] == size());
  mesh.close();
}

TEST_CASE(
    "bytes that were truncated, lengthened or changed throw or are read, without undefined "
    "behaviour") {
  if (rank() != 0) return;
  const Bytes good = exchange::to_bytes(engine_step(3, 4));
  CHECK(exchange::from_bytes<EngineStep>(good) == engine_step(3, 4));
  for (std::size_t n = 0; n < good.size(); ++n)
    CHECK_THROWS_AS((void)exchange::from_bytes<EngineStep>(std::span{good}.first(n)), DataError);
  Bytes longer = good;
  longer.push_back(std::byte{0});
  CHECK_THROWS_WITH_AS((void)exchange::from_bytes<EngineStep>(longer),
                       doctest::Contains("1 bytes are left over"), DataError);
  // A vector that claims 2^60 elements, or 2^33 of them: no memory is allocated for either.
  for (const std::uint64_t length : {std::uint64_t{1} << 60, std::uint64_t{1} << 33}) {
    Bytes huge(1 + sizeof length);
    huge[0] = std::byte{1};
    std::memcpy(huge.data() + 1, &length, sizeof length);
    CHECK_THROWS_WITH_AS((void)exchange::from_bytes<std::vector<double>>(huge),
                         doctest::Contains("the bytes end too early"), DataError);
    CHECK_THROWS_AS((void)exchange::from_bytes<std::string>(huge), DataError);
  }
  std::mt19937 random{5};
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    Bytes changed = good;
    for (int k = 0; k < 3; ++k)
      changed[random() % changed.size()] = static_cast<std::byte>(random());
    try {
      (void)exchange::from_bytes<EngineStep>(changed);
    } catch (const DataError&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("the output of cereal's archive is read in either byte order") {
  if (rank() != 0) return;
  for (const auto& options : {cereal::PortableBinaryOutputArchive::Options::LittleEndian(),
                              cereal::PortableBinaryOutputArchive::Options::BigEndian()}) {
    std::ostringstream stream;
    {
      cereal::PortableBinaryOutputArchive archive{stream, options};
      archive(std::vector<double>{1.5, -2}, std::string{"ab"}, true);
    }
    const std::string text = stream.str();
    std::tuple<std::vector<double>, std::string, bool> values;
    exchange::from_bytes(std::as_bytes(std::span{text}), values);
    CHECK(values == std::tuple{std::vector<double>{1.5, -2}, std::string{"ab"}, true});
  }
  CHECK(
      exchange::from_bytes<std::vector<Empty>>(exchange::to_bytes(std::vector<Empty>(5))).size() ==
      5);
  CHECK(exchange::from_bytes<Celsius>(exchange::to_bytes(Celsius{36.6})).degrees == 36.6);
}
