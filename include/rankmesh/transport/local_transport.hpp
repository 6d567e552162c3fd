// The transport of groups of one rank: copies.
#pragma once

#include <memory>
#include <string_view>

#include "rankmesh/transport/transport.hpp"

namespace rankmesh {

/// What an operation of one rank copies; nothing where `out` has no elements.
struct LocalCopy {
  ConstBuffer in;
  Buffer out;
};
[[nodiscard]] LocalCopy local_copy(const Call& call);

/// Every collective of one rank is a copy or nothing. Host memory only.
class RANKMESH_API LocalTransport final : public Transport {
 public:
  [[nodiscard]] std::string_view name() const override { return "local"; }
  [[nodiscard]] bool supports(const Call& call) const override;
  void run(const Call& call, Waiter&) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
};

}  // namespace rankmesh
