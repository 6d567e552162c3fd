// SPDX-License-Identifier: BSD-3-Clause
// Log messages and conditions that a test waits for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rankmesh/base/log.hpp"
#include "support/checks.hpp"

namespace rankmesh_test {

// Collects the warnings of the log.
class Messages {
 public:
  rankmesh::LogSink sink() {
    return [this](rankmesh::LogLevel level, std::string_view text) {
      const std::lock_guard lock{mutex_};
      if (level == rankmesh::LogLevel::warning) texts_.emplace_back(text);
    };
  }
  std::vector<std::string> texts() {
    const std::lock_guard lock{mutex_};
    return texts_;
  }
  std::size_t count(const std::string& part) {
    const std::lock_guard lock{mutex_};
    return static_cast<std::size_t>(
        std::ranges::count_if(texts_, [&](const auto& text) { return has_part(text, part); }));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

// Waits until the condition holds; gives up after 20 s.
inline bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  return condition();
}

}  // namespace rankmesh_test
