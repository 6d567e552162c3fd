// SPDX-License-Identifier: BSD-3-Clause
#include "event.hpp"

#include <chrono>
#include <map>

#include "common/settings.hpp"
#include "device.hpp"
#include "error.hpp"
#include "pool.hpp"

using namespace fake;

namespace {

struct Events {
  std::mutex mutex;
  std::map<cudaEvent_t, std::shared_ptr<CUevent_st>> live;
};

Events& events() {
  static Events* const made = new Events;
  return *made;
}

std::shared_ptr<CUevent_st> find_event(cudaEvent_t handle) {
  std::lock_guard lock(events().mutex);
  const auto found = events().live.find(handle);
  return found == events().live.end() ? nullptr : found->second;
}

double now_in_milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

}  // namespace

long fake::live_events() {
  std::lock_guard lock(events().mutex);
  return static_cast<long>(events().live.size());
}

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (handle == nullptr) return record(cudaErrorInvalidValue);
  use_context();
  const auto event = std::make_shared<CUevent_st>();
  event->device = current_device();
  event->flags = flags;
  std::lock_guard lock(events().mutex);
  events().live[event.get()] = event;
  *handle = event.get();
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) {
  return cudaEventCreateWithFlags(handle, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  std::lock_guard lock(events().mutex);
  return events().live.erase(handle) == 1 ? cudaSuccess : record(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  std::lock_guard lock(issue_mutex());
  const auto event = find_event(handle);
  const auto stream = find_stream(stream_handle);
  if (!event || !stream) return record(cudaErrorInvalidResourceHandle);
  if (event->device != stream->device) return record(wrong_device());
  event->recorded = true;
  if (stream->capture) {
    event->capture = stream->capture;
    event->covered = stream->capture->covers[stream.get()];
    return cudaSuccess;
  }
  event->capture.reset();
  event->milliseconds = std::make_shared<std::atomic<double>>(0.0);
  submit_now(*stream, [time = event->milliseconds] { *time = now_in_milliseconds(); }, {});
  event->mark = stream->end();
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  const auto event = find_event(handle);
  if (!event) return record(cudaErrorInvalidResourceHandle);
  use_context();
  if (event->capture) return record(cudaErrorCapturedEvent);
  if (capture_forbids_queries()) return record(cudaErrorStreamCaptureUnsupported);
  if (device_fault() != cudaSuccess) return record(device_fault());
  if (broken("event_query")) return cudaSuccess;
  return event->mark.reached() ? cudaSuccess : not_ready();
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  const auto event = find_event(handle);
  if (!event) return record(cudaErrorInvalidResourceHandle);
  if (event->capture) return record(cudaErrorCapturedEvent);
  if (capture_forbids_queries()) return record(cudaErrorStreamCaptureUnsupported);
  event->mark.wait();
  shrink_pools();
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle,
                                 cudaEvent_t end_handle) {
  const auto start = find_event(start_handle);
  const auto end = find_event(end_handle);
  if (!start || !end || !start->recorded || !end->recorded)
    return record(cudaErrorInvalidResourceHandle);
  if ((start->flags | end->flags) & cudaEventDisableTiming)
    return record(cudaErrorInvalidResourceHandle);
  if (start->capture || end->capture) return record(cudaErrorCapturedEvent);
  if (milliseconds == nullptr) return record(cudaErrorInvalidValue);
  if (!start->mark.reached() || !end->mark.reached()) return record(cudaErrorNotReady);
  *milliseconds = static_cast<float>(*end->milliseconds - *start->milliseconds);
  return cudaSuccess;
}

// Waiting for an event of a captured stream draws this stream into the capture.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned) {
  std::lock_guard lock(issue_mutex());
  const auto stream = find_stream(stream_handle);
  const auto event = find_event(handle);
  if (!stream || !event) return record(cudaErrorInvalidResourceHandle);
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture)
      return record(cudaErrorStreamCaptureMerge);
    stream->capture = event->capture;
    stream->capture->join(stream.get(), event->covered);
    return cudaSuccess;
  }
  if (stream->capture) {  // in a capture, work outside it cannot be waited for
    if (event->mark.reached()) return cudaSuccess;
    stream->capture->invalid = true;
    return record(cudaErrorStreamCaptureIsolation);
  }
  if (!event->mark.reached() && !broken("wait_event")) submit_now(*stream, {}, {event->mark});
  return cudaSuccess;
}

}  // extern "C"
