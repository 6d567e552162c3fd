// SPDX-License-Identifier: BSD-3-Clause
// The double of libnccl: data. Every collective, type and reduction against a plain loop.
#include <doctest/doctest.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "nccl_help.hpp"

using namespace help;
using ranks::Rank;
using ranks::Settings;

namespace {

// Small whole numbers, exact in every type; all sums and products below stay exact too.
int element(int rank, std::size_t i) { return 1 + (rank + static_cast<int>(i)) % 2; }

int expected(ncclRedOp_t op, int ranks, std::size_t i, bool& exact) {
  int all = element(0, i);
  for (int r = 1; r < ranks; ++r) {
    const int next = element(r, i);
    all = op == ncclProd  ? all * next
          : op == ncclMax ? std::max(all, next)
          : op == ncclMin ? std::min(all, next)
                          : all + next;
  }
  exact = op != ncclAvg || all % ranks == 0;
  return op == ncclAvg ? all / ranks : all;
}

template <class T>
T make(int value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
}

template <class T>
double read(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(value);
  else
    return static_cast<double>(static_cast<float>(value));
}

template <class T>
void check_type(const Rank& rank, ncclComm_t comm, ncclDataType_t type, std::size_t count) {
  const auto n = static_cast<std::size_t>(rank.size);
  std::vector<T> mine(n * count);
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = make<T>(element(rank.number, i));
  T* const out = device(std::vector<T>(n * count));
  T* const in = device(mine);
  for (const ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg}) {
    const auto same = [&](const T* got, std::size_t length, std::size_t offset) {
      const std::vector<T> values = host(got, length);
      for (std::size_t i = 0; i < length; ++i) {
        bool exact = true;
        const int want = expected(op, rank.size, offset + i, exact);
        if (!exact && !std::is_integral_v<T>) continue;
        if (read(values[i]) != want)
          throw ranks::Failure("type " + std::to_string(type) + ", op " + std::to_string(op) +
                               ", element " + std::to_string(i) + ": " +
                               std::to_string(read(values[i])) + ", not " + std::to_string(want));
      }
    };
    const std::size_t block = static_cast<std::size_t>(rank.number) * count;
    NCCL_OK(ncclAllReduce(in, out, count, type, op, comm, nullptr));
    same(out, count, 0);
    NCCL_OK(ncclReduceScatter(in, out, count, type, op, comm, nullptr));
    same(out, count, block);
    NCCL_OK(ncclReduce(in, out, count, type, op, rank.size - 1, comm, nullptr));
    CUDA_OK(cudaStreamSynchronize(nullptr));
    if (rank.number == rank.size - 1) same(out, count, 0);
    T* const copy = device(mine);
    NCCL_OK(ncclAllReduce(copy, copy, count, type, op, comm, nullptr));
    same(copy, count, 0);
    CUDA_OK(cudaFree(copy));
    T* const second = device(mine);
    NCCL_OK(ncclReduceScatter(second, second + block, count, type, op, comm, nullptr));
    same(second + block, count, block);
    CUDA_OK(cudaFree(second));
  }
  CUDA_OK(cudaFree(in));
  CUDA_OK(cudaFree(out));
}

// Element i of the block that `from` sends to `to`.
int moved(int from, int to, std::size_t i) { return 10000 * from + 100 * to + static_cast<int>(i); }

}  // namespace

TEST_CASE("reductions on every type, in place and out of place, at 2, 4 and 8 ranks") {
  for (const int size : {2, 4, 8}) {
    CHECK_RANKS(size, Settings{}, [](Rank rank) {
      const ncclComm_t comm = make_comm(rank);
      const std::size_t count = 5;
      check_type<std::int8_t>(rank, comm, ncclInt8, count);
      check_type<std::uint8_t>(rank, comm, ncclUint8, count);
      check_type<std::int32_t>(rank, comm, ncclInt32, count);
      check_type<std::uint32_t>(rank, comm, ncclUint32, count);
      check_type<std::int64_t>(rank, comm, ncclInt64, count);
      check_type<std::uint64_t>(rank, comm, ncclUint64, count);
      check_type<__half>(rank, comm, ncclFloat16, count);
      check_type<float>(rank, comm, ncclFloat32, count);
      check_type<double>(rank, comm, ncclFloat64, count);
      check_type<__nv_bfloat16>(rank, comm, ncclBfloat16, count);
      check_type<__nv_fp8_e4m3>(rank, comm, ncclFloat8e4m3, count);
      check_type<__nv_fp8_e5m2>(rank, comm, ncclFloat8e5m2, count);
    });
  }
}

TEST_CASE("integers wrap round, averages of integers are cut, and averages of floats are exact") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    std::int8_t* bytes = device(std::vector<std::int8_t>{100, 3, -3});
    NCCL_OK(ncclAllReduce(bytes, bytes, 1, ncclInt8, ncclSum, comm, nullptr));
    REQUIRE_SAME(host(bytes, 1)[0], -56);
    std::int32_t* ints =
        device(std::vector<std::int32_t>{rank.number == 0 ? 3 : 2, rank.number == 0 ? -3 : -2});
    NCCL_OK(ncclAllReduce(ints, ints, 2, ncclInt32, ncclAvg, comm, nullptr));
    REQUIRE_SAME(host(ints, 2)[0], 2);
    REQUIRE_SAME(host(ints, 2)[1], -2);
    float* floats = device(std::vector<float>{rank.number == 0 ? 3.0f : 2.0f});
    NCCL_OK(ncclAllReduce(floats, floats, 1, ncclFloat32, ncclAvg, comm, nullptr));
    REQUIRE_RANK(host(floats, 1)[0] == 2.5f);
  });
}

TEST_CASE("averages of floats are sums of products with 1/ranks, which is rounded to the type") {
  CHECK_RANKS(3, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    const auto average = [&]<class T>(T value, ncclDataType_t type) {
      T* x = device(std::vector<T>{value});
      NCCL_OK(ncclAllReduce(x, x, 1, type, ncclAvg, comm, nullptr));
      return read(host(x, 1)[0]);
    };
    // 1/3 is 0.34375, 0.3125, 0.333984375 and 0.333251953125 in these types.
    REQUIRE_RANK(average(__nv_fp8_e4m3(1.75F), ncclFloat8e4m3) == 1.875);
    REQUIRE_RANK(average(__nv_fp8_e5m2(1.25F), ncclFloat8e5m2) == 1.0);
    REQUIRE_RANK(average(__nv_bfloat16(1.0390625F), ncclBfloat16) == 1.046875);
    REQUIRE_RANK(average(__half(1.0009765625F), ncclFloat16) == 1.0);
    const float third = 1.0F / 3;
    for (const float value : {5.0F, 1e30F, 0.1F})
      REQUIRE_RANK(average(value, ncclFloat32) == value * third + value * third + value * third);
    REQUIRE_RANK(average(3e38F, ncclFloat32) < 3.1e38);  // the sum alone would be infinite
  });
}

TEST_CASE("collectives that move data, in place and out of place") {
  for (const int size : {2, 4, 8}) {
    CHECK_RANKS(size, Settings{}, [](Rank rank) {
      const ncclComm_t comm = make_comm(rank);
      const std::size_t c = 3, n = static_cast<std::size_t>(rank.size),
                        me = static_cast<std::size_t>(rank.number);
      const int root = rank.size / 2;
      std::vector<int> values(n * c);
      for (std::size_t to = 0; to < n; ++to)
        for (std::size_t i = 0; i < c; ++i)
          values[to * c + i] = moved(rank.number, static_cast<int>(to), i);
      const auto same = [&](const int* got, std::size_t blocks, auto want) {
        const auto out = host(got, blocks * c);
        for (std::size_t b = 0; b < blocks; ++b)
          for (std::size_t i = 0; i < c; ++i)
            REQUIRE_SAME(out[b * c + i], want(static_cast<int>(b), i));
      };
      int *in = device(values), *out = device(std::vector<int>(n * c));
      NCCL_OK(ncclAlltoAll(in, out, c, ncclInt32, comm, nullptr));
      same(out, n, [&](int b, std::size_t i) { return moved(b, rank.number, i); });
      REQUIRE_NCCL(ncclAlltoAll(in, in, c, ncclInt32, comm, nullptr), ncclInvalidArgument);

      NCCL_OK(ncclAllGather(in, out, c, ncclInt32, comm, nullptr));
      same(out, n, [&](int b, std::size_t i) { return moved(b, 0, i); });
      int* gathered = device(values);
      NCCL_OK(ncclAllGather(gathered + me * c, gathered, c, ncclInt32, comm, nullptr));
      same(gathered, n, [&](int b, std::size_t i) { return moved(b, b, i); });

      NCCL_OK(ncclBroadcast(in, out, c, ncclInt32, root, comm, nullptr));
      same(out, 1, [&](int, std::size_t i) { return moved(root, 0, i); });
      int* cast = device(values);
      NCCL_OK(ncclBcast(cast, c, ncclInt32, root, comm, nullptr));
      same(cast, 1, [&](int, std::size_t i) { return moved(root, 0, i); });

      NCCL_OK(
          ncclGather(in, rank.number == root ? out : nullptr, c, ncclInt32, root, comm, nullptr));
      if (rank.number == root) same(out, n, [&](int b, std::size_t i) { return moved(b, 0, i); });
      int* own = device(values);
      NCCL_OK(ncclGather(rank.number == root ? own + me * c : own, own, c, ncclInt32, root, comm,
                         nullptr));
      if (rank.number == root)
        same(own, n,
             [&](int b, std::size_t i) { return b == root ? moved(b, b, i) : moved(b, 0, i); });

      NCCL_OK(
          ncclScatter(rank.number == root ? in : nullptr, out, c, ncclInt32, root, comm, nullptr));
      same(out, 1, [&](int, std::size_t i) { return moved(root, rank.number, i); });
      int* dealt = device(values);
      NCCL_OK(ncclScatter(dealt, rank.number == root ? dealt + me * c : dealt, c, ncclInt32, root,
                          comm, nullptr));
      same(rank.number == root ? dealt + me * c : dealt, 1,
           [&](int, std::size_t i) { return moved(root, rank.number, i); });
    });
  }
}

TEST_CASE("messages of many pieces, and of none") {
  CHECK_RANKS(4, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    const std::size_t count = 100003;
    double* x = device(std::vector<double>(count, rank.number + 1.0));
    NCCL_OK(ncclAllReduce(x, x, count, ncclFloat64, ncclSum, comm, nullptr));
    const auto got = host(x, count);
    for (const double value : got) REQUIRE_RANK(value == 10.0);
    NCCL_OK(ncclAllReduce(nullptr, nullptr, 0, ncclFloat64, ncclSum, comm, nullptr));
    NCCL_OK(ncclBroadcast(x, x, 1, ncclFloat64, 3, comm, nullptr));
    CUDA_OK(cudaDeviceSynchronize());
  });
}

TEST_CASE("sums of premultiplied data") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    float factor = rank.number == 0 ? 0.5f : 2.0f;
    float* on_device = device(std::vector<float>{factor});
    float* x = device(std::vector<float>{4.0f, 8.0f});
    float* y = device(std::vector<float>{4.0f, 8.0f});
    ncclRedOp_t now, late;
    NCCL_OK(ncclRedOpCreatePreMulSum(&now, &factor, ncclFloat32, ncclScalarHostImmediate, comm));
    NCCL_OK(ncclRedOpCreatePreMulSum(&late, on_device, ncclFloat32, ncclScalarDevice, comm));
    factor = 77.0f;
    NCCL_OK(ncclAllReduce(x, x, 2, ncclFloat32, now, comm, nullptr));
    NCCL_OK(ncclAllReduce(y, y, 2, ncclFloat32, late, comm, nullptr));
    REQUIRE_SAME(count().reductions, 2);
    NCCL_OK(ncclRedOpDestroy(now, comm));
    NCCL_OK(ncclRedOpDestroy(late, comm));
    REQUIRE_NCCL(ncclRedOpDestroy(late, comm), ncclInvalidArgument);
    REQUIRE_RANK(host(x, 2)[1] == 20.0f && host(y, 2)[0] == 10.0f);
    REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclFloat32, now, comm, nullptr), ncclInvalidArgument);
  });
}

TEST_CASE("a collective returns before it is done") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    const cudaStream_t stream = make_stream();
    int* x = device(std::vector<int>{1});
    if (rank.number == 0) {
      NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));
      REQUIRE_SAME(cudaStreamQuery(stream), cudaErrorNotReady);
      rank.set(0);  // only now does the other rank begin
    } else {
      rank.wait_for(0);
      NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    REQUIRE_SAME(host(x, 1)[0], 2);
  });
}

TEST_CASE("the first operation of an algorithm waits for the hosts of all ranks") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclCommInitRank(&comm, rank.size, shared_id(rank), rank.number));
    float* x = device(std::vector<float>(100000));
    const auto reduce = [&](std::size_t count) {
      NCCL_OK(ncclAllReduce(x, x, count, ncclFloat32, ncclSum, comm, nullptr));
    };
    for (const std::size_t count : {std::size_t{1}, std::size_t{100000}}) {
      const long before = count > 1 ? 1 : 0;
      REQUIRE_SAME(::help::count().connections, before);
      if (rank.number == 0) {
        reduce(count);
        REQUIRE_RANK(rank.shared->flags[static_cast<int>(before)] == 1);  // it has waited
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        rank.set(static_cast<int>(before));
        reduce(count);
      }
      reduce(count);
      REQUIRE_SAME(::help::count().connections, before + 1);
    }
    for (int turn = 0; turn < 2; ++turn)
      NCCL_OK(ncclBroadcast(x, x, 1, ncclFloat32, 0, comm, nullptr));
    REQUIRE_SAME(::help::count().connections, 3);
    CUDA_OK(cudaDeviceSynchronize());
  });
}

TEST_CASE("operations of one communicator keep their order over two streams") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    const cudaStream_t a = make_stream(), b = make_stream();
    int* x = device(std::vector<int>{1});
    int* y = device(std::vector<int>{2});
    Gate gate(a);
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, a));
    NCCL_OK(ncclAllReduce(y, y, 1, ncclInt32, ncclSum, comm, b));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    REQUIRE_SAME(cudaStreamQuery(b), cudaErrorNotReady);
    gate.open();
    CUDA_OK(cudaStreamSynchronize(a));
    CUDA_OK(cudaStreamSynchronize(b));
    REQUIRE_SAME(host(x, 1)[0], 2);
    REQUIRE_SAME(host(y, 1)[0], 4);
  });
}

TEST_CASE("buffers must be device memory of the communicator's device, and long enough") {
  CHECK_RANKS(1, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    std::vector<int> on_host(4);
    int* x = device(std::vector<int>(4));
    REQUIRE_NCCL(ncclAllReduce(on_host.data(), x, 4, ncclInt32, ncclSum, comm, nullptr),
                 ncclInvalidArgument);
    REQUIRE_RANK(says(nullptr, "sendbuff"));
    REQUIRE_NCCL(ncclAllReduce(x, x, 5, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument);
    REQUIRE_NCCL(ncclAllReduce(x, x, 1, static_cast<ncclDataType_t>(12), ncclSum, comm, nullptr),
                 ncclInvalidArgument);
    REQUIRE_NCCL(ncclBroadcast(x, x, 1, ncclInt32, 1, comm, nullptr), ncclInvalidArgument);
  });
}

TEST_CASE("a wrong device is refused and counted") {
  CHECK_RANKS(1, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    const cudaStream_t stream = make_stream();
    int* x = device(std::vector<int>(1));
    CUDA_OK(cudaSetDevice(1));
    const cudaStream_t other = make_stream();
    int* y = device(std::vector<int>(1));
    REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream), ncclInvalidUsage);
    CUDA_OK(cudaSetDevice(0));
    REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, other), ncclInvalidArgument);
    REQUIRE_NCCL(ncclAllReduce(y, y, 1, ncclInt32, ncclSum, comm, stream), ncclInvalidArgument);
    FakeCudaCounters counters;
    fake_cuda_counters(&counters);
    REQUIRE_SAME(counters.wrong_device, 2);
  });
}

TEST_CASE("8-bit floats are reduced only if every device has compute capability 9.0") {
  for (const char* version : {"22809", "22605"}) {
    const bool moves = std::string(version) == "22809";
    CHECK_RANKS(
        2, (Settings{{"FAKE_NCCL_VERSION", version}, {"FAKE_CUDA_COMPUTE_CAPABILITIES", "90,89"}}),
        [moves](Rank rank) {
          const ncclComm_t comm = make_non_blocking_comm(rank);
          std::uint8_t* x = device(std::vector<std::uint8_t>(4, 0x38));
          REQUIRE_SAME(ncclBroadcast(x, x, 2, ncclFloat8e4m3, 0, comm, nullptr),
                       moves ? ncclInProgress : ncclInvalidArgument);
          if (!moves) return;
          REQUIRE_SAME(poll(comm), ncclSuccess);
          REQUIRE_NCCL(ncclAllReduce(x, x, 0, ncclFloat8e5m2, ncclSum, comm, nullptr),
                       ncclInProgress);
          REQUIRE_SAME(poll(comm), ncclSuccess);
          REQUIRE_NCCL(ncclAllReduce(x, x, 2, ncclFloat8e4m3, ncclSum, comm, nullptr),
                       ncclInvalidArgument);
          REQUIRE_RANK(says(nullptr, "sm90"));
          REQUIRE_SAME(poll(comm), ncclInvalidArgument);  // for ever
        });
  }
}

TEST_CASE("types that a version does not have are refused") {
  CHECK_RANKS(2, (Settings{{"FAKE_NCCL_VERSION", "22304"}}), [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>(1));
    REQUIRE_NCCL(ncclAllReduce(x, x, 1, static_cast<ncclDataType_t>(10), ncclSum, comm, nullptr),
                 ncclInvalidArgument);
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr));
  });
}
