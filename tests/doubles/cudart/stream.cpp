// SPDX-License-Identifier: BSD-3-Clause
#include "stream.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "common/settings.hpp"
#include "device.hpp"
#include "error.hpp"

namespace fake {
namespace {

struct Streams {
  std::recursive_mutex issue;
  std::mutex mutex;
  std::map<Stream*, std::shared_ptr<Stream>> live;
  std::map<int, std::shared_ptr<Stream>> defaults;  // per device
  std::vector<std::weak_ptr<Stream>> per_thread;    // of all threads and devices
  std::uint64_t next_number = 1;
  std::atomic<long> threads{0};
  std::atomic<long long> operations{0};
  std::atomic<long long> implicit_waits{0};
};

Streams& streams() {
  static Streams* const made =
      new Streams;  // never destroyed: worker threads may outlive static objects
  return *made;
}

bool is_default(cudaStream_t handle) { return handle == nullptr || handle == cudaStreamLegacy; }

// The default streams of one thread, by device. When the thread ends, what they hold still runs.
struct OwnStreams {
  std::map<int, std::shared_ptr<Stream>> by_device;
  ~OwnStreams() {
    for (const auto& [device, stream] : by_device) stream->close();
  }
};

// "CUDA Runtime API", stream synchronization behavior: each thread has one, and it waits for the
// legacy default stream. A handle that one thread passes to another means the other's stream.
std::shared_ptr<Stream> own_stream(int device) {
  thread_local OwnStreams own;
  auto& stream = own.by_device[device];
  if (!stream) {
    stream = std::make_shared<Stream>();
    stream->device = device;
    std::lock_guard lock(streams().mutex);
    stream->number = streams().next_number++;
    streams().per_thread.push_back(stream);
  }
  return stream;
}

std::vector<std::shared_ptr<Stream>> streams_of(int device) {
  std::lock_guard lock(streams().mutex);
  std::vector<std::shared_ptr<Stream>> found;
  for (const auto& [handle, stream] : streams().live)
    if (stream->device == device) found.push_back(stream);
  for (const auto& own : streams().per_thread)
    if (const auto stream = own.lock(); stream && stream->device == device) found.push_back(stream);
  if (const auto stream = streams().defaults.find(device); stream != streams().defaults.end())
    found.push_back(stream->second);
  return found;
}

// The default stream waits for every blocking stream of its device, and they for it.
void add_implicit_order(Stream& stream, std::vector<Mark>& after) {
  if (stream.flags & cudaStreamNonBlocking) return;
  if (broken("default_stream_order")) return;
  for (const auto& other : streams_of(stream.device))
    if (other.get() != &stream && stream.is_default != other->is_default &&
        !(other->flags & cudaStreamNonBlocking))
      if (!other->idle()) after.push_back(other->end());
}

}  // namespace

std::recursive_mutex& issue_mutex() { return streams().issue; }

bool Mark::reached() const {
  if (!stream) return true;
  std::lock_guard lock(stream->mutex);
  return stream->completed >= position;
}

void Mark::wait() const {
  if (!stream) return;
  std::unique_lock lock(stream->mutex);
  stream->finished.wait(lock, [&] { return stream->completed >= position; });
}

std::shared_ptr<Stream> find_stream(cudaStream_t handle) {
  if (handle == cudaStreamPerThread && !broken("per_thread_stream"))
    return own_stream(current_device());
  std::lock_guard lock(streams().mutex);
  if (is_default(handle) || handle == cudaStreamPerThread) {
    auto& stream = streams().defaults[current_device()];
    if (!stream) {
      stream = std::make_shared<Stream>();
      stream->device = current_device();
      stream->is_default = true;
    }
    return stream;
  }
  if (const auto found = streams().live.find(handle); found != streams().live.end())
    return found->second;
  for (const auto& own : streams().per_thread)  // by its address, as captures know it
    if (auto stream = own.lock(); stream && stream.get() == handle) return stream;
  return nullptr;
}

// "CUDA Programming Guide", prohibited and unhandled operations of stream capture: the legacy
// default stream depends on every stream that is not non-blocking, so it cannot be used while one
// of these is captured.
bool depends_on_capture(const Stream& stream) {
  if (!stream.is_default || broken("implicit_capture")) return false;
  for (const auto& other : streams_of(stream.device))
    if (other->capture && !(other->flags & cudaStreamNonBlocking)) return true;
  return false;
}

bool spoils_dependent_captures(const Stream& stream) {
  if (!depends_on_capture(stream)) return false;
  for (const auto& other : streams_of(stream.device))
    if (other->capture && !(other->flags & cudaStreamNonBlocking)) other->capture->invalid = true;
  return true;
}

void submit_now(Stream& stream, FakeCudaWork work, std::vector<Mark> after) {
  add_implicit_order(stream, after);
  stream.push({std::move(after), std::move(work)});
  if (broken("async_streams")) stream.end().wait();
}

void wait_for_space(cudaStream_t handle) {
  const auto stream = find_stream(handle);
  static const auto depth = static_cast<std::uint64_t>(number("FAKE_CUDA_LAUNCH_QUEUE", 1024));
  if (!stream || depth == 0 || broken("launch_queue")) return;
  {
    std::lock_guard lock(issue_mutex());
    if (stream->capture) return;
  }
  std::unique_lock lock(stream->mutex);
  stream->finished.wait(lock, [&] { return stream->submitted - stream->completed < depth; });
}

cudaError_t submit(cudaStream_t handle, FakeCudaPrepare prepare, std::vector<Mark> after) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return error;
  wait_for_space(handle);
  return submit_into_queue(handle, std::move(prepare), std::move(after));
}

cudaError_t submit_into_queue(cudaStream_t handle, FakeCudaPrepare prepare,
                              std::vector<Mark> after) {
  std::lock_guard lock(issue_mutex());
  const auto stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (stream->device != current_device() && !broken("stream_device")) return wrong_device();
  if (spoils_dependent_captures(*stream)) return cudaErrorStreamCaptureImplicit;
  if (stream->capture) {
    if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    stream->capture->add(stream.get(), std::move(prepare));
    return cudaSuccess;
  }
  submit_now(*stream, prepare(), std::move(after));
  return cudaSuccess;
}

void wait_for_device(int device) {
  for (const auto& stream : streams_of(device)) stream->end().wait();
}

bool is_device_idle(int device) {
  const auto streams = streams_of(device);
  return std::all_of(streams.begin(), streams.end(), [](const auto& s) { return s->idle(); });
}

void wait_implicitly(int device) {
  ++streams().implicit_waits;
  wait_for_device(device);
}

long long implicit_waits() { return streams().implicit_waits; }

long live_streams() {
  std::lock_guard lock(streams().mutex);
  return static_cast<long>(streams().live.size());
}

long live_threads() { return streams().threads; }
long long operations_done() { return streams().operations; }

}  // namespace fake

using namespace fake;

void Stream::push(Task task) {
  std::lock_guard lock(mutex);
  queue.push_back(std::move(task));
  ++submitted;
  if (!started) {
    started = true;
    delay_us = static_cast<long>(fake::number("FAKE_CUDA_DELAY_US", 0));
    ++streams().threads;
    std::thread([self = shared_from_this()] { self->run(); }).detach();
  }
  arrived.notify_one();
}

Mark Stream::end() {
  std::lock_guard lock(mutex);
  return {shared_from_this(), submitted};
}

bool Stream::idle() {
  std::lock_guard lock(mutex);
  return completed == submitted;
}

void Stream::run() {
  const bool fifo = !broken("fifo");
  const auto delay = std::chrono::microseconds(delay_us);
  std::unique_lock lock(mutex);
  while (true) {
    arrived.wait(lock, [&] { return !queue.empty() || closing; });
    if (queue.empty()) break;
    Task task = fifo ? std::move(queue.front()) : std::move(queue.back());
    if (fifo)
      queue.pop_front();
    else
      queue.pop_back();
    lock.unlock();
    for (const Mark& mark : task.after) mark.wait();
    if (delay.count() > 0 && !broken("delay")) std::this_thread::sleep_for(delay);
    if (task.work) task.work();
    task = {};  // what the work holds is let go before it counts as done
    ++streams().operations;
    lock.lock();
    ++completed;
    finished.notify_all();
  }
  --streams().threads;
  closed = true;
  finished.notify_all();
}

void Stream::close() {
  std::unique_lock lock(mutex);
  closing = true;
  arrived.notify_all();
  // An idle stream's thread is gone when this returns, so that counts are exact; a busy one
  // goes on by itself, as the real call does not wait either.
  if (started && completed == submitted) finished.wait(lock, [&] { return closed; });
}

extern "C" {

cudaError_t fake_cuda_submit(cudaStream_t stream, FakeCudaPrepare prepare) {
  return record(submit(stream, std::move(prepare)));
}

cudaError_t fake_cuda_enqueue(cudaStream_t stream, FakeCudaWork work) {
  return record(submit(stream, [work = std::move(work)] { return work; }));
}

int fake_cuda_stream_device(cudaStream_t handle) {
  const auto stream = find_stream(handle);
  return stream ? stream->device : -1;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int priority) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (handle == nullptr || flags > cudaStreamNonBlocking) return record(cudaErrorInvalidValue);
  use_context();
  const auto stream = std::make_shared<Stream>();
  stream->device = current_device();
  stream->flags = flags;
  stream->priority = priority > 0 ? 0 : (priority < -5 ? -5 : priority);  // clamped to the range
  std::lock_guard lock(streams().mutex);
  stream->number = streams().next_number++;
  streams().live[stream.get()] = stream;
  *handle = stream.get();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return cudaStreamCreateWithPriority(handle, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  return cudaStreamCreateWithPriority(handle, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  if (is_default(handle) || handle == cudaStreamPerThread)
    return record(cudaErrorInvalidResourceHandle);
  std::shared_ptr<Stream> stream;
  {
    std::lock_guard issue(issue_mutex());
    std::lock_guard lock(streams().mutex);
    const auto found = streams().live.find(handle);
    if (found == streams().live.end()) return record(cudaErrorInvalidResourceHandle);
    stream = found->second;
    if (stream->capture) stream->capture->invalid = true;
    streams().live.erase(found);
  }
  stream->close();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return record(usable());
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  if (priority == nullptr) return record(cudaErrorInvalidValue);
  *priority = stream->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  if (flags == nullptr) return record(cudaErrorInvalidValue);
  *flags = stream->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  if (device == nullptr) return record(cudaErrorInvalidValue);
  *device = stream->device;
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  if (id == nullptr) return record(cudaErrorInvalidValue);
  *id = stream->number;
  return cudaSuccess;
}

}  // extern "C"
