// SPDX-License-Identifier: BSD-3-Clause
#include "detail/mpi_message.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "mpi/detail/returned_errors.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/datatype.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {

using mpi::check;
using mpi::CountedType;

namespace {

// Up to this size, in bytes, send_recv starts the send before the receive, so that the message
// leaves earlier. Above it MPI_Sendrecv is used, which posts the receive first.
constexpr std::int64_t early_bytes = 1024;

// Open MPI raises the errors of messages on their communicator, MPICH on MPI_COMM_WORLD.
#if defined(OPEN_MPI)
constexpr bool raises_on_world = false;
#else
constexpr bool raises_on_world = true;
#endif

// Returns the error of a message that has arrived and is too short. MPI itself reports only
// messages that are too long.
std::optional<WrongLength> wrong_length(const MPI_Status& status, std::int64_t expected) {
  MPI_Count bytes = 0;
  check(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
  if (bytes == expected) return std::nullopt;
  return WrongLength{bytes, expected};
}

std::string length_text(std::optional<std::int64_t> received, std::int64_t expected) {
  return received ? fmt::format("received {} bytes, but {} were expected", *received, expected)
                  : fmt::format("received more than the {} bytes that were expected", expected);
}

}  // namespace

WrongLength::WrongLength(std::optional<std::int64_t> received, std::int64_t expected)
    : UsageError{length_text(received, expected), length_hint} {}

WrongLength::WrongLength(std::string text) : UsageError{std::move(text), length_hint} {}

void WrongLength::throw_in(const std::string& activity) const {
  throw UsageError{fmt::format("{}: {}", activity, message()), hint()};
}

// Some MPI libraries store the length of the whole message, others the length of the part that
// fits.
std::optional<WrongLength> WrongLength::of(int code, const MPI_Status& status,
                                           std::int64_t expected) {
  int error_class = MPI_SUCCESS;
  if (MPI_Error_class(code, &error_class) != MPI_SUCCESS || error_class != MPI_ERR_TRUNCATE)
    return std::nullopt;
  MPI_Count bytes = 0;
  const bool is_known = MPI_Get_elements_x(&status, MPI_BYTE, &bytes) == MPI_SUCCESS &&
                        bytes != MPI_UNDEFINED && bytes > expected;
  return WrongLength{is_known ? std::optional<std::int64_t>{bytes} : std::nullopt, expected};
}

void run_message(const Call& call, const mpi::CommunicatorView& group, std::int64_t largest) {
  MPI_Comm comm = group.native();
  const auto to = static_cast<int>(call.destination.value());
  const auto from = static_cast<int>(call.source.value());
  const int tag = call.tag;
  MPI_Status status{};
  // A message that is too long has ended the receive.
  const auto check_receive = [&](int code, const char* function) {
    if (code == MPI_SUCCESS) [[likely]]
      return;
    if (const auto wrong = WrongLength::of(code, status, call.out.bytes()))
      throw WrongLength{*wrong};
    check(code, function);
  };
  if (call.operation == Operation::send) {
    const CountedType in{call.in.count, call.in.type, largest};
    return check(MPI_Send(call.in.data, in.count(), in.type(), to, tag, comm), "MPI_Send");
  }
  const CountedType out{call.out.count, call.out.type, largest};
  const auto receive = [&] {
    return MPI_Recv(call.out.data, out.count(), out.type(), from, tag, comm, &status);
  };
  if (call.operation == Operation::recv) {
    check_receive(receive(), "MPI_Recv");
  } else {
    const CountedType in{call.in.count, call.in.type, largest};
    if (call.in.bytes() <= early_bytes) {
      MPI_Request sent = MPI_REQUEST_NULL;
      check(MPI_Isend(call.in.data, in.count(), in.type(), to, tag, comm, &sent), "MPI_Isend");
      // Both operations must end before an error is thrown, because MPI uses
      // the buffers until then.
      const int received = receive();
      const int done = MPI_Wait(&sent, MPI_STATUS_IGNORE);
      check(done, "MPI_Wait");
      check_receive(received, "MPI_Recv");
    } else {
      check_receive(MPI_Sendrecv(call.in.data, in.count(), in.type(), to, tag, call.out.data,
                                 out.count(), out.type(), from, tag, comm, &status),
                    "MPI_Sendrecv");
    }
  }
  int bytes = 0;  // MPI_UNDEFINED if the length does not fit; wrong_length() asks for 64 bits
  check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  if (bytes != call.out.bytes()) [[unlikely]]
    if (const auto wrong = wrong_length(status, call.out.bytes())) throw WrongLength{*wrong};
}

MpiMessage::MpiMessage(const Call& call, const mpi::CommunicatorView& group, std::int64_t largest,
                       bool is_foreign)
    : comm_{group.native()}, is_foreign_{is_foreign}, expected_{call.out.bytes()} {
  MPI_Comm comm = comm_;
  if (call.operation != Operation::send) {
    const CountedType out{call.out.count, call.out.type, largest};
    check(mpi::returning_errors(comm, is_foreign, raises_on_world,
                                [&] {
                                  return MPI_Irecv(call.out.data, out.count(), out.type(),
                                                   static_cast<int>(call.source.value()), call.tag,
                                                   comm, &receive_);
                                }),
          "MPI_Irecv");
  }
  if (call.operation != Operation::recv) {
    const CountedType in{call.in.count, call.in.type, largest};
    check(mpi::returning_errors(comm, is_foreign, raises_on_world,
                                [&] {
                                  return MPI_Isend(call.in.data, in.count(), in.type(),
                                                   static_cast<int>(call.destination.value()),
                                                   call.tag, comm, &send_);
                                }),
          "MPI_Isend");
  }
}

bool MpiMessage::test() {
  if (receive_ != MPI_REQUEST_NULL) test_receive();
  if (send_ != MPI_REQUEST_NULL) {
    int done = 0;
    check(mpi::returning_errors(comm_, is_foreign_, raises_on_world,
                                [&] { return MPI_Test(&send_, &done, MPI_STATUS_IGNORE); }),
          "MPI_Test");
  }
  // MPI may still use the memory of the send, so the error of the receive is thrown only when both
  // operations have ended.
  if (is_in_mpi()) return false;
  if (wrong_length_) throw WrongLength{*wrong_length_};
  return true;
}

void MpiMessage::test_receive() {
  int done = 0;
  MPI_Status status{};
  const int code = mpi::returning_errors(comm_, is_foreign_, raises_on_world,
                                         [&] { return MPI_Test(&receive_, &done, &status); });
  if (code != MPI_SUCCESS) {
    wrong_length_ = WrongLength::of(code, status, expected_);
    if (!wrong_length_) check(code, "MPI_Test");
    receive_ = MPI_REQUEST_NULL;  // a message that is too long has ended the receive
  } else if (done != 0) {
    int is_cancelled = 0;
    if (is_cancelling_) check(MPI_Test_cancelled(&status, &is_cancelled), "MPI_Test_cancelled");
    was_cancelled_ = is_cancelled != 0;
    if (!was_cancelled_) wrong_length_ = wrong_length(status, expected_);
  }
}

void MpiMessage::cancel() {
  if (receive_ == MPI_REQUEST_NULL || send_ != MPI_REQUEST_NULL || is_cancelling_) return;
  check(mpi::returning_errors(comm_, is_foreign_, raises_on_world,
                              [&] { return MPI_Cancel(&receive_); }),
        "MPI_Cancel");
  is_cancelling_ = true;
}

}  // namespace rankmesh::detail
