// Host memory within a node, through memory that the members share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rankmesh/transport/transport.hpp"
#include "transport/shm/engine.hpp"

namespace rankmesh {

/// Every collective of members that share a node; not with blocks of different sizes, and no
/// arithmetic on half types and fp8. Buffers of any size go through the segment in pieces; those in
/// symmetric memory stay where they are.
///
/// Nothing runs by itself: operations progress in `run`, in the `test` of any Pending of this
/// transport, and in `advance`. They are carried out in the order in which they were issued.
class ShmTransport final : public Transport {
 public:
  /// Waits for `done` while other members are late, with a deadline; `step` numbers the operation,
  /// the same on all members. @throws TimeoutError.
  using Patience =
      std::function<void(const std::function<bool()>& done, const Call& call, std::uint64_t step)>;
  struct Place {
    const void* group = nullptr;       ///< as windows of symmetric memory know it
    std::vector<std::byte*> areas;     ///< each member's memory, in group order
    std::vector<std::int32_t> locals;  ///< each member's number on the node
    int self = 0;
    std::size_t slot_bytes = 0;
    bool is_crowded = false;  ///< the node has more ranks than cores
  };
  /// @param under_way  counts asynchronous operations that are not complete.
  ShmTransport(Place place, shm::Limits limits, Patience patience, std::uint64_t& under_way);

  [[nodiscard]] std::string_view name() const override { return "shm"; }
  [[nodiscard]] bool supports(const Call& call) const override { return engine_.can(call); }
  [[nodiscard]] std::string why_not(const Call& call) const override;
  void run(const Call& call) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  /// Goes on with what is under way. Never waits.
  void advance() {
    if (!engine_.is_idle()) engine_.advance();
  }

 private:
  shm::Engine engine_;
  Patience patience_;
  std::uint64_t& under_way_;
  int pauses_;
};

}  // namespace rankmesh
