// SPDX-License-Identifier: BSD-3-Clause
#include "engine.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "collective.hpp"
#include "common/settings.hpp"
#include "counters.hpp"
#include "fake_cuda.hpp"
#include "faults.hpp"
#include "machine.hpp"
#include "transfer.hpp"

namespace fake {
namespace {

// A batch's place among the batches of its communicator, drawn when it is queued, not when it runs.
struct Ticket {
  std::uint64_t number = 0;
  std::uint64_t first_collective = 0;
  std::vector<std::uint64_t> messages;  // per send or receive: its number between the two ranks
};

Ticket draw_ticket(Comm& comm, const std::vector<Operation>& operations) {
  std::lock_guard lock(comm.mutex);
  Ticket ticket;
  ticket.number = comm.issued++;
  ticket.first_collective = comm.collectives;
  for (const Operation& o : operations) {
    if (o.kind == fake_send)
      ticket.messages.push_back(comm.sent[static_cast<std::size_t>(o.root)]++);
    else if (o.kind == fake_recv)
      ticket.messages.push_back(comm.received[static_cast<std::size_t>(o.root)]++);
    else
      ++comm.collectives;
  }
  return ticket;
}

void publish(Comm& comm, std::uint64_t number, const Posted& posted) {
  RankSlot& mine = comm.seat.mine();
  mine.board[number % board_rows] = posted;
  mine.posted = number + 1;
}

// NCCL compares nothing between the ranks: its kernels exchange as many bytes as each of them was
// told. Collectives that move the same bytes in the same way end with a wrong result; all others
// wait for data that never comes.
struct Difference {
  std::string text;  // empty: none
  bool is_fatal = false;
};

// Compares collective `number` with those of the ranks that have published it.
Difference difference(Comm& comm, std::uint64_t number, const Posted& posted) {
  if (broken("sequence_check")) return {};
  for (int rank = 0; rank < comm.seat.ranks; ++rank) {
    const RankSlot& other = comm.seat.segment.slot(rank);
    const std::uint64_t begun = other.posted;
    if (begun <= number || begun >= number + board_rows) continue;
    const Posted& said = other.board[number % board_rows];
    if (std::memcmp(&said, &posted, sizeof posted) == 0) continue;
    const auto bytes_of = [](int type) { return type_bytes(static_cast<ncclDataType_t>(type)); };
    return {"collective " + std::to_string(number) + " of the communicator differs: rank " +
                std::to_string(comm.seat.rank) + " issued " + describe(posted) + ", rank " +
                std::to_string(rank) + " issued " + describe(said),
            said.kind != posted.kind || said.root != posted.root || said.count != posted.count ||
                bytes_of(said.type) != bytes_of(posted.type)};
  }
  return {};
}

Outcome run_compared(Comm& comm, const Operation& o, std::uint64_t number) {
  const Posted posted = posted_form(o);
  publish(comm, number, posted);
  if (const Difference found = difference(comm, number, posted); found.is_fatal)
    return hang(comm.seat, found.text);
  Outcome done = run_collective(comm, o, number);
  if (done.ok() && !difference(comm, number, posted).text.empty())
    if (const std::size_t bytes = bytes_used(comm, o).receive; bytes > 0)
      std::memset(o.receive, 0xA5, bytes);
  if (done.code == ncclSystemError)  // the rank that came later knows why
    if (const Difference found = difference(comm, number, posted); found.is_fatal)
      done.text = found.text + ", so NCCL waits for ever";
  return done;
}

Outcome run_one_by_one(Comm& comm, const std::vector<Operation>& operations, const Ticket& ticket) {
  std::uint64_t number = ticket.first_collective;
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  std::size_t message = 0;
  for (const Operation& o : operations) {
    if (Outcome injected = injected_async_error(comm); !injected.ok()) return injected;
    if (!o.point_to_point()) {
      if (Outcome bad = run_compared(comm, o, number); !bad.ok()) return bad;
      ++number;
      continue;
    }
    const std::size_t bytes = o.count * type_bytes(o.type);
    const void* memory = o.kind == fake_send ? o.send : o.receive;
    const Label label{ticket.messages[message++], fake_send, is_registered(comm, memory)};
    if (o.kind == fake_send)
      sends.push_back({o.root, static_cast<const char*>(o.send), bytes, label});
    else
      receives.push_back({o.root, static_cast<char*>(o.receive), bytes, label});
  }
  if (sends.empty() && receives.empty()) return {};
  return exchange(comm, "Send/Recv", sends, receives);
}

// Kernels of a group run side by side, so an operation may have read a buffer before or after
// another one wrote it: the double lets nobody rely on either.
void spoil_undefined(const Comm& comm, const std::vector<Operation>& operations) {
  for (const Operation& o : operations)
    if (o.is_undefined && bytes_used(comm, o).receive > 0)
      std::memset(o.receive, 0xA5, bytes_used(comm, o).receive);
}

// A kernel's place on the device: if more kernels are queued than fit, the later ones wait for the
// end of an earlier one, whatever their streams. Without FAKE_NCCL_KERNELS all of them fit.
class Place {
 public:
  Place() {
    std::unique_lock lock(places().mutex);
    places().free.wait(lock, [] { return limit() == 0 || places().taken < limit(); });
    ++places().taken;
  }
  ~Place() {
    std::lock_guard lock(places().mutex);
    --places().taken;
    places().free.notify_one();
  }
  Place(const Place&) = delete;

 private:
  struct Places {
    std::mutex mutex;
    std::condition_variable free;
    int taken = 0;
  };
  static Places& places() {
    static Places* const made = new Places;
    return *made;
  }
  static int limit() {
    static const int given = static_cast<int>(fake::number("FAKE_NCCL_KERNELS", 0));
    return broken("kernels_compete") ? 0 : given;
  }
};

void execute(Comm& comm, const std::vector<Operation>& operations, const Ticket& ticket) {
  bool usable = false;
  {
    std::unique_lock lock(comm.mutex);
    // Batches of one communicator run in the order of issue, whatever streams they are on.
    comm.changed.wait(lock, [&] {
      return comm.done == ticket.number || broken("issue_order") || comm.gone ||
             comm.seat.cancelled();
    });
    usable = comm.error.ok() && !comm.gone && !comm.seat.cancelled();
    ++comm.running;
  }
  const Place place;
  if (usable) {
    if (const Outcome outcome = run_one_by_one(comm, operations, ticket); !outcome.ok())
      set_error(comm, outcome);
    spoil_undefined(comm, operations);
  }
  std::lock_guard lock(comm.mutex);
  --comm.running;
  ++comm.done;
  comm.changed.notify_all();
}

// Counts what captures and graphs hold of a communicator.
std::shared_ptr<void> recording_of(const CommPtr& comm) {
  {
    std::lock_guard lock(comm->mutex);
    ++comm->recordings;
  }
  return {nullptr, [comm](void*) {
            std::lock_guard lock(comm->mutex);
            --comm->recordings;
          }};
}

class OnDevice {  // as the library does it: the caller's device is there again afterwards
 public:
  explicit OnDevice(int device) : before_(fake_cuda_exchange_device(device)) {}
  ~OnDevice() { fake_cuda_exchange_device(before_); }
  OnDevice(const OnDevice&) = delete;

 private:
  int before_;
};

// Lets `later` wait for what is queued on `earlier`.
cudaError_t order(cudaStream_t earlier, cudaStream_t later) {
  cudaEvent_t event = nullptr;
  cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error == cudaSuccess) error = cudaEventRecord(event, earlier);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(later, event, 0);
  cudaEventDestroy(event);
  return error;
}

// From 2.27.3 on, an operation outside of captures on a communicator that captures or graphs hold
// asks about an event, in the capture mode of the thread (`if (!persistent &&
// comm->sharedRes->persistentRefs) status = cudaEventQuery(...)`, ncclLaunchPrepare in enqueue.cc;
// 2.27.3: line 1491, 2.28.9: 1519, 2.30.7: 1701). NCCL uses the answer only if it is
// cudaErrorNotReady, but the question may spoil a capture.
void ask_about_graphs(Comm& comm) {
  if (version() < 22703 || broken("launch_query")) return;
  {
    std::lock_guard lock(comm.mutex);
    if (comm.recordings == 0) return;
  }
  cudaEvent_t event = nullptr;
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) return;
  (void)cudaEventQuery(event);
  (void)cudaEventDestroy(event);
}

}  // namespace

Outcome launch(const CommPtr& comm, std::vector<Operation> operations) {
  const OnDevice here(comm->device);
  const cudaStream_t stream = operations.front().stream;
  std::vector<cudaStream_t> others;  // of the same batch: joined before and after
  for (const Operation& o : operations)
    if (o.stream != stream && std::find(others.begin(), others.end(), o.stream) == others.end())
      others.push_back(o.stream);
  cudaError_t error = cudaSuccess;
  for (const cudaStream_t other : others)
    if (error == cudaSuccess) error = order(other, stream);

  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &capturing);
  // 2.29: the program has promised to capture nothing, and NCCL may hang if it does (src/plugin/
  // profiler.cc, ncclProfilerStartCollApiEvent).
  if (capturing != cudaStreamCaptureStatusNone && comm->config.graph_usage_mode == 0 &&
      !broken("graph_usage_mode"))
    return failed(ncclInvalidUsage, "launch: a capture on a communicator with graphUsageMode 0");
  if (capturing == cudaStreamCaptureStatusNone) ask_about_graphs(*comm);
  const std::shared_ptr<void> recording =
      capturing == cudaStreamCaptureStatusNone ? nullptr : recording_of(comm);
  const auto shared = std::make_shared<const std::vector<Operation>>(std::move(operations));
  FakeCudaPrepare prepare = [comm, shared, recording]() -> FakeCudaWork {
    const auto ticket = std::make_shared<const Ticket>(draw_ticket(*comm, *shared));
    return [comm, shared, ticket] { execute(*comm, *shared, *ticket); };
  };
  if (error == cudaSuccess && broken("returns_before_completion")) {
    prepare()();
    return {};
  }
  if (error == cudaSuccess) error = fake_cuda_submit(stream, std::move(prepare));
  for (const cudaStream_t other : others)
    if (error == cudaSuccess) error = order(stream, other);
  if (error != cudaSuccess)
    return failed(ncclUnhandledCudaError, "launch: %s", cudaGetErrorString(error));
  comm->last_launch = ++totals().launches;
  std::atomic<long>& largest = totals().largest;
  const auto count = static_cast<long>(shared->size());
  for (long known = largest; known < count && !largest.compare_exchange_weak(known, count);) {
  }
  return {};
}

}  // namespace fake
