// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/detail/sharded_memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "detail/differing_arguments.hpp"
#include "detail/sharded_state.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange::detail {
namespace {

using Whole = ShardBucket::Whole;

[[noreturn]] void refuse(const GroupCoordinator& group, const std::string& what, const char* hint) {
  throw UsageError{fmt::format("ShardedBuffer over '{}': {}", group.name(), what), hint};
}

void validate(const GroupCoordinator& group, const std::vector<std::int64_t>& sizes,
              const ShardedBufferOptions& options) {
  if (options.bytes < 1 || options.prefetch < 0)
    refuse(
        group,
        fmt::format("a bucket of {} bytes, {} buckets in advance", options.bytes, options.prefetch),
        "set bytes to 1 or more, and prefetch to 0 or more");
  if (std::ranges::any_of(sizes, [](std::int64_t n) { return n < 0; }))
    refuse(group, "a tensor has a negative number of elements", "use sizes of 0 or more");
}

// Throws on all members if one of them passes other arguments or invalid ones.
void verify_agreement(GroupCoordinator& group, const std::vector<std::int64_t>& sizes,
                      DataType type, MemoryKind kind, const ShardedBufferOptions& options) {
  MemberArguments mine{.list = sizes};
  mine.describe = [&](const std::string& list) {
    return fmt::format(
        "ShardedBuffer over '{}': {} tensors of {} {} on the {}, {} bytes per bucket, keep_whole "
        "{}, prefetch {}, {}",
        group.name(), sizes.size(), list, to_string(type), to_string(kind), options.bytes,
        options.keep_whole, options.prefetch, to_string(options.op));
  };
  mine.failure = failure_of([&] { validate(group, sizes, options); });
  std::string text;
  for (const std::int64_t n : sizes) text += fmt::format("{},", n);
  const Hash128 hash = hash_bytes(mine.describe(text));
  // The maxima of h and ~h are each other's complement only if all h are equal. Those of a member
  // that has failed are not.
  std::vector<std::uint64_t> most(4, ~std::uint64_t{0});
  if (mine.failure == nullptr) most = {hash.high, hash.low, ~hash.high, ~hash.low};
  run_or_leak([&] { group.all_reduce(most, ReduceOp::max); }, most);
  if (most[0] == ~most[2] && most[1] == ~most[3]) return;
  throw_difference(group, mine, "pass the same sizes and options on every rank");
}

void zero(const Buffer& memory, StreamRef stream) {
  const auto bytes = static_cast<std::size_t>(memory.bytes());
  if (memory.kind == MemoryKind::device)
    device::detail::zero_on_device(memory.data, bytes, stream);
  else if (bytes > 0)
    std::memset(memory.data, 0, bytes);
}

// Copies the elements of `from`, which begin at element `from_at` of a bucket, to those of `to`,
// which begin at element `to_at`, where both have the same elements.
void copy_common(const Buffer& to, std::int64_t to_at, const ConstBuffer& from,
                 std::int64_t from_at, StreamRef stream) {
  const std::int64_t begin = std::max(to_at, from_at);
  const std::int64_t end = std::min(to_at + to.count, from_at + from.count);
  if (begin >= end) return;
  const Buffer target = to.slice(begin - to_at, end - begin);
  const ConstBuffer source = from.slice(begin - from_at, end - begin);
  const auto bytes = static_cast<std::size_t>(target.bytes());
  if (to.kind == MemoryKind::device)
    device::detail::copy_on_device(target.data, source.data, bytes, stream);
  else
    std::memcpy(target.data, source.data, bytes);
}

}  // namespace

ShardedMemory::ShardedMemory(GroupCoordinator& group, std::vector<std::int64_t> sizes,
                             DataType type, MemoryKind kind, const ShardedBufferOptions& options) {
  verify_agreement(group, sizes, type, kind, options);
  auto buckets = divided(sizes, type, options.bytes, group.size());
  state_.reset(new State{.group = group,
                         .type = type,
                         .kind = kind,
                         .options = options,
                         .sizes = std::move(sizes),
                         .buckets = std::move(buckets)});
  state_->allocate();
}

ShardedMemory::ShardedMemory(const ShardedMemory& like, DataType type,
                             const ShardedBufferOptions& options) {
  const State& s = *like.state_;
  state_.reset(new State{
      .group = s.group, .type = type, .kind = s.kind, .options = options, .sizes = s.sizes});
  state_->options.bytes = s.options.bytes;
  state_->options.stream = s.options.stream;
  verify_agreement(s.group, s.sizes, type, s.kind, state_->options);
  for (const ShardBucket& bucket : s.buckets)
    state_->buckets.push_back({.first_tensor = bucket.first_tensor,
                               .begins = bucket.begins,
                               .count = bucket.count,
                               .share = bucket.share});
  state_->allocate();
}

ShardedMemory::~ShardedMemory() = default;
ShardedMemory::ShardedMemory(ShardedMemory&&) noexcept = default;
ShardedMemory& ShardedMemory::operator=(ShardedMemory&&) noexcept = default;

// Allocates what every bucket always has: its whole memory, or this member's part.
void ShardedMemory::State::allocate() {
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    ShardBucket& bucket = buckets[b];
    const std::int64_t padded = bucket.share * group.size();
    bucket.is_used.assign(bucket.tensors(), false);
    bucket.is_reduced.assign(bucket.tensors(), false);
    bucket_of.insert(bucket_of.end(), bucket.tensors(), b);
    slot_count = std::max(slot_count, padded);
    auto& memory = options.keep_whole ? bucket.whole : bucket.mine;
    memory = std::make_shared<Tensor>(
        Tensor::allocate(type, {options.keep_whole ? padded : bucket.share}, kind));
    if (kind == MemoryKind::device) zero(memory->buffer(), options.stream);
    if (options.keep_whole) bucket.contents = Whole::gathered;
  }
}

ShardBucket& ShardedMemory::State::bucket_with(std::int64_t tensor) {
  if (tensor < 0 || tensor >= std::ssize(sizes))
    refuse(group, fmt::format("there is no tensor {}", tensor),
           "number the tensors from 0, in the order of the sizes");
  return buckets[bucket_of[static_cast<std::size_t>(tensor)]];
}

Buffer ShardedMemory::State::part(std::int64_t tensor) {
  const ShardBucket& bucket = bucket_with(tensor);
  const auto i = static_cast<std::size_t>(tensor);
  return whole_of(bucket).slice(bucket.begins[i - bucket.first_tensor], sizes[i]);
}

Buffer ShardedMemory::State::share_of(const ShardBucket& bucket) const {
  if (bucket.mine != nullptr) return bucket.mine->buffer();
  return whole_of(bucket).slice(first_of(bucket), bucket.share);
}

Buffer ShardedMemory::State::whole_of(const ShardBucket& bucket) const {
  return bucket.whole->buffer().slice(0, bucket.share * group.size());
}

std::int64_t ShardedMemory::State::first_of(const ShardBucket& bucket) const {
  return group.rank_in_group().value() * bucket.share;
}

std::int64_t ShardedMemory::tensors() const noexcept { return std::ssize(state_->sizes); }
std::int64_t ShardedMemory::buckets() const noexcept { return std::ssize(state_->buckets); }

std::int64_t ShardedMemory::bytes() const noexcept {
  const State& s = *state_;
  std::int64_t count = s.slots * s.slot_count;
  for (const ShardBucket& bucket : s.buckets) {
    count += s.options.keep_whole ? bucket.share * s.group.size() : bucket.share;
    if (bucket.reduced != nullptr) count += bucket.share;
  }
  return count * static_cast<std::int64_t>(size_of(s.type));
}

void ShardedMemory::load(std::int64_t tensor, const ConstBuffer& values) {
  State& s = *state_;
  ShardBucket& bucket = s.bucket_with(tensor);
  const auto i = static_cast<std::size_t>(tensor);
  if (values.count != s.sizes[i])
    refuse(s.group,
           fmt::format("tensor {} has {} elements, the values have {}", tensor, s.sizes[i],
                       values.count),
           "pass the whole tensor");
  s.finish(bucket);
  const std::int64_t at = bucket.begins[i - bucket.first_tensor];
  if (s.options.keep_whole)
    copy_common(s.whole_of(bucket), 0, values, at, s.options.stream);
  else
    copy_common(s.share_of(bucket), s.first_of(bucket), values, at, s.options.stream);
}

Buffer ShardedMemory::mine(std::int64_t bucket) {
  State& s = *state_;
  if (bucket < 0 || bucket >= buckets())
    refuse(s.group, fmt::format("there is no bucket {}", bucket), "use numbers below buckets()");
  ShardBucket& b = s.buckets[static_cast<std::size_t>(bucket)];
  const auto missing = std::ranges::find(b.is_reduced, false) - b.is_reduced.begin();
  if (std::ranges::find(b.is_reduced, true) != b.is_reduced.end())
    refuse(s.group,
           fmt::format("bucket {} is not reduced, because tensor {} of it is not", bucket,
                       static_cast<std::ptrdiff_t>(b.first_tensor) + missing),
           "call reduce() for all tensors");
  s.finish(b);
  return s.share_of(b);
}

void ShardedMemory::changed() {
  State& s = *state_;
  if (std::ranges::find(s.buckets, Whole::local, &ShardBucket::contents) != s.buckets.end())
    refuse(s.group, "changed() is called while local() uses the memory of a bucket",
           "call reduce() for all tensors before, or use another ShardedBuffer");
  for (ShardBucket& bucket : s.buckets) {
    s.finish(bucket);
    bucket.is_used.assign(bucket.tensors(), false);
    if (s.options.keep_whole)
      s.start_gather(bucket);
    else if (bucket.contents == Whole::gathered)
      s.take(bucket);
  }
}

Buffer ShardedMemory::gather(std::int64_t tensor) {
  State& s = *state_;
  ShardBucket& bucket = s.bucket_with(tensor);
  s.move_to(static_cast<std::int64_t>(s.bucket_of[static_cast<std::size_t>(tensor)]));
  if (bucket.contents == Whole::local)
    refuse(s.group, fmt::format("tensor {} cannot be gathered: local() uses its memory", tensor),
           "call reduce() for all tensors of the bucket before, or use another ShardedBuffer");
  if (bucket.contents == Whole::reducing) s.finish(bucket);
  if (bucket.contents == Whole::nothing) {
    s.provide(bucket, /*is_urgent=*/true);
    s.start_gather(bucket);
  }
  bucket.is_used[static_cast<std::size_t>(tensor) - bucket.first_tensor] = true;
  s.prefetch();
  s.finish(bucket);
  return s.part(tensor);
}

void ShardedMemory::release(std::int64_t tensor) {
  ShardBucket& bucket = state_->bucket_with(tensor);
  bucket.is_used[static_cast<std::size_t>(tensor) - bucket.first_tensor] = false;
}

Buffer ShardedMemory::local(std::int64_t tensor) {
  state_->begin_local(tensor);
  return state_->part(tensor);
}

void ShardedMemory::reduce(std::int64_t tensor) {
  State& s = *state_;
  s.begin_local(tensor);
  ShardBucket& bucket = s.bucket_with(tensor);
  bucket.is_reduced[static_cast<std::size_t>(tensor) - bucket.first_tensor] = true;
  if (std::ranges::find(bucket.is_reduced, false) == bucket.is_reduced.end())
    s.start_reduce(s.bucket_of[static_cast<std::size_t>(tensor)]);
}

void ShardedMemory::wait() {
  for (ShardBucket& bucket : state_->buckets) state_->finish(bucket);
}

void ShardedMemory::State::begin_local(std::int64_t tensor) {
  ShardBucket& bucket = bucket_with(tensor);
  if (bucket.contents == Whole::local) {
    if (bucket.is_reduced[static_cast<std::size_t>(tensor) - bucket.first_tensor])
      refuse(group,
             fmt::format("tensor {} has been reduced, and other tensors of its bucket have not",
                         tensor),
             "call reduce() for all tensors before the next round");
    return;
  }
  finish(bucket);
  provide(bucket, /*is_urgent=*/true);
  zero(whole_of(bucket), options.stream);
  bucket.contents = Whole::local;
  bucket.is_used.assign(bucket.tensors(), false);
}

}  // namespace rankmesh::exchange::detail
