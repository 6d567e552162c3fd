#include "rankmesh/exchange/control_queue.hpp"

#include <algorithm>
#include <deque>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/message_ring.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/mpi/environment.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/mpi/node.hpp"
#include "rankmesh/transport/shared_segment.hpp"

namespace rankmesh::exchange {
namespace {

using detail::MessageRing;

// Above the caller's, below those of roll calls.
constexpr int first_tag = 20000;
constexpr int tags = 8192;

}  // namespace

struct ControlQueue::State {
  // A message on its way to readers on other nodes.
  struct Sending {
    Bytes message;
    std::vector<MPI_Request> requests;  // per remote reader
  };

  GroupCoordinator* group;
  RankInGroup writer;
  ControlQueueOptions options;
  bool is_writer = false;
  bool is_local = false;                // this rank reads the ring, or writes it
  std::vector<std::int64_t> local_of;   // reader's number in the ring -> rank in group
  std::vector<std::int64_t> remote_of;  // the same of readers elsewhere
  std::size_t reader = 0;               // this rank's number in the ring
  int tag = 0;
  int spins = 0;
  SharedSegment segment;
  std::optional<MessageRing> ring;
  std::uint64_t next_chunk = 0;
  std::uint64_t messages = 0;
  std::deque<Sending> sending;  // in the order of writing
  std::string broken;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    try {
      if (!sending.empty() && mpi::is_active()) collect();
    } catch (const Error& error) {
      // What is left stays lent.
    }
    if (!sending.empty())
      (void)new std::deque<Sending>{std::move(sending)};  // NOLINT: MPI reads it until it is sent
  }

  rankmesh::detail::MeshRuntime& runtime() const {
    return rankmesh::detail::GroupAccess::runtime(*group);
  }
  [[nodiscard]] std::string name(std::int64_t rank_in_group) const {
    const Rank rank = group->ranks().at(rank_in_group);
    return runtime().control->names(rank);
  }
  void check_usable() const {
    if (runtime().is_closed)
      throw ClosedError{"a control queue after close()", "close the mesh last"};
    if (!broken.empty())
      throw ClosedError{
          fmt::format("the control queue of '{}' is broken: {}", group->name(), broken),
          "make another queue of the ranks that are left"};
  }

  template <class Done, class Late>
  void wait(Done&& done, std::optional<Deadline::Duration> timeout, Late&& late) {
    if (done()) return;
    for (int i = 0; i < spins; ++i) {
      // Each look takes the line from the rank that writes it: not too often, so that it gets
      // ahead.
      for (int k = 0; k < 256; ++k) std::atomic_signal_fence(std::memory_order_seq_cst);
      if (done()) return;
    }
    const Deadline deadline{timeout.value_or(runtime().control->timeout)};
    for (int polls = 0; !done(); ++polls) {
      if (deadline.passed()) late(deadline);
      if (polls % 64 == 63) runtime().in_flight.progress();
      if (polls < 4000)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
  }

  // The writer's side.

  [[noreturn]] void throw_late(const Deadline& deadline) {
    std::vector<std::string> names;
    std::vector<Rank> ranks;
    const auto add = [&](std::int64_t rank_in_group, std::uint64_t behind) {
      names.push_back(fmt::format("{} is {} behind", name(rank_in_group), behind));
      ranks.push_back(group->ranks().at(rank_in_group));
    };
    const auto slots = static_cast<std::uint64_t>(options.slots);
    for (std::size_t r = 0; r < local_of.size(); ++r)
      if (const std::uint64_t read = ring->read_by(r); read + slots <= next_chunk)
        add(local_of[r], next_chunk - read);
    for (std::size_t r = 0; r < remote_of.size(); ++r) {
      const auto waits = [&](const Sending& s) { return s.requests[r] != MPI_REQUEST_NULL; };
      const auto behind = static_cast<std::uint64_t>(std::ranges::count_if(sending, waits));
      if (behind >= slots) add(remote_of[r], behind);
    }
    throw TimeoutError{
        fmt::format("message {} of the control queue of '{}' found no room within {} s: rank "
                    "{} chunks",
                    messages, group->name(), deadline.seconds(),
                    fmt::join(names, " chunks, rank ")),
        "look at what the late readers do; more slots let the writer run ahead further",
        std::move(ranks)};
  }

  // Forgets what all remote readers have taken.
  void collect() {
    std::vector<int> done(remote_of.size());
    for (Sending& s : sending) {
      int count = 0;
      mpi::check(MPI_Testsome(static_cast<int>(s.requests.size()), s.requests.data(), &count,
                              done.data(), MPI_STATUSES_IGNORE),
                 "MPI_Testsome");
    }
    const auto waits = [](MPI_Request request) { return request != MPI_REQUEST_NULL; };
    while (!sending.empty() && std::ranges::none_of(sending.front().requests, waits))
      sending.pop_front();
  }

  void send_to_remote(std::span<const std::byte> message) {
    Sending& s = sending.emplace_back(Sending{{message.begin(), message.end()}, {}});
    for (const std::int64_t reader_rank :
         remote_of)  // synchronous: complete once it is being received
      mpi::check(MPI_Issend(s.message.data(), static_cast<int>(s.message.size()), MPI_BYTE,
                            static_cast<int>(reader_rank), tag, group->native_mpi(),
                            &s.requests.emplace_back(MPI_REQUEST_NULL)),
                 "MPI_Issend");
  }

  void write(std::span<const std::byte> message, std::optional<Deadline::Duration> timeout) {
    const auto late = [&](const Deadline& deadline) { throw_late(deadline); };
    if (!remote_of.empty()) {
      if (message.size() > INT32_MAX)
        throw UsageError{fmt::format("a control message of {} bytes", message.size()),
                         "the queue is for small messages; broadcast the data"};
      wait(
          [&] {
            collect();
            return std::ssize(sending) < options.slots;
          },
          timeout, late);
    }
    const std::uint64_t chunks = local_of.empty() ? 0 : ring->chunks_of(message.size());
    for (std::uint64_t k = 0; k < chunks; ++k) {
      try {
        wait([&] { return ring->may_write(next_chunk); }, timeout, late);
      } catch (const TimeoutError& error) {
        if (k > 0) broken = error.message();
        throw;
      }
      if (k == 0 && !remote_of.empty()) send_to_remote(message);  // both or none
      ring->write(next_chunk++, message, k);
    }
    if (chunks == 0 && !remote_of.empty()) send_to_remote(message);
    ++messages;
  }

  // A reader's side.

  [[noreturn]] void throw_no_message(const Deadline& deadline) {
    throw TimeoutError{
        fmt::format("message {} of the control queue of '{}' did not come within {} s: its "
                    "writer is rank {}",
                    messages, group->name(), deadline.seconds(), name(writer.value())),
        "look at what the writer does",
        {group->ranks().at(writer.value())}};
  }

  [[nodiscard]] bool is_there(MPI_Message* handle, MPI_Status* status) const {
    if (is_local) return ring->is_written(next_chunk);
    int flag = 0;
    mpi::check(MPI_Improbe(static_cast<int>(writer.value()), tag, group->native_mpi(), &flag,
                           handle, status),
               "MPI_Improbe");
    return flag != 0;
  }

  void take(Bytes& message, MPI_Message* handle, const MPI_Status& status,
            std::optional<Deadline::Duration> timeout) {
    if (!is_local) {
      int bytes = 0;
      mpi::check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      auto coming = std::make_unique<Bytes>(static_cast<std::size_t>(bytes));
      MPI_Request request = MPI_REQUEST_NULL;
      mpi::check(MPI_Imrecv(coming->data(), bytes, MPI_BYTE, handle, &request), "MPI_Imrecv");
      try {
        wait(
            [&] {
              int done = 0;
              mpi::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
              return done != 0;
            },
            timeout, [&](const Deadline& deadline) { throw_no_message(deadline); });
      } catch (const TimeoutError& error) {
        broken = error.message();
        (void)coming.release();  // NOLINT: MPI may still write there
        throw;
      }
      message = std::move(*coming);
    } else {
      message.resize(ring->message_bytes(next_chunk));
      const std::uint64_t chunks = ring->chunks_of(message.size());
      for (std::uint64_t k = 0; k < chunks; ++k) {
        try {
          wait([&] { return ring->is_written(next_chunk); }, timeout,
               [&](const Deadline& deadline) { throw_no_message(deadline); });
        } catch (const TimeoutError& error) {
          broken = error.message();  // in the middle of a message
          throw;
        }
        ring->read(next_chunk++, message, k, reader);
      }
    }
    ++messages;
  }
};

ControlQueue::ControlQueue(GroupCoordinator& group, RankInGroup writer, ControlQueueOptions options)
    : state_{std::make_unique<State>()} {
  if (writer.value() < 0 || writer.value() >= group.size())
    throw UsageError{
        fmt::format("the writer of a control queue of '{}' is {}", group.name(), writer.value()),
        fmt::format("ranks in this group run from 0 to {}", group.size() - 1)};
  if (options.slots < 1 || options.slot_bytes < 1)
    throw UsageError{
        fmt::format("a control queue of {} slots of {} bytes", options.slots, options.slot_bytes),
        "give 1 or more of both"};
  State& state = *state_;
  state.group = &group;
  state.writer = writer;
  state.options = options;
  state.is_writer = group.rank_in_group() == writer;

  // All mean the same queue, and have one tag for it; a group's members have made different numbers
  // so far.
  rankmesh::detail::ControlPlane& control = *state.runtime().control;
  const auto digest = static_cast<std::int64_t>(
      hash_bytes(fmt::format("{} {} {}", writer.value(), options.slots, options.slot_bytes)).low >>
      2);
  std::vector<std::int64_t> agreed{digest, -digest, control.queues};
  group.all_reduce_async(agreed, ReduceOp::max).wait();  // polled: the calls below wait for ever
  if (agreed[0] != -agreed[1])
    throw MismatchError{
        fmt::format("the members of '{}' open different control queues", group.name()),
        "give the same writer and the same options on every rank", true};
  control.queues = agreed[2] + 1;
  state.tag = first_tag + static_cast<int>(agreed[2] % tags);
  if (group.size() == 1) return;

  const mpi::CommunicatorView comm{group.native_mpi()};
  const Placement nodes = mpi::discover_nodes(comm);  // by rank in group
  for (std::int64_t r = 0; r < group.size(); ++r) {
    if (r == writer.value()) continue;
    const bool is_near = nodes.node(r) == nodes.node(writer.value());
    if (group.rank_in_group() == RankInGroup{r}) state.reader = state.local_of.size();
    (is_near ? state.local_of : state.remote_of).push_back(r);
  }
  state.is_local = nodes.node(group.rank_in_group().value()) == nodes.node(writer.value());
  const auto near = static_cast<unsigned>(state.local_of.size() + 1);
  state.spins = near > std::thread::hardware_concurrency() ? 0 : 100;

  std::string failure;
  const bool has_ring = state.is_local && !state.local_of.empty();
  mpi::Communicator node = mpi::split(comm, has_ring ? 0 : MPI_UNDEFINED, comm.rank());
  if (has_ring) {
    WaitPoint step{
        hash_bytes(fmt::format("queue {} of {}", state.tag, group.ranks().to_string())).low,
        fmt::format("the control queue of '{}'", group.name()),
        {static_cast<int>(group.ranks().at(writer.value()).value())}};
    for (const std::int64_t r : state.local_of)
      step.members.push_back(static_cast<int>(group.ranks().at(r).value()));
    const auto slots = static_cast<std::size_t>(options.slots);
    const auto slot_bytes = (static_cast<std::size_t>(options.slot_bytes) + detail::ring_line - 1) /
                            detail::ring_line * detail::ring_line;
    try {
      state.segment =
          SharedSegment{node.view(), MessageRing::bytes(state.local_of.size(), slots, slot_bytes),
                        control.monitor, step, control.deadline()};
      state.ring.emplace(state.segment.data(), state.local_of.size(), slots, slot_bytes);
    } catch (const SharedMemoryError& error) {
      failure = error.message();
    }
    node.free();
  }
  std::vector<std::int32_t> failed{failure.empty() ? 0 : 1};
  group.all_reduce_async(failed, ReduceOp::max).wait();
  if (failed[0] != 0)
    throw MismatchError{
        fmt::format("the control queue of '{}' has no shared memory on rank {}'s node{}{}",
                    group.name(), group.ranks().at(writer.value()).value(),
                    failure.empty() ? "" : ": ", failure),
        "look at the limits on memory and at /dev/shm", false};
}

ControlQueue::~ControlQueue() = default;
ControlQueue::ControlQueue(ControlQueue&&) noexcept = default;
ControlQueue& ControlQueue::operator=(ControlQueue&&) noexcept = default;

bool ControlQueue::is_writer() const noexcept { return state_->is_writer; }
std::int64_t ControlQueue::local_readers() const noexcept { return std::ssize(state_->local_of); }
std::int64_t ControlQueue::remote_readers() const noexcept { return std::ssize(state_->remote_of); }

void ControlQueue::write(std::span<const std::byte> message,
                         std::optional<Deadline::Duration> timeout) {
  state_->check_usable();
  if (!state_->is_writer)
    throw UsageError{
        fmt::format("write on a reader of the control queue of '{}'", state_->group->name()),
        fmt::format("its writer is rank {}", state_->name(state_->writer.value()))};
  state_->write(message, timeout);
}

Bytes ControlQueue::read(std::optional<Deadline::Duration> timeout) {
  Bytes message;
  read(message, timeout);
  return message;
}

void ControlQueue::read(Bytes& message, std::optional<Deadline::Duration> timeout) {
  State& state = *state_;
  state.check_usable();
  if (state.is_writer)
    throw UsageError{
        fmt::format("read on the writer of the control queue of '{}'", state.group->name()),
        "the writer has what it wrote"};
  MPI_Message handle = MPI_MESSAGE_NULL;
  MPI_Status status{};
  state.wait([&] { return state.is_there(&handle, &status); }, timeout,
             [&](const Deadline& deadline) { state.throw_no_message(deadline); });
  state.take(message, &handle, status, timeout);
}

bool ControlQueue::try_read(Bytes& message) {
  State& state = *state_;
  state.check_usable();
  if (state.is_writer)
    throw UsageError{
        fmt::format("read on the writer of the control queue of '{}'", state.group->name()),
        "the writer has what it wrote"};
  MPI_Message handle = MPI_MESSAGE_NULL;
  MPI_Status status{};
  if (!state.is_there(&handle, &status)) return false;
  state.take(message, &handle, status, {});
  return true;
}

}  // namespace rankmesh::exchange
