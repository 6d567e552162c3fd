// SPDX-License-Identifier: BSD-3-Clause
// Publishes the calls that a transport runs: in the record, and in the area of this rank.
#pragma once

#include <cstdint>

#include "call_descriptor.hpp"
#include "rankmesh/transport/waiter.hpp"
#include "record/detail/recorded_call.hpp"
#include "wait/detail/rank_area.hpp"

namespace rankmesh::detail {

/// Where the calls of a coordinator are published.
struct Publication {
  Recording recording{};           ///< The record, and the group in it.
  CurrentCall* current = nullptr;  ///< In the area of this rank; null if there is none.
  ShortName group{};               ///< Its name.
};

/// A blocking call of a transport. It is in the record from the construction of this object until
/// end(), and in the area of this rank while the thread is blocked in a function that is not
/// rankmesh's. If the object is destroyed before end(), the call has failed.
class PublishedCall {
 public:
  /// @param number  The number of a collective in its group; 0 for messages.
  PublishedCall(const Waiter& waiter, const Call& call, std::uint64_t number,
                record::Carrier carrier)
      : publication_{waiter.publication},
        number_{number},
        descriptor_{publication_ == nullptr ? CallDescriptor{} : describe_completely(call)},
        recorded_{record(carrier)} {}
  ~PublishedCall() { leave(); }
  PublishedCall(const PublishedCall&) = delete;
  PublishedCall& operator=(const PublishedCall&) = delete;

  /// The call enters MPI, or a transport of the program.
  /// @param is_blocked  Whether this thread does, until end(). Otherwise it polls.
  void enter(bool is_blocked = true) {
    recorded_.enter();
    if (!is_blocked || publication_ == nullptr || publication_->current == nullptr) return;
    entered_ = publication_->current;
    entered_->enter(publication_->group, descriptor_, number_);
  }
  void end() {
    leave();
    recorded_.end();
  }

 private:
  [[nodiscard]] RecordedCall record(record::Carrier carrier) const {
    if (publication_ == nullptr) return {};
    return {publication_->recording, descriptor_, number_, carrier, record::State::issued};
  }
  void leave() noexcept {
    if (entered_ != nullptr) entered_->leave();
    entered_ = nullptr;
  }

  const Publication* publication_;
  std::uint64_t number_;
  CallDescriptor descriptor_;
  RecordedCall recorded_;
  CurrentCall* entered_ = nullptr;
};

}  // namespace rankmesh::detail
