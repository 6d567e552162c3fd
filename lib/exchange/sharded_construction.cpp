// SPDX-License-Identifier: BSD-3-Clause
// The construction of a ShardedBuffer: its arguments, on which the members agree, and its memory.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "detail/agree.hpp"
#include "detail/sharded_state.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/device/device_buffer.hpp"

namespace rankmesh::exchange::detail {

using Whole = ShardBucket::Whole;

void zero(const Buffer& memory, StreamRef stream) {
  const auto bytes = static_cast<std::size_t>(memory.bytes());
  if (memory.kind == MemoryKind::device)
    device::detail::zero_on_device(memory.data, bytes, stream);
  else if (bytes > 0)
    std::memset(memory.data, 0, bytes);
}

[[noreturn]] void ShardedMemory::State::refuse(const std::string& what, const char* hint) const {
  throw UsageError{fmt::format("ShardedBuffer over '{}': {}", group.name(), what), hint};
}

namespace {

// Returns whether all tensors with their padding have fewer than 2^63 bytes.
bool are_countable(const std::vector<std::int64_t>& sizes, DataType type, std::int64_t members) {
  constexpr std::int64_t alignment = 16;
  std::int64_t limit =
      std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(size_of(type));
  for (const std::int64_t size : sizes) {
    const std::int64_t padding = alignment * (members + 1);
    if (size > limit - padding) return false;
    limit -= size + padding;
  }
  return true;
}

// Checks the arguments of a constructor.
template <class State>
void validate(const State& s) {
  const ShardedBufferOptions& options = s.options;
  if (options.bytes < 1 || options.prefetch < 0)
    s.refuse(
        fmt::format("a bucket of {} bytes, {} buckets in advance", options.bytes, options.prefetch),
        "set bytes to 1 or more, and prefetch to 0 or more");
  if (std::ranges::any_of(s.sizes, [](std::int64_t n) { return n < 0; }))
    s.refuse("a tensor has a negative number of elements", "use sizes of 0 or more");
  if (!are_countable(s.sizes, s.type, s.group.size()))
    s.refuse("the tensors have 2^63 bytes or more together",
             "sizes are numbers of elements, not of bytes: correct them");
}

template <class State>
Arguments arguments_of(const State& s) {
  const ShardedBufferOptions& options = s.options;
  const std::size_t count = s.sizes.size();
  Arguments arguments{fmt::format("ShardedBuffer over '{}'", s.group.name())};
  arguments.entries.push_back(fmt::format(
      "{} tensor{} of {} on the {}, {} bytes per bucket, keep_whole {}, prefetch {}, {}", count,
      count == 1 ? "" : "s", to_string(s.type), to_string(s.kind), options.bytes,
      options.keep_whole, options.prefetch, to_string(options.op)));
  for (std::size_t t = 0; t < count; ++t)
    arguments.entries.push_back(fmt::format("tensor {} of {} elements", t, s.sizes[t]));
  return arguments;
}

// Throws on all members if the members pass different arguments, or if `prepare` throws on one of
// them.
template <class State>
void verify_agreement(const State& s, const std::function<void()>& prepare) {
  const Arguments arguments = arguments_of(s);
  agree(s.group, hash_of(arguments),
        {UserFunction::sharded_buffer, [&] { return arguments; },
         "pass the same sizes and options on every rank", failure_of(prepare)});
}

}  // namespace

ShardedMemory::ShardedMemory(GroupCoordinator& group, std::vector<std::int64_t> sizes,
                             DataType type, MemoryKind kind, const ShardedBufferOptions& options)
    : state_{new State{.group = group,
                       .life = rankmesh::detail::GroupLife{group},
                       .type = type,
                       .kind = kind,
                       .options = options,
                       .sizes = std::move(sizes)}} {
  State& s = *state_;
  verify_agreement(s, [&] {
    validate(s);
    s.buckets = divided(s.sizes, type, options.bytes, group.size());
    s.allocate();
  });
}

ShardedMemory::ShardedMemory(const ShardedMemory& like, DataType type,
                             const ShardedBufferOptions& options) {
  const State& from = like.state();
  state_.reset(new State{.group = from.group,
                         .life = from.life,
                         .type = type,
                         .kind = from.kind,
                         .options = options,
                         .sizes = from.sizes});
  State& s = *state_;
  s.options.bytes = from.options.bytes;
  s.options.stream = from.options.stream;
  verify_agreement(s, [&] {
    validate(s);
    for (const ShardBucket& bucket : from.buckets)
      s.buckets.push_back({.first_tensor = bucket.first_tensor,
                           .begins = bucket.begins,
                           .count = bucket.count,
                           .share = bucket.share});
    s.allocate();
  });
}

std::shared_ptr<Tensor> ShardedMemory::State::allocated(std::int64_t count) const {
  const auto refuse_bytes = [&] {
    refuse(fmt::format("there is too little memory on rank {} for {} elements of {}",
                       group.rank().value(), count, to_string(type)),
           "use a larger group, smaller buckets, a smaller prefetch, or keep_whole = false");
  };
  try {
    return std::make_shared<Tensor>(Tensor::allocate(type, {count}, kind));
  } catch (const std::bad_alloc&) {
    refuse_bytes();
  } catch (const std::length_error&) {
    refuse_bytes();
  }
  return nullptr;
}

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
    memory = allocated(options.keep_whole ? padded : bucket.share);
    if (kind == MemoryKind::device) zero(memory->buffer(), options.stream);
    if (options.keep_whole) bucket.contents = Whole::gathered;
  }
}

}  // namespace rankmesh::exchange::detail
