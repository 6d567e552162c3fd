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
  LocalCopy copy{block_of(call.in, call.in_blocks, 0), block_of(call.out, call.out_blocks, 0)};
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
