#include "measure.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>

#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/mpi/error.hpp"

namespace meshinfo {

using rankmesh::Call;
using rankmesh::DataType;
using rankmesh::MemoryKind;
using rankmesh::Operation;
using rankmesh::RankInGroup;
using rankmesh::ReduceOp;

namespace {

// Whether a rank has a block for (or of) every member on its larger side.
bool has_blocks(Operation operation) {
  return operation >= Operation::all_gather && operation <= Operation::all_to_all;
}

// 1 or 2: sums stay exact in every type, and products are powers of two.
double value(std::int64_t member, std::int64_t index) {
  return static_cast<double>(1 + (member * 5 + index * 3 + index / 7) % 2);
}

// Small whole numbers, their halves and so on, in 16 bits.
std::uint16_t to_half(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  return static_cast<std::uint16_t>(((((bits >> 23) & 0xff) - 112) << 10) | ((bits >> 13) & 0x3ff));
}
float from_half(std::uint16_t half) {
  return std::bit_cast<float>(((((half >> 10) & 0x1fU) + 112) << 23) | ((half & 0x3ffU) << 13));
}

template <class T>
void put(std::byte* to, double number) {
  const T converted = static_cast<T>(number);
  std::memcpy(to, &converted, sizeof converted);
}
template <class T>
double get(const std::byte* from) {
  T number;
  std::memcpy(&number, from, sizeof number);
  return static_cast<double>(number);
}

void store(std::byte* to, DataType type, double number) {
  switch (type) {
    case DataType::int8:
      return put<std::int8_t>(to, number);
    case DataType::uint8:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return put<std::uint8_t>(to, number);
    case DataType::int16:
      return put<std::int16_t>(to, number);
    case DataType::uint16:
      return put<std::uint16_t>(to, number);
    case DataType::int32:
      return put<std::int32_t>(to, number);
    case DataType::uint32:
      return put<std::uint32_t>(to, number);
    case DataType::int64:
      return put<std::int64_t>(to, number);
    case DataType::uint64:
      return put<std::uint64_t>(to, number);
    case DataType::float32:
      return put<float>(to, number);
    case DataType::float64:
      return put<double>(to, number);
    case DataType::float16: {
      const std::uint16_t half = to_half(static_cast<float>(number));
      std::memcpy(to, &half, sizeof half);
      return;
    }
    case DataType::bfloat16: {
      const auto half = static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>(static_cast<float>(number)) >> 16);
      std::memcpy(to, &half, sizeof half);
      return;
    }
  }
}

double load(const std::byte* from, DataType type) {
  switch (type) {
    case DataType::int8:
      return get<std::int8_t>(from);
    case DataType::uint8:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return get<std::uint8_t>(from);
    case DataType::int16:
      return get<std::int16_t>(from);
    case DataType::uint16:
      return get<std::uint16_t>(from);
    case DataType::int32:
      return get<std::int32_t>(from);
    case DataType::uint32:
      return get<std::uint32_t>(from);
    case DataType::int64:
      return get<std::int64_t>(from);
    case DataType::uint64:
      return get<std::uint64_t>(from);
    case DataType::float32:
      return get<float>(from);
    case DataType::float64:
      return get<double>(from);
    case DataType::float16: {
      std::uint16_t half = 0;
      std::memcpy(&half, from, sizeof half);
      return from_half(half);
    }
    case DataType::bfloat16: {
      std::uint16_t half = 0;
      std::memcpy(&half, from, sizeof half);
      return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
    }
  }
  return 0;
}

double reduced(ReduceOp reduction, std::int64_t members, std::int64_t index) {
  double result = value(0, index);
  for (std::int64_t m = 1; m < members; ++m) {
    const double other = value(m, index);
    switch (reduction) {
      case ReduceOp::sum:
      case ReduceOp::avg:
        result += other;
        break;
      case ReduceOp::prod:
        result *= other;
        break;
      case ReduceOp::min:
        result = std::min(result, other);
        break;
      case ReduceOp::max:
        result = std::max(result, other);
        break;
    }
  }
  return reduction == ReduceOp::avg ? result / static_cast<double>(members) : result;
}

// What stands at `index` of this rank's output.
double expected(const Work& work, std::int64_t self, std::int64_t size, std::int64_t count,
                std::int64_t index) {
  switch (work.operation) {
    case Operation::broadcast:
      return value(work.root, index);
    case Operation::reduce:
    case Operation::all_reduce:
      return reduced(work.reduction, size, index);
    case Operation::all_gather:
    case Operation::gather:
      return value(index / count, index % count);
    case Operation::reduce_scatter:
      return reduced(work.reduction, size, self * count + index);
    case Operation::scatter:
      return value(work.root, self * count + index);
    case Operation::all_to_all:
      return value(index / count, self * count + index % count);
    case Operation::barrier:
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      break;
  }
  return 0;
}

// Rounding of averages and of half types.
bool is_close(double found, double wanted, DataType type) {
  switch (type) {
    case DataType::float16:
    case DataType::bfloat16:
      return std::abs(found - wanted) <= 0.02 * wanted;
    case DataType::float32:
    case DataType::float64:
      return std::abs(found - wanted) <= 1e-5 * wanted;
    case DataType::int8:
    case DataType::uint8:
    case DataType::int16:
    case DataType::uint16:
    case DataType::int32:
    case DataType::uint32:
    case DataType::int64:
    case DataType::uint64:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return found == std::trunc(wanted);
  }
  return false;
}

}  // namespace

std::unique_ptr<Output> open_output(const std::string& path) {
  std::unique_ptr<Output> output;
  std::exception_ptr failure;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    try {
      OutputOptions options;
      options.path = path;
      output = std::make_unique<Output>(options);
    } catch (const rankmesh::Error&) {
      failure = std::current_exception();
    }
  }
  int is_open = failure == nullptr;
  rankmesh::mpi::check(MPI_Bcast(&is_open, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  if (failure) std::rethrow_exception(failure);
  if (is_open == 0) throw rankmesh::UsageError{"rank 0 cannot open the output", "see what it says"};
  return output;
}

Measure::Measure(rankmesh::GroupCoordinator* group, std::int64_t size, std::int64_t most_bytes,
                 MemoryKind memory)
    : group_{group}, size_{size}, kind_{memory} {
  if (group == nullptr) return;
  // A block per member at least, whatever the type.
  const auto bytes = static_cast<std::size_t>(std::max(most_bytes, size * 8));
  for (int i = 0; i < 2; ++i) {
    host_[i].resize(bytes);
    if (memory == MemoryKind::device)
      device_[i] = rankmesh::device::DeviceBuffer<std::uint8_t>{bytes};
  }
}

Measure::Size Measure::size_of(const Work& work, std::int64_t group_size) {
  if (work.operation == Operation::barrier) return {0, 0};
  const auto width = static_cast<std::int64_t>(rankmesh::size_of(work.type));
  const std::int64_t blocks = has_blocks(work.operation) ? group_size : 1;
  const std::int64_t count = std::max<std::int64_t>(1, work.bytes / (width * blocks));
  return {count, count * blocks * width};
}

bool Measure::has_form(const Work& work, bool in_place) {
  switch (work.operation) {
    case Operation::broadcast:
      return in_place;
    case Operation::barrier:
      return !in_place;
    case Operation::reduce_scatter:
      return !in_place || work.memory == MemoryKind::device;
    case Operation::all_to_all:
      return !in_place || work.memory == MemoryKind::host;
    case Operation::reduce:
    case Operation::all_reduce:
    case Operation::all_gather:
    case Operation::gather:
    case Operation::scatter:
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      return true;
  }
  return true;
}

std::byte* Measure::memory(int which) {
  return kind_ == MemoryKind::host ? host_[which].data()
                                   : reinterpret_cast<std::byte*>(device_[which].data());
}

// Buffer 0 is the input, buffer 1 the output; in place buffer 1 is both.
Call Measure::call_of(const Work& work, bool in_place) {
  const auto [count, bytes] = size_of(work, size_);
  const std::int64_t self = group_->rank_in_group().value();
  const std::int64_t all = count * size_;
  const bool is_root = self == work.root;
  Call call{
      .operation = work.operation, .reduction = work.reduction, .root = RankInGroup{work.root}};
  if (kind_ == MemoryKind::device) call.stream = group_->stream();
  const rankmesh::Buffer out{memory(1), count, work.type, kind_};
  const rankmesh::ConstBuffer in{in_place ? memory(1) : memory(0), count, work.type, kind_};
  const auto offset = self * count;
  call.in = in;
  call.out = out;
  switch (work.operation) {
    case Operation::barrier:
      call.in = {};
      call.out = {};
      break;
    case Operation::broadcast:
      call.in = {};
      break;
    case Operation::reduce:
      if (in_place && !is_root) call.in.data = memory(0);
      break;
    case Operation::all_reduce:
      break;
    case Operation::all_gather:
      if (in_place) call.in = in.slice(offset, count);
      call.out.count = all;
      break;
    case Operation::gather:
      if (in_place)
        call.in = is_root ? in.slice(offset, count)
                          : rankmesh::ConstBuffer{memory(0), count, work.type, kind_};
      call.out.count = all;
      break;
    case Operation::reduce_scatter:
      call.in.count = all;
      if (in_place) call.out = out.slice(offset, count);
      break;
    case Operation::scatter:
      call.in.count = all;
      if (in_place && is_root) call.out = out.slice(offset, count);
      if (in_place && !is_root) call.in.data = memory(0);
      break;
    case Operation::all_to_all:
      call.in.count = call.out.count = all;
      break;
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      break;
  }
  return call;
}

void Measure::finish() {
  if (kind_ == MemoryKind::device) group_->wait(group_->stream());
}

double Measure::time(const Work& work, bool in_place, std::int64_t warm_up, std::int64_t repeats) {
  double seconds = 0;
  if (group_ != nullptr) {
    const Call call = call_of(work, in_place);
    for (std::int64_t i = 0; i < warm_up; ++i) rankmesh::detail::GroupAccess::run(*group_, call);
    finish();
    group_->barrier();
    const double begin = MPI_Wtime();
    for (std::int64_t i = 0; i < repeats; ++i) rankmesh::detail::GroupAccess::run(*group_, call);
    finish();
    seconds = (MPI_Wtime() - begin) / static_cast<double>(repeats);
  }
  double longest = 0;
  rankmesh::mpi::check(MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD),
                       "MPI_Allreduce");
  return longest;
}

std::int64_t Measure::wrong(const Work& work, bool in_place) {
  std::int64_t found = 0;
  if (group_ != nullptr && work.operation != Operation::barrier) {
    const std::int64_t self = group_->rank_in_group().value();
    const Call call = call_of(work, in_place);
    const auto width = static_cast<std::int64_t>(rankmesh::size_of(work.type));
    // The input, or broadcast's values, where the call finds them; the rest holds what no result
    // is.
    for (auto& bytes : host_) std::ranges::fill(bytes, std::byte{0});
    const bool is_broadcast = work.operation == Operation::broadcast;
    const std::byte* input = is_broadcast ? call.out.data : call.in.data;
    const std::int64_t inputs = is_broadcast ? call.out.count : call.in.count;
    for (int which = 0; which < 2; ++which) {
      const std::byte* begin = memory(which);
      const auto bytes = static_cast<std::int64_t>(host_[which].size());
      if (input >= begin && input < begin + bytes)
        for (std::int64_t i = 0; i < inputs; ++i)
          store(host_[which].data() + (input - begin) + i * width, work.type, value(self, i));
    }
    if (kind_ == MemoryKind::device)
      for (int which = 0; which < 2; ++which)
        device_[which].upload(
            {reinterpret_cast<const std::uint8_t*>(host_[which].data()), host_[which].size()},
            call.stream);
    rankmesh::detail::GroupAccess::run(*group_, call);
    finish();
    std::vector<std::uint8_t> downloaded;
    const std::byte* results = call.out.data;
    if (kind_ == MemoryKind::device) {
      downloaded = device_[1].download(call.stream);
      results = reinterpret_cast<const std::byte*>(downloaded.data()) + (call.out.data - memory(1));
    }
    const bool has_result =
        (work.operation != Operation::reduce && work.operation != Operation::gather) ||
        self == work.root;
    const std::int64_t count = size_of(work, size_).count;
    for (std::int64_t i = 0; has_result && i < call.out.count; ++i)
      if (!is_close(load(results + i * width, work.type), expected(work, self, size_, count, i),
                    work.type))
        ++found;
  }
  std::int64_t all = 0;
  rankmesh::mpi::check(MPI_Allreduce(&found, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD),
                       "MPI_Allreduce");
  return all;
}

}  // namespace meshinfo
