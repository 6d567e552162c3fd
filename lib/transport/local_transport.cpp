// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transport/local_transport.hpp"

#include <cstring>

#include "detail/record_call.hpp"

namespace rankmesh {
namespace {

class CompletedOperation final : public Pending {
 public:
  bool test() override { return true; }
  [[nodiscard]] bool is_polled() const override { return false; }
};

void copy_bytes(const LocalCopy& copy) {
  if (copy.out.count > 0)
    std::memcpy(copy.out.data, copy.in.data, static_cast<std::size_t>(copy.out.bytes()));
}

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

void LocalTransport::run(const Call& call, Waiter& waiter) {
  if (waiter.recording == nullptr || waiter.recording->record == nullptr)
    return copy_bytes(local_copy(call));
  // The call cannot wait, so no time is taken for it.
  record::format::Header& header = *waiter.recording->record;
  const std::uint64_t next = detail::next_of(header);
  record::format::Entry& entry = detail::add_entry(header, next, detail::describe_completely(call),
                                                   waiter.recording->group | ++calls_);
  if (detail::is_sampled(header, next)) detail::take_time(header, entry);
  copy_bytes(local_copy(call));
  detail::set_state(header, entry, record::State::ended);
}

std::unique_ptr<Pending> LocalTransport::start(const Call& call) {
  copy_bytes(local_copy(call));
  return std::make_unique<CompletedOperation>();
}

}  // namespace rankmesh
