// SPDX-License-Identifier: BSD-3-Clause
// The private parts of a control queue, which its sources share: opening (control_queue.cpp), the
// writer (control_queue_writer.cpp) and the readers (control_queue_reader.cpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "group/detail/mesh_runtime.hpp"
#include "message_ring.hpp"
#include "queue_wait.hpp"
#include "rankmesh/exchange/control_queue.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/group/detail/group_life.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/transport/shared_segment.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "remote_sends.hpp"
#include "wait/detail/progress.hpp"

namespace rankmesh::exchange {

struct ControlQueue::State {
  explicit State(GroupCoordinator& of) : group{&of}, life{of} {}

  GroupCoordinator* group;
  rankmesh::detail::GroupLife life;
  RankInGroup writer{0};
  ControlQueueOptions options;
  bool is_writer = false;
  bool is_local = false;               // this rank is on the writer's node
  std::vector<std::int64_t> local_of;  // rank in group of each reader of the ring
  std::size_t reader = 0;              // this rank's index in local_of
  int tag = 0;
  std::int64_t number = 0;  // in the mesh
  std::uint64_t id = 0;     // of the messages over MPI; no other queue has it
  std::int64_t spins = 0;
  SharedSegment segment;
  std::optional<detail::MessageRing> ring;
  std::uint64_t next_chunk = 0;
  std::uint64_t messages = 0;
  detail::RemoteSends remote;
  std::string broken;

  rankmesh::detail::MeshRuntime& runtime() const {
    return rankmesh::detail::GroupAccess::runtime(*group);
  }
  [[nodiscard]] std::string name(std::int64_t rank_in_group) const;
  void require_usable() const;
  void require_reader() const;
  // The close of the group compares how many messages were written and read.
  void count_message() {
    ++messages;
    rankmesh::detail::GroupAccess::connection(*group).messages.add_of_queue(
        number, writer, group->rank_in_group(), group->size());
  }

  // Opening.
  void find_readers();
  void open_ring(const mpi::CommunicatorView& comm);

  // Polls until `done` returns true. After the deadline it calls `late`, which throws. Meanwhile
  // asynchronous operations make progress, the board of the node says what this rank waits for, and
  // the wait ends if a rank that it needs has ended or has left the mesh.
  template <class Condition, class Late>
  void wait(Condition&& done, std::optional<Deadline::Duration> timeout, Late&& late) {
    if (done()) return;
    // Each poll takes the cache line away from the rank that writes it. Therefore there are pauses
    // between the polls, in which the writing rank makes progress.
    Backoff backoff{{.spins = spins, .spin_length = 256, .yields = std::chrono::milliseconds{4}}};
    while (backoff.is_spinning()) {
      backoff.pause();
      if (done()) return;
    }
    const Deadline deadline{timeout.value_or(runtime().control->timeout)};
    detail::QueueWait queue_wait{*runtime().control, [this] { return activity(); },
                                 [this] { return awaited(); }};
    for (int polls = 0; !done(); ++polls) {
      if (deadline.passed()) late(deadline);
      rankmesh::detail::advance_everything(nullptr);
      if (polls % 64 == 63) queue_wait.look();
      backoff.pause();
    }
  }

  // What this rank does while it waits, and for which ranks of the mesh.
  [[nodiscard]] std::string activity() const;
  [[nodiscard]] std::vector<Rank> awaited() const;
  // Returns what a rank does, in words that follow its name; empty if it is not known.
  [[nodiscard]] std::string what_does(std::int64_t rank_in_group) const;

  // The writer's side.
  void write(std::span<const std::byte> message, std::optional<Deadline::Duration> timeout);
  [[noreturn]] void throw_late(const Deadline& deadline) const;
  [[nodiscard]] std::vector<std::int64_t> late_readers() const;
  [[nodiscard]] std::uint64_t chunks_behind(std::int64_t rank_in_group) const;

  // A reader's side: looks for the next message, then takes it.
  struct Arrival {
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status{};
  };
  [[nodiscard]] bool has_arrived(Arrival& arrival) const;
  // Returns false if the message is not one of this queue.
  [[nodiscard]] bool take(Bytes& message, Arrival& arrival,
                          std::optional<Deadline::Duration> timeout);
  [[noreturn]] void throw_no_message(const Deadline& deadline) const;

 private:
  void take_from_ring(Bytes& message, std::optional<Deadline::Duration> timeout);
  bool take_from_mpi(Bytes& message, Arrival& arrival, std::optional<Deadline::Duration> timeout);
};

}  // namespace rankmesh::exchange
