// SPDX-License-Identifier: BSD-3-Clause
// A transport that carries barriers: its members count in a file that they have mapped.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "rankmesh/transport/transport_factory.hpp"

namespace rankmesh_test {

/// The next operation of this process kills it.
inline std::atomic<bool> dies_in_operation{false};

/// The blocking one waits for all members in run(). Only the member before a dead one sees its
/// death; the others learn of it by give_up() of this member.
class MeetingPlace final : public rankmesh::Transport {
 public:
  MeetingPlace(const rankmesh::TransportGroup& group, bool is_blocking)
      : is_blocking_{is_blocking}, self_{static_cast<std::size_t>(group.self.value())} {
    const auto members = static_cast<std::size_t>(group.ranks.size());
    const std::string name = std::string{std::getenv("SURVIVOR_FOLDER")} + "/" + group.name +
                             group.ranks.to_string() + ".members";
    const std::size_t bytes = members * sizeof(Member);
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0)
      throw std::runtime_error{"no file"};
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) throw std::runtime_error{"no memory"};
    members_ = {static_cast<Member*>(memory), members};  // until the process ends
    members_[self_].process = ::getpid();
  }
  [[nodiscard]] bool supports(const rankmesh::Call& call) const override {
    return call.operation == rankmesh::Operation::barrier;
  }
  void run(const rankmesh::Call& call, rankmesh::Waiter&) override {
    for (const auto arrival = start(call); !arrival->test(); ::usleep(100)) {
      const pid_t next = members_[(self_ + 1) % members_.size()].process;
      if (is_blocking_ && next != 0 && ::kill(next, 0) != 0 && errno == ESRCH)
        throw std::runtime_error{"the next member has ended"};
    }
  }
  [[nodiscard]] bool has_async_forms() const override { return !is_blocking_; }
  [[nodiscard]] std::unique_ptr<rankmesh::Pending> start(const rankmesh::Call&) override {
    if (dies_in_operation) ::kill(::getpid(), SIGKILL);
    return std::make_unique<Arrival>(members_, ++members_[self_].calls);
  }
  void give_up(const rankmesh::Error&) override { members_[self_].has_given_up = true; }

 private:
  struct Member {
    std::atomic<pid_t> process;
    std::atomic<std::uint64_t> calls;
    std::atomic<bool> has_given_up;
  };
  class Arrival final : public rankmesh::Pending {
   public:
    Arrival(std::span<Member> members, std::uint64_t number) : members_{members}, number_{number} {}
    bool test() override {
      for (const Member& member : members_)
        if (member.has_given_up) throw std::runtime_error{"a member has given up"};
      return std::ranges::all_of(members_, [&](const Member& m) { return m.calls >= number_; });
    }

   private:
    std::span<Member> members_;
    std::uint64_t number_;
  };

  bool is_blocking_;
  std::size_t self_;
  std::span<Member> members_;
};

}  // namespace rankmesh_test
