// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/messages.hpp"

#include <cstring>

#include "mpi/detail/returned_errors.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::levels {
namespace {

using mpi::check;

int as_count(std::size_t bytes) { return static_cast<int>(bytes); }

}  // namespace

void Messages::send(int node, const std::byte* data, std::size_t bytes) {
  const auto at = static_cast<std::size_t>(node);
  Counterparts::Link& link = counterparts_.links_[at];
  const int to = counterparts_.members_[at];
  const auto post = [&](const void* from, std::size_t size) {
    arrivals_.emplace_back();
    check(MPI_Isend(from, as_count(size), MPI_BYTE, to, tag_, counterparts_.comm_.native(),
                    &requests_.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Isend");
  };
  if (!link.has_sent) {
    link.has_sent = true;
    link.sent = std::make_unique_for_overwrite<Counterparts::Envelope>();
    link.sent->opening = counterparts_.own_;
    const bool is_inline = bytes <= Counterparts::inline_bytes;
    if (is_inline && bytes != 0) std::memcpy(link.sent->data, data, bytes);
    post(link.sent.get(), sizeof(Opening) + (is_inline ? bytes : 0));
    if (is_inline) return;
  }
  if (bytes != 0) post(data, bytes);
}

void Messages::receive(int node, std::byte* data, std::size_t bytes) {
  const auto at = static_cast<std::size_t>(node);
  Counterparts::Link& link = counterparts_.links_[at];
  if (link.has_received) return receive_data({node, false, data, bytes});
  link.has_received = true;
  link.received = std::make_unique_for_overwrite<Counterparts::Envelope>();
  arrivals_.push_back({node, true, data, bytes});
  check(MPI_Irecv(link.received.get(), as_count(sizeof *link.received), MPI_BYTE,
                  counterparts_.members_[at], tag_, counterparts_.comm_.native(),
                  &requests_.emplace_back(MPI_REQUEST_NULL)),
        "MPI_Irecv");
}

void Messages::receive_data(const Arrival& arrival) {
  if (arrival.bytes == 0) return;
  arrivals_.push_back(arrival);
  check(MPI_Irecv(arrival.data, as_count(arrival.bytes), MPI_BYTE,
                  counterparts_.members_[static_cast<std::size_t>(arrival.node)], tag_,
                  counterparts_.comm_.native(), &requests_.emplace_back(MPI_REQUEST_NULL)),
        "MPI_Irecv");
}

// Compares the calls, and takes the data.
void Messages::open(const Arrival& arrival) {
  const auto at = static_cast<std::size_t>(arrival.node);
  const Counterparts::Envelope& envelope = *counterparts_.links_[at].received;
  const Opening& own = counterparts_.own_;
  if (envelope.opening.number != own.number || !envelope.opening.call.matches(own.call))
    throw Counterparts::Difference{counterparts_.members_[at], envelope.opening};
  if (arrival.bytes > Counterparts::inline_bytes)
    receive_data({arrival.node, false, arrival.data, arrival.bytes});
  else if (arrival.bytes != 0)
    std::memcpy(arrival.data, envelope.data, arrival.bytes);
}

bool Messages::test() {
  if (requests_.empty()) return true;
  std::vector<int> ended(requests_.size());
  int count = 0;
  {
    const mpi::ReturnedErrors returned{MPI_COMM_WORLD};
    check(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, ended.data(),
                       MPI_STATUSES_IGNORE),
          "MPI_Testsome");
  }
  if (count == MPI_UNDEFINED) count = 0;
  for (int i = 0; i < count; ++i) {
    const Arrival arrival = arrivals_[static_cast<std::size_t>(ended[static_cast<std::size_t>(i)])];
    if (arrival.is_opening) open(arrival);  // it may add a request
  }
  if (count == 0) return false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    arrivals_[kept++] = arrivals_[i];
  }
  requests_.resize(kept);
  arrivals_.resize(kept);
  return requests_.empty();
}

std::vector<std::int64_t> Messages::awaited() const {
  std::vector<std::int64_t> members;
  for (const Arrival& arrival : arrivals_)
    if (arrival.node >= 0)
      members.push_back(counterparts_.members_[static_cast<std::size_t>(arrival.node)]);
  return members;
}

}  // namespace rankmesh::levels
