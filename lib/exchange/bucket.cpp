// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/bucket.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "base/detail/bucket_mark.hpp"
#include "detail/agree.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/layout/slice.hpp"

namespace rankmesh::exchange {
namespace {

using rankmesh::detail::GroupAccess;
using rankmesh::detail::UserFunction;

void copy(const Buffer& to, const ConstBuffer& from, StreamRef stream) {
  const auto bytes = static_cast<std::size_t>(from.bytes());
  if (bytes == 0) return;
  if (from.kind == MemoryKind::device)
    device::detail::copy_on_device(to.data, from.data, bytes, stream);
  else
    std::memcpy(to.data, from.data, bytes);
}

}  // namespace

Bucket::Bucket(GroupCoordinator& group, BucketOptions options)
    : group_{group}, life_{group}, options_{options} {
  if (options.bytes < 1)
    throw UsageError{fmt::format("a bucket cannot have {} bytes", options.bytes),
                     "use 1 byte or more"};
}

Bucket::Bucket(Bucket&&) noexcept = default;

// If an exception unwinds the stack, the program does not need the results, and there is no
// warning.
Bucket::~Bucket() {
  if ((added_.empty() && issued_.empty()) || !life_.exists() || std::uncaught_exceptions() > 0)
    return;
  try {
    GroupAccess::runtime(group_).control->log(
        LogLevel::warning,
        fmt::format(
            "a Bucket over '{}' is destroyed on rank {} without wait(): {} buffer{} may not "
            "hold the results; call wait() at the end of each round",
            group_.name(), group_.rank().value(), buffers_, buffers_ == 1 ? "" : "s"));
  } catch (...) {  // of the program's log sink
  }
}

bool Bucket::fits(const Part& part) const {
  if (added_.empty()) return true;
  const Part& first = added_.front();
  return part.in.type == first.in.type && part.in.kind == first.in.kind &&
         part.is_divided == first.is_divided &&
         (added_count_ + part.in.count) * static_cast<std::int64_t>(size_of(first.in.type)) <=
             options_.bytes;
}

void Bucket::add_part(const Part& part) {
  life_.require("Bucket");
  if (!fits(part)) flush();
  ++buffers_;
  added_.push_back(part);
  added_count_ += part.in.count;
  if (added_count_ * static_cast<std::int64_t>(size_of(part.in.type)) >= options_.bytes) flush();
}

void Bucket::add_divided(const ConstBuffer& values, const Buffer& mine) {
  life_.require("Bucket");
  const Slice slice{values.count, group_};
  if (mine.count != slice.size())
    throw UsageError{
        fmt::format("Bucket over '{}': this member's part of {} elements has {} elements, the "
                    "memory for it has {}",
                    group_.name(), values.count, slice.size(), mine.count),
        "pass Slice{n, group}.size() elements"};
  if (values.type != mine.type || values.kind != mine.kind)
    throw UsageError{
        fmt::format(
            "Bucket over '{}': the values are {} in {} memory, the memory for this member's "
            "part is {} in {} memory",
            group_.name(), to_string(values.type), to_string(values.kind), to_string(mine.type),
            to_string(mine.kind)),
        "use the same type and the same kind of memory for both"};
  add_part({values, mine, /*is_divided=*/true});
}

Hash128 Bucket::contents() const {
  std::string text;
  for (const Part& part : added_)
    text += fmt::format("{} {} {} {};", part.in.count, to_string(part.in.type),
                        static_cast<int>(part.in.kind), part.is_divided);
  return hash_bytes(text);
}

// In the first round, compares the contents on all members, so that all members throw the same
// error. In later rounds, compares the contents with those of the first round, without
// communication.
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
  const auto describe = [&] {
    detail::Arguments arguments{
        fmt::format("Bucket over '{}', collective {}", group_.name(), number),
        {fmt::format("{} buffer{}", added_.size(), added_.size() == 1 ? "" : "s")}};
    for (const Part& part : added_)
      arguments.entries.push_back(fmt::format(
          "buffer {} of {} {}{}{}", arguments.entries.size() - 1, part.in.count,
          to_string(part.in.type), part.in.kind == MemoryKind::device ? " on the device" : "",
          part.is_divided ? ", to be divided" : ""));
    return arguments;
  };
  detail::agree(group_, contents,
                {UserFunction::bucket, describe,
                 "add buffers of the same counts and types in the same order on every rank"});
  first_round_.push_back(contents);
}

// Returns what the members compare in each round: the number of the collective, and the first
// buffer whose memory had another place in the first round. Memory that is new may belong to any
// buffer.
std::int64_t Bucket::mark_of_collective() {
  const auto first = static_cast<std::size_t>(buffers_) - added_.size();
  rankmesh::detail::BucketMark mark{.number = std::ssize(issued_) + 1,
                                    .function = UserFunction::bucket};
  for (std::size_t i = 0; i < added_.size(); ++i) {
    const void* const memory = added_[i].in.data;
    if (is_first_round_) memory_.push_back(memory);
    if (memory_[first + i] == memory) continue;
    const auto place = std::ranges::find(memory_, memory) - memory_.begin();
    if (place == std::ssize(memory_)) continue;
    mark.place = static_cast<std::int64_t>(first + i) + 1;
    mark.earlier_place = place + 1;
    break;
  }
  return mark.word();
}

// Whether the collective needs memory of its own.
bool Bucket::needs_copy() const {
  const Part& first = added_.front();
  return added_.size() > 1 || (first.is_divided && first.in.count % group_.size() != 0);
}

// Returns the elements that a part needs in each member's block of a reduce_scatter, or in the
// memory of an all_reduce. The slice of member 0 is the largest.
std::int64_t Bucket::places(const Part& part) const {
  return part.is_divided ? Slice::of(part.in.count, group_.size(), 0).size() : part.in.count;
}

const std::shared_ptr<Bucket::Flat>& Bucket::flat(std::size_t collective) {
  if (collective >= flat_.size()) flat_.resize(collective + 1);
  if (flat_[collective] != nullptr) return flat_[collective];
  std::int64_t block = 0;
  for (const Part& part : added_) block += places(part);
  const Part& like = added_.front();
  const auto memory = [&](std::int64_t count) {
    return Tensor::allocate(like.in.type, {count}, like.in.kind);
  };
  Flat made{memory(like.is_divided ? block * group_.size() : block), std::nullopt};
  if (like.is_divided) made.out = memory(block);
  return flat_[collective] = std::make_shared<Flat>(std::move(made));
}

// Copies the parts into the memory of their collective. In a reduce_scatter, block k has the slices
// of member k of all parts. Elements that pad a slice are never copied back.
void Bucket::pack(const Flat& flat) const {
  std::int64_t offset = 0;
  if (!added_.front().is_divided) {
    for (const Part& part : added_) {
      copy(flat.in.buffer().slice(offset, part.in.count), part.in, options_.stream);
      offset += part.in.count;
    }
    return;
  }
  const std::int64_t block = flat.out->count();
  for (const Part& part : added_) {
    for (std::int64_t k = 0; k < group_.size(); ++k) {
      const Slice slice = Slice::of(part.in.count, group_.size(), k);
      copy(flat.in.buffer().slice(k * block + offset, slice.size()),
           part.in.slice(slice.begin(), slice.size()), options_.stream);
    }
    offset += places(part);
  }
}

void Bucket::unpack(const Issued& issued, const Flat& flat) const {
  const Tensor& from = flat.out ? *flat.out : flat.in;
  std::int64_t offset = 0;
  for (const Part& part : issued.parts) {
    copy(part.out, from.buffer().slice(offset, part.out.count).as_input(), options_.stream);
    offset += places(part);
  }
}

void Bucket::flush() {
  life_.require("Bucket");
  if (added_.empty()) return;
  agree(contents());
  const std::int64_t mark = mark_of_collective();
  const bool is_divided = added_.front().is_divided;
  ConstBuffer in = added_.front().in;
  Buffer out = added_.front().out;
  std::shared_ptr<Flat> kept;
  if (needs_copy()) {
    kept = flat(issued_.size());
    pack(*kept);
    in = kept->in.buffer().as_input();
    out = is_divided ? kept->out->buffer() : kept->in.buffer();
  } else {
    added_.clear();
  }
  Work work = GroupAccess::start(
      group_,
      {.operation = is_divided ? Operation::reduce_scatter : Operation::all_reduce,
       .reduction = options_.op,
       .in = in,
       .out = out,
       .bucket = mark,
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
    if (!issued_[i].parts.empty()) unpack(issued_[i], *flat_[i]);
  }
  issued_.clear();
  buffers_ = 0;
  is_first_round_ = false;
}

}  // namespace rankmesh::exchange
