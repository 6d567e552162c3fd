// SPDX-License-Identifier: BSD-3-Clause
// Host memory within a node, through memory that the members share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rankmesh/transport/transport.hpp"
#include "transport/shm/algorithms.hpp"
#include "transport/shm/engine.hpp"

namespace rankmesh {

/// Carries every collective of members that share a node, but not blocks of different sizes and no
/// arithmetic on 16- and 8-bit floats. Buffers of any size go through the segment in pieces; those
/// in symmetric memory stay where they are.
///
/// Nothing runs by itself: operations make progress in `run`, in the `test` of any Pending of this
/// transport, and in `advance`. They are carried out in the order in which they were issued.
class ShmTransport final : public Transport {
 public:
  struct Place {
    std::vector<std::byte*> areas;     ///< Each member's memory, in group order.
    std::vector<std::int32_t> locals;  ///< Each member's number on the node.
    int self = 0;
    std::size_t slot_bytes = 0;
    bool is_oversubscribed = false;  ///< The node has more ranks than cores.

    /// Identifies the group in this process: symmetric windows list the groups that they serve.
    [[nodiscard]] const void* key() const { return areas[static_cast<std::size_t>(self)]; }
  };
  ShmTransport(const Place& place, shm::Limits limits);

  [[nodiscard]] std::string_view name() const override { return "shm"; }
  [[nodiscard]] bool supports(const Call& call) const override { return engine_.can(call); }
  [[nodiscard]] std::string why_not(const Call& call) const override;
  void run(const Call& call, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  [[nodiscard]] bool is_polled() const override { return true; }
  void advance() override {
    if (!engine_.is_idle()) engine_.advance();
  }
  [[nodiscard]] bool uses_symmetric_memory(const Call& call) const override {
    return shm::is_symmetric(call, key_) && engine_.can(call);
  }

 private:
  shm::Engine engine_;
  const void* key_;
  int pauses_;
};

}  // namespace rankmesh
