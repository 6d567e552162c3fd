// SPDX-License-Identifier: BSD-3-Clause
#include "detail/remote_sends.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mpi/detail/unfinished.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange::detail {
namespace {

bool is_active(MPI_Request request) { return request != MPI_REQUEST_NULL; }

}  // namespace

RemoteSends::~RemoteSends() {
  try {
    if (!sending_.empty() && mpi::is_active()) collect();
  } catch (const Error& error) {
    // The messages that are left are leaked below.
  }
  if (sending_.empty()) return;
  for (const Sending& s : sending_) mpi::record_requests(s.requests);
  leak(sending_);
}

void RemoteSends::open(MPI_Comm comm, int tag, std::uint64_t id,
                       std::vector<std::int64_t> readers) {
  comm_ = comm;
  tag_ = tag;
  id_ = id;
  readers_ = std::move(readers);
  done_.resize(readers_.size());
}

void RemoteSends::send(std::span<const std::byte> message) {
  Sending& s = sending_.emplace_back(Sending{Bytes(sizeof id_ + message.size()), {}});
  std::memcpy(s.message.data(), &id_, sizeof id_);
  std::ranges::copy(message, s.message.begin() + sizeof id_);
  for (const std::int64_t reader : readers_)
    // A synchronous send completes when the reader receives it, not when MPI has buffered it, so
    // that collect() knows how far behind each reader is.
    mpi::check(MPI_Issend(s.message.data(), static_cast<int>(s.message.size()), MPI_BYTE,
                          static_cast<int>(reader), tag_, comm_,
                          &s.requests.emplace_back(MPI_REQUEST_NULL)),
               "MPI_Issend");
}

std::int64_t RemoteSends::collect() {
  for (Sending& s : sending_) {
    int count = 0;
    mpi::check(MPI_Testsome(static_cast<int>(s.requests.size()), s.requests.data(), &count,
                            done_.data(), MPI_STATUSES_IGNORE),
               "MPI_Testsome");
  }
  while (!sending_.empty() && std::ranges::none_of(sending_.front().requests, is_active))
    sending_.pop_front();
  return std::ssize(sending_);
}

std::uint64_t RemoteSends::behind(std::size_t reader) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      sending_, [&](const Sending& s) { return is_active(s.requests[reader]); }));
}

}  // namespace rankmesh::exchange::detail
