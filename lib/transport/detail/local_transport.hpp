// SPDX-License-Identifier: BSD-3-Clause
// The transport of what a rank exchanges only with itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rankmesh/base/error.hpp"
#include "routed_transport.hpp"

namespace rankmesh {

namespace shm {
class Inbox;
}

/// Describes the copy that carries out an operation in a group of one rank. If `out` has no
/// elements, nothing is copied.
struct LocalCopy {
  ConstBuffer in;  ///< The input.
  Buffer out;      ///< The output, as large as the input.
};
/// Returns the copy that carries out a call in a group of one rank.
[[nodiscard]] LocalCopy local_copy(const Call& call);

/// Returns the error of a receive from the caller itself whose message was not sent.
[[nodiscard]] UsageError never_sent(const std::string& activity);

/// Carries the operations of groups of one rank, and the messages of a member to itself in any
/// group. Each operation is a copy. A send never waits for its receive. Host memory only.
class RANKMESH_API LocalTransport final : public RoutedTransport {
 public:
  LocalTransport();
  ~LocalTransport() override;
  [[nodiscard]] std::string_view name() const override { return "local"; }
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::local; }
  [[nodiscard]] bool supports(const Call& call) const override;
  /// @throws UsageError if the call receives a message that was not sent, so it would wait for
  /// ever.
  void run(const Call& call, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  [[nodiscard]] bool is_polled(const Call&) const override { return true; }
  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag) override;
  /// Returns the number of collectives so far.
  [[nodiscard]] const std::uint64_t& calls() const { return calls_; }

 private:
  class MessageToItself;
  void run_message(const Call& call, Waiter& waiter);

  std::uint64_t calls_ = 0;
  std::unique_ptr<shm::Inbox> inbox_;  // from itself
};

}  // namespace rankmesh
