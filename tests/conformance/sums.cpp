// SPDX-License-Identifier: BSD-3-Clause
// A program that checks a transport with the conformance kit. The transport carries all_reduce over
// MPI, and makes a mistake that the environment names.
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/conformance/conformance.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/transport/arithmetic.hpp"

using namespace rankmesh;

namespace {

std::string mistake() {
  const char* const text = std::getenv("MISTAKE");
  return text == nullptr ? "" : text;
}

// An asynchronous call that fails while other calls wait.
class FailsLater final : public Pending {
 public:
  bool test() override {
    if (++tests_ > 2) throw 7;
    return false;
  }

 private:
  int tests_ = 0;
};

// Gathers the inputs of all members, and combines them in group order.
class Sums final : public Transport {
 public:
  explicit Sums(const TransportGroup& group) : self_{group.self} {
    if (mistake() == "opens_late" && self_ == 1)
      std::this_thread::sleep_for(std::chrono::minutes{10});
    mpi::check(MPI_Comm_dup(group.comm.native(), &comm_), "MPI_Comm_dup");
    MPI_Comm_size(comm_, &size_);
  }
  ~Sums() override {
    if (mpi::is_active()) MPI_Comm_free(&comm_);
  }
  [[nodiscard]] bool supports(const Call& call) const override {
    return mistake() != "declines" && (mistake() != "supports_differs" || self_ != 1) &&
           call.operation == Operation::all_reduce && call.reduction != ReduceOp::avg;
  }
  void run(const Call& call, Waiter&) override {
    const auto bytes = static_cast<std::size_t>(call.out.count) * size_of(call.out.type);
    std::vector<std::byte> all(bytes * static_cast<std::size_t>(size_) + 1);
    mpi::check(MPI_Allgather(call.in.data, static_cast<int>(bytes), MPI_BYTE, all.data(),
                             static_cast<int>(bytes), MPI_BYTE, comm_),
               "MPI_Allgather");
    for (int k = 1; k < size_; ++k)
      combine(call.out.type, call.reduction, all.data(), all.data(),
              all.data() + bytes * static_cast<std::size_t>(k), call.out.count);
    ++calls_;
    if (mistake() == "throws") throw 7;
    if (mistake() == "hangs" && calls_ > 20) std::this_thread::sleep_for(std::chrono::minutes{10});
    if (mistake() == "faults") ::raise(SIGSEGV);
    // Writes when the next call is made. Narrow floats come as float32, in memory of rankmesh.
    if (mistake() == "early" && call.out.type != DataType::float32) {
      std::swap(late_, all);
      std::memcpy(std::exchange(late_to_, call.out.data), all.data(),
                  std::exchange(late_bytes_, bytes));
      return;
    }
    if (mistake() == "short" && bytes > 0) std::memcpy(call.out.data, all.data(), bytes - 1);
    if (mistake() != "short" && bytes > 0) std::memcpy(call.out.data, all.data(), bytes);
    if ((mistake() == "wrong" || mistake() == "hangs") && bytes > 0 && self_ == 1)
      *call.out.data ^= std::byte{1};
    if (mistake() == "behind") call.out.data[bytes] = std::byte{0};
  }
  [[nodiscard]] bool has_async_forms() const override {
    return mistake() == "fails_later" || mistake() == "starts_nothing";
  }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call&) override {
    if (mistake() == "starts_nothing") return nullptr;
    return std::make_unique<FailsLater>();
  }

 private:
  RankInGroup self_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int size_ = 0, calls_ = 0;
  std::vector<std::byte> late_ = std::vector<std::byte>(1);  // what an early call has not written
  std::byte* late_to_ = late_.data();
  std::size_t late_bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  return conformance::check_transport(argc, argv, "sums", [](const TransportGroup& group) {
    return std::make_unique<Sums>(group);
  });
}
