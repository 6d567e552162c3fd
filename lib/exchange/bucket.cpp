// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/bucket.hpp"

#include <cstring>

#include <fmt/format.h>

#include "detail/differing_arguments.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {
namespace {

using rankmesh::detail::GroupAccess;

void copy(std::byte* to, const std::byte* from, const Buffer& like, StreamRef stream) {
  const auto bytes = static_cast<std::size_t>(like.bytes());
  if (bytes == 0) return;
  if (like.kind == MemoryKind::device)
    device::detail::copy_on_device(to, from, bytes, stream);
  else
    std::memcpy(to, from, bytes);
}

Hash128 contents_of(const std::vector<Buffer>& buffers) {
  std::string text;
  for (const Buffer& buffer : buffers)
    text += fmt::format("{} {} {};", buffer.count, to_string(buffer.type),
                        static_cast<int>(buffer.kind));
  return hash_bytes(text);
}

}  // namespace

Bucket::Bucket(GroupCoordinator& group, BucketOptions options) : group_{group}, options_{options} {
  if (options.bytes < 1)
    throw UsageError{fmt::format("a bucket cannot have {} bytes", options.bytes),
                     "use 1 byte or more"};
}

bool Bucket::fits(const Buffer& buffer) const {
  if (added_.empty()) return true;
  const Buffer& first = added_.front();
  return buffer.type == first.type && buffer.kind == first.kind &&
         (added_count_ + buffer.count) * static_cast<std::int64_t>(size_of(first.type)) <=
             options_.bytes;
}

void Bucket::add_buffer(const Buffer& buffer) {
  if (!fits(buffer)) flush();
  added_.push_back(buffer);
  added_count_ += buffer.count;
  if (added_count_ * static_cast<std::int64_t>(size_of(buffer.type)) >= options_.bytes) flush();
}

void Bucket::throw_different_contents(std::size_t number) {
  detail::MemberArguments mine;
  for (const Buffer& buffer : added_) mine.list.push_back(buffer.count);
  mine.describe = [&](const std::string& list) {
    const Buffer& first = added_.front();
    return fmt::format("Bucket over '{}', collective {}: {} buffer{} of {} {}{}", group_.name(),
                       number, added_.size(), added_.size() == 1 ? "" : "s", list,
                       to_string(first.type),
                       first.kind == MemoryKind::device ? " on the device" : "");
  };
  throw_difference(group_, mine,
                   "add buffers of the same counts and types in the same order on every rank");
}

// First round: compares the contents on all members, so that all throw the same error. Later
// rounds: compares them with the first round, which is local.
void Bucket::agree(const Hash128& contents) {
  const std::size_t number = issued_.size();
  if (!is_first_round_) {
    if (number >= first_round_.size() || contents != first_round_[number])
      throw UsageError{
          fmt::format("collective {} of a bucket over '{}' holds other buffers than in the "
                      "first round",
                      number, group_.name()),
          "add the same buffers in the same order in each round; use another Bucket for other "
          "buffers"};
    return;
  }
  std::vector<std::uint64_t> values{contents.low, ~contents.low};
  run_or_leak([&] { group_.all_reduce(values, ReduceOp::max); }, values);
  if (values[0] != ~values[1]) throw_different_contents(number);
  first_round_.push_back(contents);
}

// Returns the flat memory of a collective; all rounds use the same.
const std::shared_ptr<Tensor>& Bucket::flat(std::size_t collective, const Buffer& like) {
  if (collective >= flat_.size()) flat_.resize(collective + 1);
  if (flat_[collective] == nullptr)
    flat_[collective] =
        std::make_shared<Tensor>(Tensor::allocate(like.type, {added_count_}, like.kind));
  return flat_[collective];
}

void Bucket::flush() {
  if (added_.empty()) return;
  agree(contents_of(added_));
  Buffer whole = added_.front();
  std::shared_ptr<Tensor> kept;
  if (added_.size() > 1) {  // a single buffer is reduced in place
    kept = flat(issued_.size(), whole);
    whole = kept->buffer();
    std::int64_t offset = 0;
    for (const Buffer& part : added_) {
      copy(whole.slice(offset, 0).data, part.data, part, options_.stream);
      offset += part.count;
    }
  } else {
    added_.clear();
  }
  Work work = GroupAccess::start(group_,
                                 {.operation = Operation::all_reduce,
                                  .reduction = options_.op,
                                  .in = whole.as_input(),
                                  .out = whole,
                                  .stream = options_.stream},
                                 kept);
  issued_.push_back({std::exchange(added_, {}), std::move(work)});
  added_count_ = 0;
}

void Bucket::wait() {
  flush();
  if (issued_.empty()) return;
  if (!is_first_round_ && issued_.size() != first_round_.size())
    throw UsageError{
        fmt::format("a round of a bucket over '{}' has {} collectives, the first round had {}",
                    group_.name(), issued_.size(), first_round_.size()),
        "add the same buffers in the same order in each round"};
  for (std::size_t i = 0; i < issued_.size(); ++i) {
    issued_[i].work.wait();
    std::int64_t offset = 0;
    for (const Buffer& part : issued_[i].parts) {
      copy(part.data, flat_[i]->buffer().slice(offset, 0).data, part, options_.stream);
      offset += part.count;
    }
  }
  issued_.clear();
  is_first_round_ = false;
}

}  // namespace rankmesh::exchange
