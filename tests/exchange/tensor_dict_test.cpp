// SPDX-License-Identifier: BSD-3-Clause
// Tensors by name: broadcast, sent stage to stage whole and in slices, into old and new memory.
#include "rankmesh/exchange/tensor_dict.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <numeric>

#include "rankmesh/exchange/message.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using exchange::Tensor;
using exchange::TensorDict;
using rankmesh_test::rank;
using rankmesh_test::short_deadline;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;

namespace {

template <class T>
void fill(Tensor& tensor, int seed) {
  const auto values = tensor.host<T>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>((static_cast<int>(i) * 7 + seed) % 101);
}

// What a stage hands over: divisible, not divisible, empty, one element, and many dimensions.
TensorDict tensors(int seed) {
  TensorDict dict;
  fill<float>(dict.add("hidden_states", Tensor::allocate(DataType::float32, {12, 8})), seed);
  fill<std::int64_t>(dict.add("positions", Tensor::allocate(DataType::int64, {7})), seed + 1);
  dict.add("nothing", Tensor::allocate(DataType::float64, {0, 4}));
  fill<std::uint8_t>(dict.add("flag", Tensor::allocate(DataType::uint8, {})), seed + 2);
  fill<double>(dict.add("cache", Tensor::allocate(DataType::float64, {2, 3, 4, 5})), seed + 3);
  return dict;
}

template <class T>
bool same_values(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.host<T>(), b.host<T>());
}

void check_equal(TensorDict& got, TensorDict expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    CAPTURE(name);
    const Tensor& mine = got[name];
    REQUIRE(mine.type() == tensor.type());
    CHECK(mine.shape() == tensor.shape());
    if (tensor.type() == DataType::float32) CHECK(same_values<float>(mine, tensor));
    if (tensor.type() == DataType::float64) CHECK(same_values<double>(mine, tensor));
    if (tensor.type() == DataType::int64) CHECK(same_values<std::int64_t>(mine, tensor));
    if (tensor.type() == DataType::uint8) CHECK(same_values<std::uint8_t>(mine, tensor));
  }
}

// A tensor of one dimension in the metadata of a dictionary.
struct Described {
  char name;
  std::int64_t count;
  int type = static_cast<int>(DataType::float32), kind = 0, is_sliced = 0;
};

// What a sender sends before the elements.
exchange::Bytes metadata_of(const std::vector<Described>& tensors) {
  exchange::Bytes bytes;
  const auto put = [&](auto value) {
    const auto part = std::as_bytes(std::span{&value, 1});
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  put(std::uint64_t{0x746369642e736e74});
  put(std::int64_t{1});  // slices
  for (const Described& tensor : tensors) {
    put(std::uint32_t{1});
    put(tensor.name);
    for (const int field : {tensor.type, tensor.kind, tensor.is_sliced})
      put(static_cast<std::uint8_t>(field));
    put(std::uint32_t{1});
    put(tensor.count);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a dictionary is broadcast, and memory that fits is reused") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const std::int64_t root = size() / 2;
  TensorDict dict;
  if (rank() == root) dict = tensors(4);
  exchange::broadcast_tensor_dict(tp, dict, root);
  check_equal(dict, tensors(4));

  const float* before = dict["hidden_states"].host<float>().data();
  if (rank() == root) fill<float>(dict["hidden_states"], 9);
  if (rank() != root) dict.add("of no interest", Tensor::allocate(DataType::int8, {3}));
  exchange::broadcast_tensor_dict(tp, dict, root);
  CHECK(dict["hidden_states"].host<float>().data() == before);
  CHECK(dict["hidden_states"].host<float>()[1] == 16);
  CHECK(dict.find("of no interest") == nullptr);

  // Metadata of more than one part.
  TensorDict many;
  for (int i = 0; i < (rank() == root ? 100 : 0); ++i)
    fill<float>(
        many.add("tensor number " + std::to_string(i), Tensor::allocate(DataType::float32, {i})),
        i);
  exchange::broadcast_tensor_dict(tp, many, root);
  REQUIRE(many.size() == 100);
  CHECK(many["tensor number 99"].host<float>()[98] == static_cast<float>((98 * 7 + 99) % 101));
  mesh.close();
}

TEST_CASE("memory of as many elements but another shape, or of another type, is not used again") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const std::int64_t root = size() - 1;
  TensorDict dict;
  const std::vector<std::int64_t> shape{3, 4};
  if (rank() == root) {
    fill<float>(dict.add("shape", Tensor::allocate(DataType::float32, shape)), 3);
    fill<std::int32_t>(dict.add("type", Tensor::allocate(DataType::int32, shape)), 4);
  } else {
    dict.add("shape", Tensor::allocate(DataType::float32, {2, 6}));
    dict.add("type", Tensor::allocate(DataType::float32, shape));
  }
  exchange::broadcast_tensor_dict(tp, dict, root);
  CHECK(dict["shape"].shape() == shape);
  CHECK(dict["shape"].host<float>()[11] == (11 * 7 + 3) % 101);
  REQUIRE(dict["type"].type() == DataType::int32);
  CHECK(dict["type"].host<std::int32_t>()[11] == (11 * 7 + 4) % 101);
  mesh.close();
}

TEST_CASE("from stage to stage, whole and in slices that the next stage gathers") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "pp=2,tp=auto" : "pp=auto,tp=1"};
  auto& pp = mesh["pp"];
  auto& tp = mesh["tp"];
  for (const bool sliced : {false, true}) {
    CAPTURE(sliced);
    exchange::TensorDictOptions options{
        .all_gather = sliced ? &tp : nullptr, .whole = {"own"}, .tag = 5};
    TensorDict dict;
    if (!pp.is_first()) exchange::recv_tensor_dict(pp, dict, prev, options);
    if (pp.is_first()) {
      dict = tensors(2);
      // Divisible, but each member of tp has its own.
      fill<float>(dict.add("own", Tensor::allocate(DataType::float32, {tp.size(), 3})), rank());
    }
    if (!pp.is_last()) exchange::send_tensor_dict(pp, dict, next, options);
    TensorDict expected = tensors(2);
    fill<float>(expected.add("own", Tensor::allocate(DataType::float32, {tp.size(), 3})),
                static_cast<int>(pp.first_rank().value()));
    check_equal(dict, std::move(expected));
  }
  mesh.close();
}

TEST_CASE("sender and receiver must divide tensors among groups of the same size") {
  NEEDS_MULTIPLE_OF(2);
  NEEDS_RANKS(4);
  Mesh mesh{MPI_COMM_WORLD, "pp=2,tp=auto"};
  auto& pp = mesh["pp"];
  TensorDict dict;
  if (pp.is_first()) exchange::send_tensor_dict(pp, dict, next, {.all_gather = &mesh["tp"]});
  if (pp.is_last())
    CHECK_THROWS_WITH_AS(exchange::recv_tensor_dict(pp, dict, prev), doctest::Contains("slices"),
                         DataError);
  mesh.close();
}

TEST_CASE("bytes that are not metadata throw") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const exchange::Bytes garbage(200, std::byte{0x55});
  if (rank() == 0) exchange::send_message(tp, garbage, 1);
  TensorDict dict;
  if (rank() == 1)
    CHECK_THROWS_WITH_AS(exchange::recv_tensor_dict(tp, dict, 0),
                         doctest::Contains("do not describe"), DataError);
  mesh.close();
}

TEST_CASE("metadata with the first type, kind or flag that does not exist throw") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const int types = static_cast<int>(DataType::float8_e5m2) + 1;
  const auto metadata = [](int type, int kind, int is_sliced) {  // no elements, so nothing follows
    return metadata_of({{'x', 0, type, kind, is_sliced}});
  };
  const auto transfer = [&](const exchange::Bytes& bytes) {
    TensorDict dict;
    if (rank() == 0) exchange::send_message(tp, bytes, 1);
    if (rank() == 1) exchange::recv_tensor_dict(tp, dict, 0);
    return dict;
  };
  CHECK(transfer(metadata(types - 1, 0, 0)).size() == (rank() == 1 ? 1 : 0));
  for (const auto& bytes : {metadata(types, 0, 0), metadata(0, 2, 0), metadata(0, 0, 2)}) {
    if (rank() == 1)
      CHECK_THROWS_WITH_AS((void)transfer(bytes), doctest::Contains("do not describe"), DataError);
    else
      (void)transfer(bytes);
  }
  mesh.close();
}

TEST_CASE("a receiver keeps its tensors if another one cannot be allocated") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  TensorDict dict;
  fill<float>(dict.add("x", Tensor::allocate(DataType::float32, {4})), 1);
  if (rank() == 0) exchange::send_message(tp, metadata_of({{'x', 4}, {'y', -1}}), 1);
  if (rank() == 1)
    CHECK_THROWS_WITH_AS(exchange::recv_tensor_dict(tp, dict, 0),
                         doctest::Contains("tensor 'y' is invalid"), DataError);
  CHECK(dict["x"].host<float>()[3] == 22);
  mesh.close();
}

TEST_CASE("the memory of tensors that did not arrive stays, because MPI may still write to it") {
  NEEDS_RANKS(2);
  MeshOptions options;
  options.timeout = short_deadline();
  options.check = false;  // it would wait for the send
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  std::weak_ptr<void> memory;
  wait_for_all();
  if (rank() == 0) exchange::send_message(tp, metadata_of({{'x', 4}}), 1);
  if (rank() == 1) {
    TensorDict dict;
    memory = dict.add("x", Tensor::allocate(DataType::float32, {4})).owned();
    CHECK_THROWS_AS(exchange::recv_tensor_dict(tp, dict, 0), TimeoutError);
  }
  CHECK(memory.expired() == (rank() != 1));
  wait_for_all();
}

TEST_CASE("tensors know their type, shape and memory") {
  std::vector<int> memory(6);
  const Tensor tensor = Tensor::refer(memory, {2, 3});
  tensor.host<int>()[5] = 8;
  CHECK(memory[5] == 8);
  CHECK(Tensor::refer(memory).shape() == std::vector<std::int64_t>{6});
  CHECK_THROWS_WITH_AS((void)Tensor::refer(memory, {7}),
                       doctest::Contains("has 7 elements, the memory has 6"), UsageError);
  CHECK_THROWS_AS((void)Tensor::allocate(DataType::int8, {-1, 0}), UsageError);
  CHECK_THROWS_AS(
      (void)Tensor::allocate(DataType::float64, {std::int64_t{1} << 40, std::int64_t{1} << 21}),
      UsageError);
  CHECK_THROWS_WITH_AS((void)tensor.host<float>(),
                       doctest::Contains("holds int32 in host memory, but"), UsageError);
  TensorDict dict;
  dict.add("a", Tensor{});
  CHECK_THROWS_AS(dict.add("a", Tensor{}), UsageError);
  CHECK_THROWS_AS((void)dict["b"], UnknownName);
}
