// SPDX-License-Identifier: BSD-3-Clause
// The transport of groups of one rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "rankmesh/transport/transport.hpp"

namespace rankmesh {

/// Describes the copy that carries out an operation in a group of one rank. If `out` has no
/// elements, nothing is copied.
struct LocalCopy {
  ConstBuffer in;  ///< The input.
  Buffer out;      ///< The output, as large as the input.
};
/// Returns the copy that carries out a call in a group of one rank.
[[nodiscard]] LocalCopy local_copy(const Call& call);

/// Carries the operations of groups of one rank. Each operation is a copy. Host memory only.
class RANKMESH_API LocalTransport final : public Transport {
 public:
  [[nodiscard]] std::string_view name() const override { return "local"; }
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::local; }
  [[nodiscard]] bool supports(const Call& call) const override;
  void run(const Call& call, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;

 private:
  std::uint64_t calls_ = 0;
};

}  // namespace rankmesh
