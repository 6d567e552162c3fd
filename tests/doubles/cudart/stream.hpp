// SPDX-License-Identifier: BSD-3-Clause
// A stream: one thread that carries out its operations in the order in which they were queued.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "capture.hpp"
#include "fake_cuda.hpp"

namespace fake {

// A point in a stream: reached when the stream has carried out that many operations.
struct Mark {
  std::shared_ptr<CUstream_st> stream;
  std::uint64_t position = 0;

  bool reached() const;
  void wait() const;
};

struct Task {
  std::vector<Mark> after;
  FakeCudaWork work;
};

}  // namespace fake

struct CUstream_st : std::enable_shared_from_this<CUstream_st> {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t number = 0;
  bool is_default = false;
  std::shared_ptr<fake::Capture> capture;  // guarded by issue_mutex()

  std::mutex mutex;
  std::condition_variable arrived, finished;
  std::deque<fake::Task> queue;
  std::uint64_t submitted = 0, completed = 0;
  long delay_us = 0;  // before each operation
  bool started = false, closing = false, closed = false;

  void push(fake::Task task);
  fake::Mark end();  // what is queued by now
  bool idle();
  void close();  // no more work will come; the thread ends when the queue is empty

 private:
  void run();
};

namespace fake {

using Stream = CUstream_st;

// Held while an operation is queued or recorded, so that all streams agree on one order of issue.
std::recursive_mutex& issue_mutex();

// The live stream behind a handle (null, cudaStreamLegacy: the default stream of the current
// device; cudaStreamPerThread: the calling thread's own one), or null.
std::shared_ptr<Stream> find_stream(cudaStream_t handle);

// True for the legacy default stream while a stream that it waits for is captured. The caller holds
// issue_mutex().
bool depends_on_capture(const Stream& stream);
// Returns the same, and spoils these captures.
bool spoils_dependent_captures(const Stream& stream);

// Waits until the queue of the stream has space for a launch. No manual of CUDA states how many
// launches fit; about 1,024 is what programs observe (see README.md), and the call that launches
// one more returns only when an earlier one has ended. FAKE_CUDA_LAUNCH_QUEUE changes the number.
void wait_for_space(cudaStream_t handle);

// Queues an operation on the stream, behind `after`, or records it where the stream is captured.
cudaError_t submit(cudaStream_t handle, FakeCudaPrepare prepare, std::vector<Mark> after = {});
// The same where the queue has space, or for a part of a launch.
cudaError_t submit_into_queue(cudaStream_t handle, FakeCudaPrepare prepare,
                              std::vector<Mark> after = {});

// Queues at once, captured or not. The caller holds issue_mutex().
void submit_now(Stream& stream, FakeCudaWork work, std::vector<Mark> after);

void wait_for_device(int device);
bool is_device_idle(int device);
// The same for a call that need not say that it waits; counts it.
void wait_implicitly(int device);
long long implicit_waits();
long live_streams();
long live_threads();
long long operations_done();

}  // namespace fake
