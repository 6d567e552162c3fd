// SPDX-License-Identifier: BSD-3-Clause
// Holds a stream until it is opened: what is queued behind cannot have run.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "fake_cuda.hpp"

class Gate {
 public:
  explicit Gate(cudaStream_t stream) {
    fake_cuda_enqueue(stream, [open = open_] {
      while (!*open) std::this_thread::sleep_for(std::chrono::microseconds(100));
    });
  }
  ~Gate() { open(); }
  void open() { *open_ = true; }

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};
