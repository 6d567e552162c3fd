// SPDX-License-Identifier: BSD-3-Clause
// The calls and the marks of a record.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "detail/image.hpp"
#include "rankmesh/base/hash.hpp"

namespace rankmesh::record::detail {
namespace {

// What all members of a group transfer together, in bytes.
constexpr double most_bytes = static_cast<double>(std::uint64_t{1} << 62);

// The sequence words of the entries that the ring still has, in ascending order.
std::vector<std::uint64_t> sequences_of(const Image& image, const std::string& name) {
  const std::uint64_t next = image.header().next.load(relaxed) / format::position_unit;
  const std::uint64_t overwritten =
      next > format::entry_count ? next - format::entry_count : std::uint64_t{0};
  std::vector<std::uint64_t> sequences;
  for (std::size_t slot = 0; slot < format::entry_count; ++slot) {
    const std::uint64_t sequence = image.entry(slot).sequence.load(relaxed);
    const std::uint64_t position = sequence / format::position_unit;
    if (position <= overwritten) continue;  // being written, or never written
    const std::uint64_t state = sequence & format::state_mask;
    if (position > next || position % format::entry_count != slot || state < 1 ||
        state > static_cast<std::uint64_t>(State::failed))
      refuse_altered(name, fmt::format("its entry {} is not valid", slot));
    sequences.push_back(sequence);
  }
  std::ranges::sort(sequences);
  return sequences;
}

// Returns the mark's text, which takes the place of four words of a call.
std::string text_of(const format::Entry& entry) {
  const std::uint64_t words[] = {entry.detail.load(relaxed), entry.count.load(relaxed),
                                 entry.call.load(relaxed), entry.site.load(relaxed)};
  static_assert(sizeof words == format::mark_bytes);
  char text[format::mark_bytes];
  std::memcpy(text, words, sizeof text);
  return printable({text, ::strnlen(text, sizeof text)});
}

// Returns whether the values exist and the members are members of the group.
bool is_possible(const CallDescriptor& call, const Group& group) {
  if ((call.kind & 0xff) >= operation_count ||
      (call.kind >> 8 & 0xff) > static_cast<std::uint64_t>(DataType::float8_e5m2) ||
      (call.kind >> 16 & 0xff) > static_cast<std::uint64_t>(ReduceOp::avg) || call.count < 0)
    return false;
  const bool is_user = call.has(CallDescriptor::user);
  if (static_cast<double>(call.count) * static_cast<double>(is_user ? 1 : size_of(call.type())) *
          static_cast<double>(std::max<std::int64_t>(group.size, 1)) >
      most_bytes)
    return false;
  if (group.size == 0) return true;
  const auto is_member = [&](std::uint64_t index) {
    return index < static_cast<std::uint64_t>(group.size);
  };
  const Operation operation = call.operation();
  if ((has_root(operation) || is_point_to_point(operation)) && !is_member(call.root()))
    return false;
  return operation != Operation::send_recv || is_member(call.source());
}

// Returns the index of a group without a line. No group of another rank has its identity.
std::size_t unknown_group(Record& record) {
  Group group;
  group.identity = hash_bytes(fmt::format("unknown group of rank {}", record.rank.value())).low;
  if (record.groups.empty() || record.groups.back().identity != group.identity)
    record.groups.push_back(std::move(group));
  return record.groups.size() - 1;
}

class Entries {
 public:
  Entries(const Clock& clock, const std::string& name, Record& record, bool has_call_sites)
      : clock_{clock},
        name_{name},
        record_{record},
        known_groups_{record.groups.size()},
        has_call_sites_{has_call_sites} {}

  void add(const format::Entry& entry, std::uint64_t sequence) {
    if (entry.kind.load(relaxed) == format::mark_kind)
      add_mark(entry, sequence);
    else
      add_call(entry, sequence);
  }

 private:
  void add_mark(const format::Entry& entry, std::uint64_t sequence) {
    if (static_cast<State>(sequence & format::state_mask) != State::ended)
      return;  // its text is not complete
    const auto time = clock_.of_counter(entry.begin.load(relaxed));
    record_.marks.push_back(
        {sequence / format::position_unit, time.value_or(clock_.opening()), text_of(entry)});
  }

  void add_call(const format::Entry& entry, std::uint64_t sequence) {
    const std::uint64_t word = entry.call.load(relaxed);
    Call call;
    call.sequence = sequence / format::position_unit;
    call.state = static_cast<State>(sequence & format::state_mask);
    call.is_async = (word & format::async_bit) != 0;
    call.is_captured = (word & format::captured_bit) != 0;
    call.is_cancelled = (word & format::cancelled_bit) != 0;
    call.number = word & format::number_mask;
    call.descriptor.kind = entry.kind.load(relaxed);
    call.descriptor.detail = entry.detail.load(relaxed);
    call.descriptor.count = static_cast<std::int64_t>(entry.count.load(relaxed));
    const std::uint64_t carrier = word >> format::carrier_shift & format::carrier_mask;
    const std::uint64_t group = word >> format::group_shift & 0xffff;
    const bool has_group = group < known_groups_ || group == format::unknown_group;
    const std::uint64_t carriers =
        static_cast<std::uint64_t>(Carrier::first_of_program) + record_.transports.size();
    if (!has_group || carrier >= carriers) refuse(call);
    call.carrier = static_cast<Carrier>(carrier);
    call.group = group == format::unknown_group ? unknown_group(record_) : group;
    if (!is_possible(call.descriptor, record_.groups[call.group])) refuse(call);
    // The number is written after the entry, so it may be that of an older one.
    const std::uint64_t site = has_call_sites_ ? entry.site.load(relaxed) : 0;
    if (site <= record_.call_sites.size()) call.site = site;
    add_times(entry, call);
    record_.calls.push_back(call);
  }

  void add_times(const format::Entry& entry, Call& call) const {
    const std::uint64_t begin = entry.begin.load(relaxed);
    const std::uint64_t end = entry.end.load(relaxed);
    if ((entry.call.load(relaxed) & format::timed_bit) == 0) return;
    call.begin = clock_.of_counter(begin);
    if (call.is_over() && end >= begin) call.end = clock_.of_counter(end);
  }

  [[noreturn]] void refuse(const Call& call) const {
    refuse_altered(name_, fmt::format("its call {} is not possible", call.sequence));
  }

  const Clock& clock_;
  const std::string& name_;
  Record& record_;
  std::size_t known_groups_;
  bool has_call_sites_;
};

}  // namespace

void read_entries(const Image& image, const Clock& clock, const std::string& name, Record& record) {
  record.calls_made = image.header().next.load(relaxed) / format::position_unit;
  Entries entries{clock, name, record, image.header().call_sites != 0};
  for (const std::uint64_t sequence : sequences_of(image, name))
    entries.add(image.entry(sequence / format::position_unit % format::entry_count), sequence);
}

}  // namespace rankmesh::record::detail
