// SPDX-License-Identifier: BSD-3-Clause
// Parts of all meshes that this process has open.
#pragma once

#include <pthread.h>

#include <mutex>
#include <utility>
#include <vector>

namespace rankmesh::detail {

/// Lists all objects of one class that belong to open meshes of this process: the boards, the wait
/// monitors, and the meshes that the watchdog watches. A rank that waits in one mesh says so in the
/// others too, and one watchdog serves all.
///
/// Thread safety: any thread may call any function. fork() waits until no thread uses the list, and
/// the list of the child is empty, because the child has no ranks.
template <class Part>
class OpenParts {
 public:
  static OpenParts& instance() {
    // It is never destroyed, because meshes may be destroyed after the objects of all files.
    static OpenParts* const parts = new OpenParts;
    return *parts;
  }

  void add(Part& part) {
    const std::lock_guard lock{mutex_};
    parts_.push_back(&part);
  }
  /// Does nothing if the part is not in the list.
  void remove(const Part& part) {
    const std::lock_guard lock{mutex_};
    std::erase(parts_, &part);
  }
  /// Calls a function with each part. The parts stay open until it returns.
  template <class Action>
  void for_each(Action&& action) {
    const std::lock_guard lock{mutex_};
    for (Part* part : parts_) action(*part);
  }

 private:
  OpenParts() {
    ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().forget_in_child(); });
  }
  void forget_in_child() {
    // The locks of the parent's files say that the parent is alive.
    if constexpr (requires { std::declval<Part&>().close_descriptor(); })
      for (Part* part : parts_) part->close_descriptor();
    parts_.clear();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<Part*> parts_;
};

}  // namespace rankmesh::detail
