// SPDX-License-Identifier: BSD-3-Clause
#include "record/matching.hpp"

#include <algorithm>
#include <tuple>

#include "detail/message_matching.hpp"

namespace rankmesh::record {
namespace {

/// A collective call, with the key that it shares with the calls of the other members.
struct KeyedCall {
  std::uint64_t mesh, group, number;
  CallIndex index;

  [[nodiscard]] auto key() const { return std::tuple{mesh, group, number}; }
};

std::vector<KeyedCall> keyed_collectives(std::span<const Record> records) {
  std::vector<KeyedCall> result;
  for (std::size_t r = 0; r < records.size(); ++r) {
    const Record& record = records[r];
    for (std::size_t c = 0; c < record.calls.size(); ++c) {
      const Call& call = record.calls[c];
      if (call.number == 0 || call.is_captured || call.group >= record.groups.size()) continue;
      result.push_back({record.mesh_key, record.groups[call.group].identity, call.number, {r, c}});
    }
  }
  // Stable: the calls of a meeting stay in the order of the records.
  std::ranges::stable_sort(result, {}, [](const KeyedCall& call) { return call.key(); });
  return result;
}

const Call& call_at(std::span<const Record> records, CallIndex index) {
  return records[index.record].calls[index.call];
}

}  // namespace

Matching::Matching(std::span<const Record> records) {
  for (const Record& record : records) meeting_of_.emplace_back(record.calls.size(), none);
  const std::vector<KeyedCall> calls = keyed_collectives(records);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const KeyedCall& call = calls[i];
    if (i == 0 || calls[i - 1].key() != call.key()) meetings_.emplace_back();
    Meeting& meeting = meetings_.back();
    const Call& first =
        call_at(records, meeting.calls.empty() ? call.index : meeting.calls.front());
    meeting.agrees =
        meeting.agrees && first.descriptor.matches(call_at(records, call.index).descriptor);
    meeting.calls.push_back(call.index);
    const Record& record = records[call.index.record];
    const std::int64_t size = record.groups[call_at(records, call.index).group].size;
    meeting.has_all_members = static_cast<std::int64_t>(meeting.calls.size()) == size;
    meeting_of_[call.index.record][call.index.call] = meetings_.size() - 1;
  }
  messages_ = detail::match_messages(records, *this);
}

bool synchronises(const CallDescriptor& descriptor) {
  const Operation operation = descriptor.operation();
  if (facts_of(operation).awaited != Awaited::all) return false;
  return !has_data(operation) || (descriptor.count > 0 && !descriptor.has(CallDescriptor::blocks));
}

std::int64_t bytes_of(const Record& record, const Call& call) {
  const CallDescriptor& descriptor = call.descriptor;
  if (!has_data(descriptor.operation())) return 0;
  const auto element = static_cast<std::int64_t>(
      descriptor.has(CallDescriptor::user) ? 1 : size_of(descriptor.type()));
  const bool has_a_block_per_member =
      (gathers(descriptor.operation()) || scatters(descriptor.operation())) &&
      !descriptor.has(CallDescriptor::blocks);
  const std::int64_t blocks = has_a_block_per_member && call.group < record.groups.size()
                                  ? record.groups[call.group].size
                                  : 1;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(descriptor.count, element, &bytes) ||
      __builtin_mul_overflow(bytes, blocks, &bytes))
    return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(bytes, 0);
}

const std::string& family_of(const Record& record, const Call& call) {
  static const std::string unknown = "(unknown group)";
  if (call.group >= record.groups.size()) return unknown;
  const std::vector<std::string>& names = record.groups[call.group].names;
  const std::size_t family = call.descriptor.name_index();
  return family < names.size() ? names[family] : unknown;
}

}  // namespace rankmesh::record
