// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/captured_graphs.hpp"

#include <condition_variable>
#include <mutex>

#include "base/detail/patience.hpp"
#include "rankmesh/device/cuda.hpp"

namespace rankmesh::device {

struct CapturedGraphs::GraphState {
  std::mutex mutex;  // CUDA calls release() from one of its threads
  std::condition_variable changed;
  std::map<std::string, int> alive;
  std::atomic<int> count{0};  // the sum of `alive`

  // The user object of a capture. CUDA owns it and calls release() when the last graph
  // is destroyed.
  struct Token {
    std::shared_ptr<GraphState> state;
    std::string name;
  };

  static void CUDART_CB release(void* pointer) {
    const std::unique_ptr<Token> token{static_cast<Token*>(pointer)};
    const std::lock_guard lock{token->state->mutex};
    if (--token->state->alive[token->name] == 0) token->state->alive.erase(token->name);
    --token->state->count;
    token->state->changed.notify_all();
  }
};

namespace {

struct Capture {
  unsigned long long number = 0;
  cudaGraph_t graph = nullptr;
};

Capture capture_of(cudaStream_t stream) {
  Capture capture;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
#if CUDART_VERSION >= 13000
  check(cudaStreamGetCaptureInfo(stream, &status, &capture.number, &capture.graph, nullptr, nullptr,
                                 nullptr),
        "cudaStreamGetCaptureInfo");
#else
  check(cudaStreamGetCaptureInfo_v2(stream, &status, &capture.number, &capture.graph, nullptr,
                                    nullptr),
        "cudaStreamGetCaptureInfo");
#endif
  return capture;
}

}  // namespace

bool is_captured(StreamRef stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t code =
      cudaStreamIsCapturing(static_cast<cudaStream_t>(stream.native()), &status);
  if (code == cudaErrorStreamCaptureImplicit) {
    (void)cudaGetLastError();
    throw UsageError{
        "the default stream cannot be used while a stream that waits for it is captured",
        "use a stream of your own, or capture a stream that was created with "
        "cudaStreamNonBlocking"};
  }
  check(code, "cudaStreamIsCapturing");
  if (status == cudaStreamCaptureStatusInvalidated)
    throw UsageError{
        "the capture of the stream is invalidated, so no operation can be added to it",
        "end the capture with cudaStreamEndCapture, which returns the error, and capture again "
        "without the call that is not allowed during a capture"};
  return status == cudaStreamCaptureStatusActive;
}

CapturedGraphs::CapturedGraphs() : state_{std::make_shared<GraphState>()}, count_{&state_->count} {}

bool CapturedGraphs::note(StreamRef stream, const std::string& name) {
  if (!is_captured(stream)) [[likely]]
    return false;
  const Capture capture = capture_of(static_cast<cudaStream_t>(stream.native()));
  const auto [last, is_new] = last_capture_.try_emplace(name, capture.number);
  if (!is_new && last->second == capture.number) return true;
  last->second = capture.number;
  auto token = std::make_unique<GraphState::Token>(GraphState::Token{state_, name});
  cudaUserObject_t object = nullptr;
  check(cudaUserObjectCreate(&object, token.get(), &GraphState::release, 1,
                             cudaUserObjectNoDestructorSync),
        "cudaUserObjectCreate");
  {
    const std::lock_guard lock{state_->mutex};
    ++state_->alive[name];
    ++state_->count;
  }
  (void)token.release();  // CUDA owns it now
  const cudaError_t retained =
      cudaGraphRetainUserObject(capture.graph, object, 1, cudaGraphUserObjectMove);
  if (retained != cudaSuccess) (void)cudaUserObjectRelease(object, 1);
  check(retained, "cudaGraphRetainUserObject");
  return true;
}

bool CapturedGraphs::holds(const std::string& name) const {
  const std::lock_guard lock{state_->mutex};
  return state_->alive.contains(name);
}

std::map<std::string, int> CapturedGraphs::alive(const std::string& only) const {
  std::unique_lock lock{state_->mutex};
  const auto is_over = [&] {
    return only.empty() ? state_->alive.empty() : !state_->alive.contains(only);
  };
  state_->changed.wait_for(lock, rankmesh::detail::patience().graph_reports, is_over);
  if (only.empty() || is_over()) return only.empty() ? state_->alive : std::map<std::string, int>{};
  return {*state_->alive.find(only)};
}

}  // namespace rankmesh::device
