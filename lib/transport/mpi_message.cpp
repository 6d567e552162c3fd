// SPDX-License-Identifier: BSD-3-Clause
#include "detail/mpi_message.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "detail/wrong_length.hpp"
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

}  // namespace

void check_length(const Call& call, const MPI_Status& status) {
  MPI_Count bytes = 0;
  check(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
  if (bytes != call.out.bytes()) throw WrongLength{bytes, call.out.bytes()};
}

namespace {

constexpr const char* length_hint = "send and receive the same number of elements of the same type";

std::string length_text(std::optional<std::int64_t> received, std::int64_t expected) {
  return received ? fmt::format("received {} bytes, but {} were expected", *received, expected)
                  : fmt::format("received more than the {} bytes that were expected", expected);
}

}  // namespace

WrongLength::WrongLength(std::optional<std::int64_t> received, std::int64_t expected)
    : UsageError{length_text(received, expected), length_hint} {}

void WrongLength::throw_in(const std::string& activity) const {
  throw UsageError{fmt::format("{}: {}", activity, message()), hint()};
}

// Some libraries of MPI store the length of the whole message, others that of the part that fits.
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

void run_message(const Call& call, MPI_Comm comm, std::int64_t largest) {
  const int to = static_cast<int>(call.destination.value());
  const int from = static_cast<int>(call.source.value());
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
    return check(MPI_Send(call.in.data, in.count(), in.type(), to, call.tag, comm), "MPI_Send");
  }
  const CountedType out{call.out.count, call.out.type, largest};
  const auto receive = [&] {
    return MPI_Recv(call.out.data, out.count(), out.type(), from, call.tag, comm, &status);
  };
  if (call.operation == Operation::recv) {
    check_receive(receive(), "MPI_Recv");
  } else {
    const CountedType in{call.in.count, call.in.type, largest};
    if (call.in.bytes() <= early_bytes) {
      MPI_Request sent = MPI_REQUEST_NULL;
      check(MPI_Isend(call.in.data, in.count(), in.type(), to, call.tag, comm, &sent), "MPI_Isend");
      // Both operations must end before an error is thrown, because MPI uses
      // the buffers until then.
      const int received = receive();
      const int done = MPI_Wait(&sent, MPI_STATUS_IGNORE);
      check(done, "MPI_Wait");
      check_receive(received, "MPI_Recv");
    } else {
      check_receive(MPI_Sendrecv(call.in.data, in.count(), in.type(), to, call.tag, call.out.data,
                                 out.count(), out.type(), from, call.tag, comm, &status),
                    "MPI_Sendrecv");
    }
  }
  int bytes = 0;  // MPI_UNDEFINED if the length does not fit; check_length() then asks for 64 bits
  check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  if (bytes != call.out.bytes()) [[unlikely]]
    check_length(call, status);
}

void start_message(const Call& call, MPI_Comm comm, std::int64_t largest,
                   std::vector<MPI_Request>& requests) {
  if (call.operation != Operation::send) {
    const CountedType out{call.out.count, call.out.type, largest};
    check(MPI_Irecv(call.out.data, out.count(), out.type(), static_cast<int>(call.source.value()),
                    call.tag, comm, &requests.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Irecv");
  }
  if (call.operation != Operation::recv) {
    const CountedType in{call.in.count, call.in.type, largest};
    check(MPI_Isend(call.in.data, in.count(), in.type(), static_cast<int>(call.destination.value()),
                    call.tag, comm, &requests.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Isend");
  }
}

}  // namespace rankmesh::detail
