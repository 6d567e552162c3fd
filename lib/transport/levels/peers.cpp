// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/peers.hpp"

#include <cstring>

#include "mpi/detail/returned_errors.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::levels {

using mpi::check;

void PeerMessages::post_send(int node, const void* data, std::size_t bytes) {
  arrivals_.emplace_back();
  check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE,
                  peers_.members_[static_cast<std::size_t>(node)], tag_, peers_.comm_,
                  &requests_.emplace_back(MPI_REQUEST_NULL)),
        "MPI_Isend");
}

void PeerMessages::post_receive(const Arrival& arrival, void* data, std::size_t bytes) {
  arrivals_.push_back(arrival);
  check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE,
                  peers_.members_[static_cast<std::size_t>(arrival.node)], tag_, peers_.comm_,
                  &requests_.emplace_back(MPI_REQUEST_NULL)),
        "MPI_Irecv");
}

void PeerMessages::send(int node, const std::byte* data, std::size_t bytes) {
  auto& first = peers_.links_[static_cast<std::size_t>(node)].sent;
  if (first == nullptr) {
    first = std::make_unique_for_overwrite<Peers::FirstMessage>();
    first->opening = peers_.own_;
    const bool is_inline = bytes <= Peers::inline_bytes;
    if (is_inline && bytes != 0) std::memcpy(first->data, data, bytes);
    post_send(node, first.get(), sizeof(MessageOpening) + (is_inline ? bytes : 0));
    if (is_inline) return;
  }
  if (bytes != 0) post_send(node, data, bytes);
}

void PeerMessages::receive(int node, std::byte* data, std::size_t bytes) {
  auto& first = peers_.links_[static_cast<std::size_t>(node)].received;
  if (first == nullptr) {
    first = std::make_unique_for_overwrite<Peers::FirstMessage>();
    post_receive({node, true, data, bytes}, first.get(), sizeof *first);
  } else if (bytes != 0) {
    post_receive({node, false, data, bytes}, data, bytes);
  }
}

// Compares the calls, and takes the data.
void PeerMessages::open(const Arrival& arrival) {
  const auto at = static_cast<std::size_t>(arrival.node);
  const Peers::FirstMessage& first = *peers_.links_[at].received;
  if (first.opening.number != peers_.own_.number || !first.opening.call.matches(peers_.own_.call))
    throw Difference{peers_.members_[at], first.opening};
  if (arrival.bytes > Peers::inline_bytes)
    post_receive({arrival.node, false, arrival.data, arrival.bytes}, arrival.data, arrival.bytes);
  else if (arrival.bytes != 0)
    std::memcpy(arrival.data, first.data, arrival.bytes);
}

bool PeerMessages::test() {
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
    if (arrival.is_first) open(arrival);  // it may add a request
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

std::vector<std::int64_t> PeerMessages::awaited() const {
  std::vector<std::int64_t> members;
  for (const Arrival& arrival : arrivals_)
    if (arrival.node >= 0)
      members.push_back(peers_.members_[static_cast<std::size_t>(arrival.node)]);
  return members;
}

}  // namespace rankmesh::levels
