#include "rankmesh/transport/local_transport.hpp"

#include <cstring>

namespace rankmesh {
namespace {

class Done final : public Pending {
 public:
  bool test() override { return true; }
};

}  // namespace

LocalCopy local_copy(const Call& call) {
  LocalCopy copy{call.in, call.out};
  if (!call.in_counts.empty()) copy.in = call.in.slice(call.in_displacements[0], call.in_counts[0]);
  if (!call.out_counts.empty()) copy.out = call.out.slice(call.out_displacements[0], call.out_counts[0]);
  if (copy.in.data == nullptr || copy.out.data == nullptr || copy.in.data == copy.out.data)
    copy.out.count = 0;
  return copy;
}

bool LocalTransport::supports(const Call& call) const {
  return call.in.kind == MemoryKind::host && call.out.kind == MemoryKind::host;
}

void LocalTransport::run(const Call& call) {
  const LocalCopy copy = local_copy(call);
  if (copy.out.count > 0)
    std::memcpy(copy.out.data, copy.in.data, static_cast<std::size_t>(copy.out.bytes()));
}

std::unique_ptr<Pending> LocalTransport::start(const Call& call) {
  run(call);
  return std::make_unique<Done>();
}

}  // namespace rankmesh
