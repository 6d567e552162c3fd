// SPDX-License-Identifier: BSD-3-Clause
// One measurement of bench and tune, on one group.
#include "measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "rankmesh/base/narrow_float.hpp"

namespace rankmesh::meshinfo {

CaseSize size_of(const BenchCase& work, std::int64_t group_size) {
  if (!has_data(work.operation)) return {0, 0};
  const auto width = static_cast<std::int64_t>(size_of(work.type));
  const std::int64_t blocks = has_v_form(work.operation) ? group_size : 1;
  const std::int64_t count = std::max<std::int64_t>(1, work.bytes / (width * blocks));
  return {count, count * blocks * width};
}

bool has_form(const BenchCase& work, bool in_place) {
  const OperationFacts& facts = facts_of(work.operation);
  if (facts.in == Extent::none) return in_place == (facts.out != Extent::none);
  if (!in_place) return true;
  if (facts.in_place == InPlace::block_of_input_on_device) return work.memory == MemoryKind::device;
  // NCCL's all_to_all would overwrite what it has yet to send.
  return work.operation != Operation::all_to_all || work.memory == MemoryKind::host;
}

Operands operands_of(const BenchCase& work, bool in_place, std::int64_t rank_in_group,
                     std::int64_t group_size) {
  const OperationFacts& facts = facts_of(work.operation);
  const std::int64_t count = size_of(work, group_size).count;
  const auto elements = [&](Extent extent) {
    return extent == Extent::none ? 0 : extent == Extent::block ? count : count * group_size;
  };
  Operands operands{{0, 0, elements(facts.in)}, {1, 0, elements(facts.out)}};
  if (facts.in == Extent::none) return {{}, operands.out};
  // Rooted operations are in place on the root alone.
  if (!in_place || (has_root(work.operation) && rank_in_group != work.root)) return operands;
  operands.in.buffer = 1;
  if (facts.in_place == InPlace::block_of_output) operands.in.offset = rank_in_group * count;
  if (scatters(work.operation)) operands.out.offset = rank_in_group * count;
  return operands;
}

namespace {

// 1 or 2: sums stay exact, and products are powers of two. In a product, few members have 2, so
// that it is finite in every type and every group.
double value(const BenchCase& work, std::int64_t member, std::int64_t index) {
  constexpr std::int64_t most_factors = 7;
  const bool is_product = reduces(work.operation) && work.reduction == ReduceOp::prod;
  if (is_product && member >= most_factors) return 1;
  return static_cast<double>(1 + (member * 5 + index * 3 + index / 7) % 2);
}

// Returns what a number becomes in the type: integers wrap around.
template <class T>
double wrapped(double number) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<double>(static_cast<T>(static_cast<std::uint64_t>(number)));
  return number;
}

template <class T>
double reduced(const BenchCase& work, std::int64_t members, std::int64_t index) {
  const ReduceOp reduction = work.reduction;
  double result = value(work, 0, index);
  for (std::int64_t m = 1; m < members; ++m) {
    const double other = value(work, m, index);
    if (reduction == ReduceOp::prod)
      result *= other;
    else if (reduction == ReduceOp::min)
      result = std::min(result, other);
    else if (reduction == ReduceOp::max)
      result = std::max(result, other);
    else  // sum and avg
      result += other;
  }
  result = wrapped<T>(result);
  return reduction == ReduceOp::avg ? result / static_cast<double>(members) : result;
}

// The value at `index` of a rank's output.
template <class T>
double expected(const BenchCase& work, std::int64_t self, std::int64_t size, std::int64_t block,
                std::int64_t index) {
  switch (work.operation) {
    case Operation::broadcast:
      return value(work, work.root, index);
    case Operation::reduce:
    case Operation::all_reduce:
      return reduced<T>(work, size, index);
    case Operation::all_gather:
    case Operation::gather:
      return value(work, index / block, index % block);
    case Operation::reduce_scatter:
      return reduced<T>(work, size, self * block + index);
    case Operation::scatter:
      return value(work, work.root, self * block + index);
    case Operation::all_to_all:
      return value(work, index / block, self * block + index % block);
    default:
      return 0;
  }
}

template <class T>
bool is_close(T found, double wanted) {
  if constexpr (std::is_integral_v<T>) return static_cast<double>(found) == std::trunc(wanted);
  double tolerance = 0.02;  // float16 and bfloat16
  if (std::is_floating_point_v<T>) tolerance = 1e-5;
  if (sizeof(T) == 1) tolerance = 0.15;
  const auto number = static_cast<double>(static_cast<float>(found));
  return std::abs(number - wanted) <= tolerance * wanted;
}

}  // namespace

void store_input(const BenchCase& work, std::byte* to, std::int64_t count, std::int64_t member) {
  visit(work.type, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T stored{static_cast<T>(static_cast<float>(value(work, member, i)))};
      std::memcpy(to + i * static_cast<std::int64_t>(sizeof(T)), &stored, sizeof(T));
    }
  });
}

std::int64_t count_wrong(const BenchCase& work, const std::byte* results, std::int64_t count,
                         std::int64_t rank_in_group, std::int64_t group_size) {
  if (!has_output(work.operation, rank_in_group == work.root)) return 0;
  const std::int64_t block = size_of(work, group_size).count;
  std::int64_t wrong = 0;
  visit(work.type, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      T found;
      std::memcpy(&found, results + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
      if (!is_close(found, expected<T>(work, rank_in_group, group_size, block, i))) ++wrong;
    }
  });
  return wrong;
}

namespace {

// Issues the operation on typed memory, as a program does.
template <class In, class Out>
void issue(GroupCoordinator& group, const BenchCase& work, In in, Out out, StreamRef stream) {
  const RankInGroup root{work.root};
  switch (work.operation) {
    case Operation::barrier:
      return group.barrier();
    case Operation::broadcast:
      return group.broadcast(out, root, stream);
    case Operation::reduce:
      return group.reduce(in, out, root, work.reduction, stream);
    case Operation::all_reduce:
      return group.all_reduce(in, out, work.reduction, stream);
    case Operation::all_gather:
      return group.all_gather(in, out, stream);
    case Operation::reduce_scatter:
      return group.reduce_scatter(in, out, work.reduction, stream);
    case Operation::gather:
      return group.gather(in, out, root, stream);
    case Operation::scatter:
      return group.scatter(in, out, root, stream);
    case Operation::all_to_all:
      return group.all_to_all(in, out, stream);
    default:
      return;  // see measured_operations()
  }
}

}  // namespace

Measure::Measure(GroupCoordinator* group, std::int64_t group_size, std::int64_t most_bytes,
                 MemoryKind memory)
    : group_{group}, group_size_{group_size}, kind_{memory} {
  if (group == nullptr) return;
  if (memory == MemoryKind::device) stream_ = group->stream();
  // At least a block for every member, for every type.
  const auto bytes = static_cast<std::size_t>(std::max(most_bytes, group_size * 8));
  for (int i = 0; i < 2; ++i) {
    host_[i].resize(bytes);
    if (memory == MemoryKind::device) device_[i] = device::DeviceBuffer<std::uint8_t>{bytes};
  }
}

std::byte* Measure::memory(const Part& part, std::size_t width) {
  std::byte* begin = kind_ == MemoryKind::host
                         ? host_[part.buffer].data()
                         : reinterpret_cast<std::byte*>(device_[part.buffer].data());
  return begin + part.offset * static_cast<std::int64_t>(width);
}

void Measure::run(const BenchCase& work, bool in_place, std::int64_t times) {
  const auto [in, out] = operands_of(work, in_place, group_->rank_in_group().value(), group_size_);
  const auto in_count = static_cast<std::size_t>(in.count);
  const auto out_count = static_cast<std::size_t>(out.count);
  visit(work.type, [&, &from = in, &to = out]<class T>(std::type_identity<T>) {
    const auto* input = reinterpret_cast<const T*>(memory(from, sizeof(T)));
    auto* output = reinterpret_cast<T*>(memory(to, sizeof(T)));
    const auto repeat = [&](auto typed_in, auto typed_out) {
      for (std::int64_t i = 0; i < times; ++i) issue(*group_, work, typed_in, typed_out, stream_);
    };
    if (kind_ == MemoryKind::host)
      repeat(std::span<const T>{input, in_count}, std::span<T>{output, out_count});
    else
      repeat(DeviceSpan<const T>{input, in_count}, DeviceSpan<T>{output, out_count});
  });
  if (kind_ == MemoryKind::device) group_->wait(stream_);
}

double Measure::time(const BenchCase& work, bool in_place, std::int64_t warm_up,
                     std::int64_t repeats) {
  double seconds = 0;
  if (group_ != nullptr) {
    run(work, in_place, warm_up);
    group_->barrier();
    const double begin = MPI_Wtime();
    run(work, in_place, repeats);
    seconds = (MPI_Wtime() - begin) / static_cast<double>(repeats);
  }
  return over_all_ranks(seconds, MPI_MAX);
}

std::int64_t Measure::wrong(const BenchCase& work, bool in_place) {
  const bool has_results = group_ != nullptr && has_data(work.operation);
  return over_all_ranks(has_results ? wrong_here(work, in_place) : 0, MPI_SUM);
}

std::int64_t Measure::wrong_here(const BenchCase& work, bool in_place) {
  const std::int64_t self = group_->rank_in_group().value();
  const auto [in, out] = operands_of(work, in_place, self, group_size_);
  const auto width = static_cast<std::int64_t>(size_of(work.type));
  // All other bytes are zero, which is never a result.
  for (auto& bytes : host_) std::ranges::fill(bytes, std::byte{0});
  const Part& input = work.operation == Operation::broadcast ? out : in;
  store_input(work, host_[input.buffer].data() + input.offset * width, input.count, self);
  if (kind_ == MemoryKind::device)
    for (int i = 0; i < 2; ++i)
      device_[i].upload({reinterpret_cast<const std::uint8_t*>(host_[i].data()), host_[i].size()},
                        stream_);
  run(work, in_place, 1);
  if (kind_ == MemoryKind::host)
    return count_wrong(work, host_[1].data() + out.offset * width, out.count, self, group_size_);
  const auto results = device_[1].download(stream_);
  return count_wrong(work, reinterpret_cast<const std::byte*>(results.data()) + out.offset * width,
                     out.count, self, group_size_);
}

}  // namespace rankmesh::meshinfo
