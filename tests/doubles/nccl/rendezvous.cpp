// SPDX-License-Identifier: BSD-3-Clause
#include "rendezvous.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "common/settings.hpp"
#include "counters.hpp"
#include "machine.hpp"
#include "socket.hpp"

namespace fake {
namespace {

constexpr unsigned request_magic = 0x72646265;
constexpr char id_magic[8] = "fakeid1";
constexpr int after_failure_ms =
    1000;  // so long does a root go on telling latecomers what went wrong

std::atomic<long> roots{0};

struct IdContent {
  char magic[8];
  char from_environment;
  char name[88];
};
static_assert(sizeof(IdContent) <= sizeof(ncclUniqueId));

IdContent content(const ncclUniqueId& id) {
  IdContent out;
  std::memcpy(&out, id.internal, sizeof out);
  out.name[sizeof out.name - 1] = '\0';
  return out;
}

// What the root knows about the ranks that have connected.
class Root {
 public:
  explicit Root(int listener) : listener_(listener) {}
  ~Root() {
    if (listener_ >= 0) close(listener_);
    if (descriptor_ >= 0) close(descriptor_);
  }

  void serve() {
    pollfd watched{listener_, POLLIN, 0};
    while (expected_ == 0 || came_ < expected_ || broken("root_ends")) {
      if (poll(&watched, 1, failure_.ok() ? -1 : after_failure_ms) == 0) return;
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      Request request;
      if (same_user(connection) && receive_request(connection, request) &&
          request.magic == request_magic)
        answer(connection, request);
      close(connection);
    }
  }

 private:
  void answer(int connection, const Request& request) {
    ++came_;
    if (failure_.ok()) failure_ = check(request);
    if (!failure_.ok() && segment_.ok())
      segment_.refuse(request.rank, failure_);  // for ranks that already wait
    // No rank may connect any more once the last one knows that all have connected.
    if (came_ == expected_ && !broken("root_ends")) close(std::exchange(listener_, -1));
    Answer answer{failure_.code, {}};
    std::strncpy(answer.text, failure_.text.c_str(), sizeof answer.text - 1);
    send_answer(connection, answer, failure_.ok() && request.wants_segment != 0 ? descriptor_ : -1);
  }

  Outcome check(const Request& request) {
    if (expected_ == 0) {
      expected_ = request.check_ins;
      ranks_ = request.ranks;
    }
    if ((request.ranks != ranks_ || request.check_ins != expected_) && !broken("rank_count"))
      return failed(ncclInvalidUsage, "Bootstrap : rank %d says there are %d ranks, others say %d",
                    request.rank, request.ranks, ranks_);
    if (!seen_.insert(request.rank).second && !broken("duplicate_rank"))
      return failed(ncclInvalidUsage, "Bootstrap : rank %d of %d has come twice", request.rank,
                    request.ranks);
    if (request.wants_segment != 0 && descriptor_ < 0) {
      descriptor_ = Segment::create(ranks_);
      segment_ = Segment(descriptor_, ranks_);
      if (!segment_.ok())
        return failed(ncclSystemError, "Bootstrap : no shared memory: %s", std::strerror(errno));
      segment_.head().ranks = static_cast<std::uint32_t>(ranks_);
    }
    return {};
  }

  int listener_;
  int descriptor_ = -1;
  int expected_ = 0;
  int came_ = 0;
  int ranks_ = 0;
  std::set<int> seen_;
  Segment segment_;
  Outcome failure_;
};

Outcome start_root(const char* name) {
  const int listener = listen_at(name);
  if (listener < 0)
    return failed(ncclSystemError, "Bootstrap : cannot listen for this ID: %s",
                  std::strerror(errno));
  ++roots;
  count_thread(1);
  std::thread([listener] {
    Root(listener).serve();
    --roots;
    count_thread(-1);
  }).detach();
  return {};
}

// Connects, sends this rank, and receives the segment (or -1) as `descriptor`.
Outcome check_in(Seat& seat, const ncclUniqueId& id, int check_ins, bool wants_segment,
                 int& descriptor) {
  const IdContent target = content(id);
  if (std::memcmp(target.magic, id_magic, sizeof id_magic) != 0)
    return failed(ncclInvalidArgument, "Bootstrap : these bytes are not a unique ID");
  const auto start = std::chrono::steady_clock::now();
  int connection = connect_to(target.name);
  while (connection < 0) {  // the root of an ID from the environment may come later than we do
    if (target.from_environment == 0)
      return failed(
          ncclRemoteError,
          "Bootstrap : nobody listens for this ID: it was used before, or its maker is gone");
    if (seat.gives_up()) return failed(ncclInternalError, "Bootstrap : this rank aborted");
    if (std::chrono::steady_clock::now() - start > std::chrono::duration<double>(seat.limit))
      return failed(ncclSystemError, "Bootstrap : rank %d waited %.1f s for rank 0", seat.rank,
                    seat.limit);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    connection = connect_to(target.name);
  }
  Answer answer{};
  bool heard =
      same_user(connection) &&
      send_request(connection, {request_magic, seat.ranks, seat.rank, check_ins, wants_segment});
  pollfd watched{connection, POLLIN, 0};
  for (int turn = 0; heard && poll(&watched, 1, 50) == 0; ++turn)
    heard = !seat.gives_up() && turn * 0.05 < seat.limit;
  heard = heard && receive_answer(connection, answer, descriptor);
  close(connection);
  if (!heard)
    return failed(ncclRemoteError, "Bootstrap : rank %d got no answer from the root", seat.rank);
  return {static_cast<ncclResult_t>(answer.code), answer.text};
}

std::uint64_t hash_ids(const ncclUniqueId* ids, int count) {
  std::uint64_t hash = hash_start;
  for (int i = 0; i < count; ++i) hash = hash_bytes(ids[i].internal, sizeof ids[i].internal, hash);
  return hash;
}

// The same device on the same host twice, as the real library refuses it.
Outcome check_devices(const Seat& seat) {
  if (broken("duplicate_gpu") || several_ranks_per_device_allowed()) return {};
  for (int a = 0; a < seat.ranks; ++a) {
    for (int b = a + 1; b < seat.ranks; ++b) {
      const RankSlot &one = seat.segment.slot(a), &other = seat.segment.slot(b);
      if (one.host == other.host && std::strcmp(one.bus, other.bus) == 0)
        return failed(ncclInvalidUsage,
                      "Duplicate GPU detected : rank %d and rank %d both on CUDA device %s", a, b,
                      one.bus);
    }
  }
  return {};
}

}  // namespace

long live_roots() { return roots; }

bool id_is_from_environment(const ncclUniqueId& id) { return content(id).from_environment != 0; }

Outcome make_unique_id(ncclUniqueId& id, IdKind kind) {
  IdContent made{};
  std::memcpy(made.magic, id_magic, sizeof id_magic);
  if (const auto fixed = setting("NCCL_COMM_ID");
      kind == IdKind::of_user && fixed && !broken("comm_id")) {
    made.from_environment = 1;
    std::snprintf(made.name, sizeof made.name, "rankmesh-fake-nccl-%u-at-%s", geteuid(),
                  fixed->c_str());
  } else {
    std::random_device random;
    std::snprintf(made.name, sizeof made.name, "rankmesh-fake-nccl-%08x%08x%08x%08x", random(),
                  random(), random(), random());
    if (const Outcome started = start_root(made.name); !started.ok()) return started;
  }
  id = {};
  std::memcpy(id.internal, &made, sizeof made);
  return {};
}

Outcome take_seat(Seat& seat, const ncclUniqueId* ids, int count, int device) {
  if (id_is_from_environment(ids[0])) {
    count = 1;
    if (seat.rank == 0)
      if (const Outcome started = start_root(content(ids[0]).name); !started.ok()) return started;
  }
  int descriptor = -1;
  const auto block_of = [&](int rank) { return static_cast<long>(rank) * count / seat.ranks; };
  if (const long block = block_of(seat.rank); block > 0 && !broken("several_ids")) {
    int members = 0;
    for (int rank = 0; rank < seat.ranks; ++rank) members += block_of(rank) == block;
    if (Outcome done = check_in(seat, ids[block], members, false, descriptor); !done.ok())
      return done;
  }
  if (Outcome done = check_in(seat, ids[0], seat.ranks, true, descriptor); !done.ok()) return done;
  if (descriptor < 0) return failed(ncclInternalError, "Bootstrap : the root sent no segment");
  seat.segment = Segment(descriptor, seat.ranks);
  close(descriptor);
  if (!seat.segment.ok())
    return failed(ncclSystemError, "Bootstrap : cannot map the segment: %s", std::strerror(errno));

  RankSlot& mine = seat.mine();
  mine.process = getpid();
  mine.process_space = process_space();
  mine.host = host_hash();
  mine.ids = hash_ids(ids, count);
  std::strncpy(mine.bus, device_bus(device).c_str(), sizeof mine.bus - 1);
  mine.capability = device_capability(device);
  mine.attached = 1;
  seat.segment.ring_all();
  const auto missing = [&] {
    std::vector<int> out;
    for (int rank = 0; rank < seat.ranks; ++rank)
      if (seat.segment.slot(rank).attached == 0) out.push_back(rank);
    return out;
  };
  if (Outcome done = wait_for(
          seat, "Bootstrap", [&] { return missing().empty(); }, missing);
      !done.ok())
    return done;
  for (int rank = 0; rank < seat.ranks; ++rank)
    if (seat.segment.slot(rank).ids != mine.ids)
      return failed(ncclInvalidUsage,
                    "Bootstrap : rank %d and rank %d were given different lists of IDs", seat.rank,
                    rank);
  return check_devices(seat);
}

}  // namespace fake
