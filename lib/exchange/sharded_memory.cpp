// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/detail/sharded_memory.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/sharded_state.hpp"
#include "rankmesh/device/device_buffer.hpp"

namespace rankmesh::exchange::detail {
namespace {

using Whole = ShardBucket::Whole;

// Copies the elements that `from` and `to` have in common. `from` begins at element `from_at` of a
// bucket, and `to` begins at element `to_at`.
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

ShardedMemory::~ShardedMemory() = default;
ShardedMemory::ShardedMemory(ShardedMemory&&) noexcept = default;
ShardedMemory& ShardedMemory::operator=(ShardedMemory&&) noexcept = default;

ShardBucket& ShardedMemory::State::bucket_with(std::int64_t tensor) {
  if (tensor < 0 || tensor >= std::ssize(sizes))
    refuse(fmt::format("there is no tensor {}", tensor),
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

ShardedMemory::State& ShardedMemory::state() const {
  if (state_ == nullptr) rankmesh::detail::GroupLife::refuse_moved("ShardedBuffer");
  state_->life.require("ShardedBuffer");
  return *state_;
}

std::int64_t ShardedMemory::tensors() const noexcept {
  return state_ == nullptr ? 0 : std::ssize(state_->sizes);
}
std::int64_t ShardedMemory::buckets() const noexcept {
  return state_ == nullptr ? 0 : std::ssize(state_->buckets);
}

std::int64_t ShardedMemory::bytes() const noexcept {
  if (state_ == nullptr) return 0;
  const State& s = *state_;
  std::int64_t count = s.slots * s.slot_count;
  for (const ShardBucket& bucket : s.buckets) {
    count += (s.options.keep_whole ? bucket.whole : bucket.mine)->count();
    if (bucket.reduced != nullptr) count += bucket.share;
  }
  return count * static_cast<std::int64_t>(size_of(s.type));
}

void ShardedMemory::load(std::int64_t tensor, const ConstBuffer& values) {
  State& s = state();
  ShardBucket& bucket = s.bucket_with(tensor);
  const auto i = static_cast<std::size_t>(tensor);
  if (values.count != s.sizes[i])
    s.refuse(fmt::format("tensor {} has {} elements, the values have {}", tensor, s.sizes[i],
                         values.count),
             "pass the whole tensor");
  if (values.type != s.type || values.kind != s.kind)
    s.refuse(fmt::format("tensor {} is {} in {} memory, the values are {} in {} memory", tensor,
                         to_string(s.type), to_string(s.kind), to_string(values.type),
                         to_string(values.kind)),
             "convert the values, or copy them to the other memory");
  s.finish(bucket);
  const std::int64_t at = bucket.begins[i - bucket.first_tensor];
  bucket.before.clear();
  if (s.options.keep_whole || bucket.contents == Whole::gathered)
    copy_common(s.whole_of(bucket), 0, values, at, s.options.stream);
  if (!s.options.keep_whole)
    copy_common(s.share_of(bucket), s.first_of(bucket), values, at, s.options.stream);
}

Buffer ShardedMemory::mine(std::int64_t bucket) {
  State& s = state();
  if (bucket < 0 || bucket >= buckets())
    s.refuse(fmt::format("there is no bucket {}", bucket), "use numbers below buckets()");
  ShardBucket& b = s.buckets[static_cast<std::size_t>(bucket)];
  const auto missing = std::ranges::find(b.is_reduced, false) - b.is_reduced.begin();
  const bool is_overwritten = s.options.keep_whole && b.contents == Whole::local;
  if (is_overwritten || std::ranges::find(b.is_reduced, true) != b.is_reduced.end())
    s.refuse(fmt::format("bucket {} is not reduced, because tensor {} of it is not", bucket,
                         static_cast<std::ptrdiff_t>(b.first_tensor) + missing),
             "call reduce() for all tensors");
  s.finish(b);
  s.remember(b);
  return s.share_of(b);
}

std::pair<std::int64_t, std::int64_t> ShardedMemory::State::elements_of(std::int64_t tensor,
                                                                        std::int64_t member) {
  const ShardBucket& bucket = bucket_with(tensor);
  const auto i = static_cast<std::size_t>(tensor);
  const std::int64_t begin = bucket.begins[i - bucket.first_tensor];
  const auto inside = [&](std::int64_t element) {
    return std::clamp(element - begin, std::int64_t{0}, sizes[i]);
  };
  const std::int64_t first = inside(member * bucket.share);
  return {first, inside((member + 1) * bucket.share) - first};
}

// Most tensors of equal size are divided alike.
const std::vector<TensorPlacement>& ShardedMemory::State::all_places() {
  std::map<std::string, TensorPlacement> known;
  for (std::int64_t t = std::ssize(places); t < std::ssize(sizes); ++t) {
    std::vector<std::int64_t> counts;
    for (std::int64_t m = 0; m < group.size(); ++m) counts.push_back(elements_of(t, m).second);
    const std::string text =
        fmt::format("[{}] u8 @ part={} : (part:sizes({}))", sizes[static_cast<std::size_t>(t)],
                    group.size(), fmt::join(counts, ","));
    auto found = known.find(text);
    if (found == known.end())
      found = known.emplace(text, TensorPlacement::parse(text).as(type)).first;
    places.push_back(found->second);
  }
  return places;
}

std::vector<ShardedMemory::OwnPart> ShardedMemory::parts() {
  State& s = state();
  std::vector<OwnPart> parts;
  for (std::int64_t b = 0; b < buckets(); ++b) {
    const Buffer own = mine(b);
    const ShardBucket& bucket = s.buckets[static_cast<std::size_t>(b)];
    for (const std::int64_t begin : bucket.begins) {
      const std::size_t tensor = parts.size();
      const auto [first, count] =
          s.elements_of(static_cast<std::int64_t>(tensor), s.group.rank_in_group().value());
      parts.push_back({s.all_places()[tensor],
                       own.slice(count == 0 ? 0 : begin + first - s.first_of(bucket), count)});
    }
  }
  return parts;
}

void ShardedMemory::changed() {
  State& s = state();
  if (std::ranges::find(s.buckets, Whole::local, &ShardBucket::contents) != s.buckets.end())
    s.refuse("changed() is called while local() uses the memory of a bucket",
             "call reduce() for all tensors first, or use another ShardedBuffer");
  for (ShardBucket& bucket : s.buckets) {
    s.finish(bucket);
    bucket.before.clear();
    bucket.is_used.assign(bucket.tensors(), false);
    if (s.options.keep_whole)
      s.start_gather(bucket);
    else if (bucket.contents == Whole::gathered)
      s.take(bucket);
  }
}

Buffer ShardedMemory::gather(std::int64_t tensor) {
  State& s = state();
  ShardBucket& bucket = s.bucket_with(tensor);
  s.move_to(static_cast<std::int64_t>(s.bucket_of[static_cast<std::size_t>(tensor)]));
  if (bucket.contents == Whole::local)
    s.refuse(fmt::format("tensor {} cannot be gathered: local() uses its memory", tensor),
             "call reduce() for all tensors of the bucket first, or use another ShardedBuffer");
  if (bucket.contents == Whole::reducing) s.finish(bucket);
  if (bucket.contents == Whole::gathered) s.require_unchanged(bucket);
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
  ShardBucket& bucket = state().bucket_with(tensor);
  bucket.is_used[static_cast<std::size_t>(tensor) - bucket.first_tensor] = false;
}

Buffer ShardedMemory::local(std::int64_t tensor) {
  State& s = state();
  s.begin_local(tensor);
  return s.part(tensor);
}

void ShardedMemory::reduce(std::int64_t tensor) {
  State& s = state();
  s.begin_local(tensor);
  ShardBucket& bucket = s.bucket_with(tensor);
  bucket.is_reduced[static_cast<std::size_t>(tensor) - bucket.first_tensor] = true;
  if (std::ranges::find(bucket.is_reduced, false) == bucket.is_reduced.end())
    s.start_reduce(s.bucket_of[static_cast<std::size_t>(tensor)]);
}

void ShardedMemory::wait() {
  State& s = state();
  for (ShardBucket& bucket : s.buckets) s.finish(bucket);
}

// The first bytes are enough: an optimizer changes nearly all weights.
void ShardedMemory::State::remember(ShardBucket& bucket) {
  constexpr std::size_t most = 4096;
  if (kind == MemoryKind::device || bucket.contents != Whole::gathered || !bucket.before.empty())
    return;
  const Buffer part = share_of(bucket);
  bucket.before.assign(part.data,
                       part.data + std::min(most, static_cast<std::size_t>(part.bytes())));
}

void ShardedMemory::State::require_unchanged(const ShardBucket& bucket) {
  if (bucket.before.empty() ||
      std::memcmp(share_of(bucket).data, bucket.before.data(), bucket.before.size()) == 0)
    return;
  refuse(fmt::format("gather() on rank {}, but mine({}) was changed and changed() was not called",
                     group.rank().value(), &bucket - buckets.data()),
         "call changed() on all members after they have changed their parts");
}

void ShardedMemory::State::begin_local(std::int64_t tensor) {
  ShardBucket& bucket = bucket_with(tensor);
  if (bucket.contents == Whole::local) {
    if (bucket.is_reduced[static_cast<std::size_t>(tensor) - bucket.first_tensor])
      refuse(fmt::format("tensor {} has been reduced, and other tensors of its bucket have not",
                         tensor),
             "call reduce() for all tensors before the next round");
    return;
  }
  finish(bucket);
  bucket.before.clear();
  provide(bucket, /*is_urgent=*/true);
  zero(whole_of(bucket), options.stream);
  bucket.contents = Whole::local;
  bucket.is_used.assign(bucket.tensors(), false);
}

}  // namespace rankmesh::exchange::detail
