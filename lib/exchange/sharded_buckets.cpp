// SPDX-License-Identifier: BSD-3-Clause
// The buckets of a ShardedBuffer: their memory, and their collectives.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "detail/sharded_state.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/layout/slice.hpp"

namespace rankmesh::exchange::detail {

using rankmesh::detail::GroupAccess;

namespace {

std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

std::vector<ShardBucket> divided(const std::vector<std::int64_t>& sizes, DataType type,
                                 std::int64_t bytes, std::int64_t members) {
  const auto element = static_cast<std::int64_t>(size_of(type));
  const std::int64_t limit = bytes / element;
  const std::int64_t alignment = std::max(std::int64_t{1}, 16 / element);
  std::vector<ShardBucket> buckets;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i == 0 || rounded_up(buckets.back().count, alignment) + sizes[i] > limit) {
      buckets.emplace_back();
      buckets.back().first_tensor = i;
    }
    ShardBucket& bucket = buckets.back();
    bucket.begins.push_back(rounded_up(bucket.count, alignment));
    bucket.count = bucket.begins.back() + sizes[i];
  }
  for (ShardBucket& bucket : buckets)
    bucket.share = rounded_up(Slice::of(bucket.count, members, 0).size(), alignment);
  return buckets;
}

bool ShardBucket::is_idle() const {
  return contents == Whole::gathered && std::ranges::find(is_used, true) == is_used.end();
}

void ShardedMemory::State::finish(ShardBucket& bucket) {
  if (!bucket.work) return;
  bucket.work->wait();
  bucket.work.reset();
  if (bucket.contents != ShardBucket::Whole::reducing) return;
  std::erase(reducing, static_cast<std::size_t>(&bucket - buckets.data()));
  bucket.contents = ShardBucket::Whole::nothing;
  if (bucket.reduced != nullptr) {
    const Buffer result = bucket.reduced->buffer();
    if (result.count > 0)
      std::memcpy(share_of(bucket).data, result.data, static_cast<std::size_t>(result.bytes()));
    bucket.reduced = nullptr;
  }
  if (!options.keep_whole) take(bucket);
}

void ShardedMemory::State::take(ShardBucket& bucket) {
  bucket.contents = ShardBucket::Whole::nothing;
  if (bucket.whole != nullptr) spare.push_back(std::exchange(bucket.whole, nullptr));
}

// Returns a bucket whose gathered values the program does not use, or null. If there are several,
// returns the farthest one, which the program probably needs last.
ShardBucket* ShardedMemory::State::farthest_idle() {
  ShardBucket* farthest = nullptr;
  std::int64_t most = -1;
  for (std::int64_t b = 0; b < std::ssize(buckets); ++b) {
    ShardBucket& bucket = buckets[static_cast<std::size_t>(b)];
    const std::int64_t ahead = (b - place) * step;
    const bool is_needed_soon = ahead >= 0 && ahead <= options.prefetch;
    if (!bucket.is_idle() || is_needed_soon || std::abs(ahead) <= most) continue;
    farthest = &bucket;
    most = std::abs(ahead);
  }
  return farthest;
}

bool ShardedMemory::State::provide(ShardBucket& bucket, bool is_urgent) {
  if (bucket.whole != nullptr) return true;
  const bool is_limit_reached = slots > options.prefetch;
  if (spare.empty() && is_limit_reached) {
    if (ShardBucket* idle = farthest_idle()) {
      finish(*idle);
      take(*idle);
    } else if (!is_urgent) {
      return false;
    } else if (!reducing.empty()) {
      finish(buckets[reducing.front()]);
    }
  }
  if (spare.empty()) {
    spare.push_back(allocated(slot_count));
    ++slots;
  }
  bucket.whole = std::move(spare.back());
  spare.pop_back();
  return true;
}

void ShardedMemory::State::start_gather(ShardBucket& bucket) {
  using Kept = std::pair<std::shared_ptr<Tensor>, std::shared_ptr<Tensor>>;
  bucket.work = GroupAccess::start(group,
                                   {.operation = Operation::all_gather,
                                    .in = share_of(bucket).as_input(),
                                    .out = whole_of(bucket),
                                    .bucket = &bucket - buckets.data() + 1,
                                    .stream = options.stream},
                                   std::make_shared<Kept>(bucket.mine, bucket.whole));
  bucket.contents = ShardBucket::Whole::gathered;
  bucket.before.clear();
}

void ShardedMemory::State::start_reduce(std::size_t number) {
  using Kept = std::pair<std::shared_ptr<Tensor>, std::shared_ptr<Tensor>>;
  ShardBucket& bucket = buckets[number];
  // On host memory, a reduce_scatter cannot work in place.
  if (bucket.mine == nullptr && kind == MemoryKind::host && group.size() > 1)
    bucket.reduced = allocated(bucket.share);
  const auto& result = bucket.reduced != nullptr ? bucket.reduced : bucket.mine;
  bucket.work = GroupAccess::start(group,
                                   {.operation = Operation::reduce_scatter,
                                    .reduction = options.op,
                                    .in = whole_of(bucket).as_input(),
                                    .out = result != nullptr ? result->buffer() : share_of(bucket),
                                    .bucket = static_cast<std::int64_t>(number) + 1,
                                    .stream = options.stream},
                                   std::make_shared<Kept>(result, bucket.whole));
  bucket.contents = ShardBucket::Whole::reducing;
  bucket.is_reduced.assign(bucket.tensors(), false);
  reducing.push_back(number);
}

void ShardedMemory::State::move_to(std::int64_t bucket) {
  if (bucket + 1 == std::ssize(buckets))
    step = -1;
  else if (bucket == 0)
    step = 1;
  else if (bucket != place)
    step = bucket > place ? 1 : -1;
  place = bucket;
}

void ShardedMemory::State::prefetch() {
  for (std::int64_t i = 1; i <= options.prefetch; ++i) {
    const std::int64_t next = place + i * step;
    if (next < 0 || next >= std::ssize(buckets)) return;
    ShardBucket& bucket = buckets[static_cast<std::size_t>(next)];
    if (bucket.contents != ShardBucket::Whole::nothing) continue;
    if (!provide(bucket, /*is_urgent=*/false)) return;
    start_gather(bucket);
  }
}

}  // namespace rankmesh::exchange::detail
