// SPDX-License-Identifier: BSD-3-Clause
// Stream capture and graphs: the operations are kept in the order of the calls and queued again, in
// that order, on the stream that the graph is launched on.
#include <algorithm>
#include <atomic>
#include <memory>
#include <set>

#include "common/settings.hpp"
#include "counters.hpp"
#include "device.hpp"
#include "error.hpp"
#include "stream.hpp"

// Counted by hand, as CUDA's are.
struct CUuserObject_st {
  void* data;
  cudaHostFn_t destroy;
  std::atomic<unsigned> references;
  void release(unsigned count) {
    if (references.fetch_sub(count) != count) return;
    destroy(data);
    delete this;
  }
};

// A graph's references to one object, let go with the last graph that came of it.
using RetainedObject = std::shared_ptr<CUuserObject_st>;

struct CUgraph_st {
  std::vector<FakeCudaPrepare> operations;
  std::vector<RetainedObject> objects;
  std::map<void*, std::shared_ptr<void>> memory;  // that the graph allocates
  std::set<void*> unfreed;                        // of this, what it does not free
};

struct CUgraphExec_st {
  CUgraph_st graph;
  bool has_run = false;
};

using namespace fake;

namespace {

struct Graphs {
  std::mutex mutex;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> execs;
  std::set<std::shared_ptr<Capture>> captures;  // guarded by issue_mutex()
  std::set<void*> memory;                       // of all graphs
  std::uint64_t next_number = 1;
};

Graphs& all() {
  static Graphs* const made = new Graphs;
  return *made;
}

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

// Ends a capture: its streams work normally again.
void leave(const std::shared_ptr<Capture>& capture) {
  for (const auto& [stream, covered] : capture->covers)
    if (const auto live = find_stream(stream); live && live->capture == capture)
      live->capture.reset();
  all().captures.erase(capture);
}

}  // namespace

namespace fake {

void Capture::add(CUstream_st* stream, FakeCudaPrepare prepare) {
  if (!broken("capture_records")) operations.push_back(std::move(prepare));
  covers[stream][stream] = ++recorded[stream];
}

void Capture::join(CUstream_st* stream, const Coverage& before) {
  for (const auto& [other, position] : before) {
    auto& mine = covers[stream][other];
    mine = std::max(mine, position);
  }
}

bool Capture::all_joined() const {
  const Coverage& reached = covers.at(origin);
  return std::all_of(recorded.begin(), recorded.end(), [&](const auto& entry) {
    const auto found = reached.find(entry.first);
    return found != reached.end() && found->second >= entry.second;
  });
}

void add_graph_memory(Capture& capture, void* pointer, std::shared_ptr<void> memory) {
  std::lock_guard lock(all().mutex);
  all().memory.insert(pointer);
  capture.graph->unfreed.insert(pointer);
  capture.graph->memory[pointer] = {pointer, [memory = std::move(memory)](void* given_back) {
                                      std::lock_guard own(all().mutex);
                                      all().memory.erase(given_back);
                                    }};
}

bool free_graph_memory(Capture& capture, void* pointer) {
  std::lock_guard lock(all().mutex);
  capture.graph->unfreed.erase(pointer);
  return all().memory.count(pointer) != 0;
}

bool capture_forbids_unsafe_calls() {
  if (thread_mode == cudaStreamCaptureModeRelaxed || broken("capture_guard")) return false;
  std::lock_guard lock(issue_mutex());
  bool forbidden = false;
  for (const auto& capture : all().captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool applies = own ? capture->mode != cudaStreamCaptureModeRelaxed
                             : capture->mode == cudaStreamCaptureModeGlobal &&
                                   thread_mode == cudaStreamCaptureModeGlobal;
    if (applies) capture->invalid = forbidden = true;
  }
  return forbidden;
}

bool capture_forbids_device_wait(int device) {
  if (broken("device_guard")) return false;
  std::lock_guard lock(issue_mutex());
  bool forbidden = false;
  for (const auto& capture : all().captures)
    if (const auto origin = find_stream(capture->origin); origin && origin->device == device)
      capture->invalid = forbidden = true;
  return forbidden;
}

bool capture_forbids_queries() { return !broken("query_guard") && capture_forbids_unsafe_calls(); }

GraphCounters count_graphs() {
  std::lock_guard lock(all().mutex);
  return {static_cast<long>(all().graphs.size()), static_cast<long>(all().execs.size())};
}

}  // namespace fake

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  std::lock_guard lock(issue_mutex());
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  if (stream->is_default) return record(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return record(cudaErrorIllegalState);
  const auto capture = std::make_shared<Capture>();
  capture->graph = new CUgraph_st;
  capture->origin = stream.get();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->number = all().next_number++;
  capture->covers[stream.get()];
  stream->capture = capture;
  all().captures.insert(capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  if (graph == nullptr) return record(cudaErrorInvalidValue);
  std::lock_guard lock(issue_mutex());
  *graph = nullptr;
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  if (!stream->capture) return record(cudaErrorIllegalState);
  const auto capture = stream->capture;
  if (capture->origin != stream.get()) return record(cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return record(cudaErrorStreamCaptureWrongThread);
  leave(capture);
  std::unique_ptr<CUgraph_st> made{capture->graph};
  if (capture->invalid) return record(cudaErrorStreamCaptureInvalidated);
  if (!capture->all_joined() && !broken("capture_join"))
    return record(cudaErrorStreamCaptureUnjoined);
  made->operations = capture->operations;
  *graph = made.release();
  std::lock_guard own(all().mutex);
  all().graphs.insert(*graph);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* number, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  if (status == nullptr) return record(cudaErrorInvalidValue);
  std::lock_guard lock(issue_mutex());
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  if (depends_on_capture(*stream)) return record(cudaErrorStreamCaptureImplicit);
  *status = !stream->capture           ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  if (number != nullptr) *number = stream->capture ? stream->capture->number : 0;
  if (graph != nullptr) *graph = stream->capture ? stream->capture->graph : nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr) return record(cudaErrorInvalidValue);
  use_context();  // meta-pytorch/torchcomms#777
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  std::lock_guard lock(all().mutex);
  if (exec == nullptr || all().graphs.count(graph) == 0) return record(cudaErrorInvalidValue);
  *exec = new CUgraphExec_st{*graph};
  all().execs.insert(*exec);
  return cudaSuccess;
}

// A graph is one launch. "Graph Memory Nodes": a graph that keeps an allocation cannot be launched
// again before the allocation is freed.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  wait_for_space(stream);
  std::lock_guard issue(issue_mutex());
  std::lock_guard lock(all().mutex);
  if (all().execs.count(exec) == 0) return record(cudaErrorInvalidValue);
  if (exec->has_run && !exec->graph.unfreed.empty()) return record(cudaErrorInvalidValue);
  exec->has_run = true;
  for (const FakeCudaPrepare& operation : exec->graph.operations)
    if (const cudaError_t error = submit_into_queue(stream, operation); error != cudaSuccess)
      return record(error);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  std::lock_guard lock(all().mutex);
  if (count == nullptr || nodes != nullptr || all().graphs.count(graph) == 0)
    return record(cudaErrorInvalidValue);
  *count = graph->operations.size();
  return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy,
                                 unsigned references, unsigned flags) {
  if (object == nullptr || destroy == nullptr || references == 0 ||
      flags != cudaUserObjectNoDestructorSync)
    return record(cudaErrorInvalidValue);
  *object = new CUuserObject_st{data, destroy, {references}};
  return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  if (object == nullptr || count == 0) return record(cudaErrorInvalidValue);
  object->release(count);
  return cudaSuccess;
}

// Graphs, and those that are still being captured.
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
  if (object == nullptr || count == 0) return record(cudaErrorInvalidValue);
  std::lock_guard issue(issue_mutex());
  std::lock_guard lock(all().mutex);
  const bool is_captured =
      std::any_of(all().captures.begin(), all().captures.end(),
                  [&](const auto& capture) { return capture->graph == graph; });
  if (!is_captured && all().graphs.count(graph) == 0) return record(cudaErrorInvalidValue);
  if ((flags & cudaGraphUserObjectMove) == 0) object->references += count;
  if (!broken("graph_objects"))
    graph->objects.emplace_back(object, [count](CUuserObject_st* held) { held->release(count); });
  else
    object->release(count);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  {
    std::lock_guard lock(all().mutex);
    if (all().graphs.erase(graph) == 0) return record(cudaErrorInvalidValue);
  }
  delete graph;  // outside the lock: what the operations hold is let go here
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  {
    std::lock_guard lock(all().mutex);
    if (all().execs.erase(exec) == 0) return record(cudaErrorInvalidValue);
  }
  delete exec;
  return cudaSuccess;
}

}  // extern "C"
