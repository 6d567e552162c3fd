// SPDX-License-Identifier: BSD-3-Clause
// Messages between two members by MPI: send, recv and send_recv.
#pragma once

#include <cstdint>
#include <optional>

#include "call_errors.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/transport/transport.hpp"

namespace rankmesh::detail {

/// Carries out send, recv or send_recv; blocks. MPI needs few instructions for small messages, so
/// every instruction counts here.
/// @param largest  The largest number of elements in one count of MPI.
/// @throws UsageError if the message that arrived does not have the expected length.
void run_message(const Call& call, const mpi::CommunicatorView& group, std::int64_t largest);

/// A message in flight, or both messages of a send_recv. test() throws WrongLength if the message
/// that has arrived does not have the expected length.
class MpiMessage final : public Pending {
 public:
  /// Starts send, recv or send_recv; does not block.
  /// @param is_foreign  Whether the communicator has a handler of the program.
  MpiMessage(const Call& call, const mpi::CommunicatorView& group, std::int64_t largest,
             bool is_foreign);
  bool test() override;
  [[nodiscard]] bool is_in_mpi() const override {
    return receive_ != MPI_REQUEST_NULL || send_ != MPI_REQUEST_NULL;
  }
  [[nodiscard]] bool is_polled() const override { return false; }
  void cancel() override;
  [[nodiscard]] bool was_cancelled() const override { return was_cancelled_; }

 private:
  void test_receive();

  MPI_Comm comm_;
  bool is_foreign_;
  std::int64_t expected_;  // bytes
  MPI_Request receive_ = MPI_REQUEST_NULL;
  MPI_Request send_ = MPI_REQUEST_NULL;
  std::optional<WrongLength> wrong_length_;
  bool is_cancelling_ = false;
  bool was_cancelled_ = false;
};

}  // namespace rankmesh::detail
