// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes records. Whatever the bytes are, they are refused, or they give records from which every
// report can be made. The input is a list of changes to a valid record, because random bytes would
// not get past the first check:
//
//   o a b c n bytes...   writes n bytes at the offset a + 256 b + 65536 c
//   g text               the rest of the input becomes the lines of the groups
//   s a b c              cuts the record to this size
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "check.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/record/find.hpp"
#include "rankmesh/record/format.hpp"
#include "rankmesh/record/read.hpp"
#include "record/alignment.hpp"
#include "record/diagnosis.hpp"
#include "record/recorded_rank.hpp"
#include "report/reports.hpp"
#include "report/timeline.hpp"
#include "report/write.hpp"
#include "require.hpp"

using namespace rankmesh;
namespace format = rankmesh::record::format;
using Bytes = std::vector<std::byte>;

namespace {

template <class Number>
void store(Bytes& bytes, std::size_t offset, Number number) {
  std::memcpy(bytes.data() + offset, &number, sizeof number);
}

// Returns the record of a rank with some calls, the same bytes each time.
Bytes record_of(std::int64_t rank) {
  auto facts = rankmesh_test::facts_of_rank_1();
  facts.rank = Rank{rank};
  const rankmesh_test::RecordedRank recorded{facts};
  recorded.tp.record->counter_is_clock = 1;
  for (std::uint64_t i = 1; i <= 6; ++i) {
    recorded.make(recorded.tp, rankmesh_test::call_of(Operation::all_reduce), i);
    recorded.make(recorded.dp, rankmesh_test::call_of(Operation::broadcast), i);
  }
  recorded.recorder->mark("step 1");
  CallDescriptor message = rankmesh_test::call_of(Operation::send);
  message.kind |= std::uint64_t{1} << 32;
  recorded.make(recorded.dp, message, 0);
  static_cast<void>(recorded.begin(recorded.tp, rankmesh_test::call_of(Operation::barrier, 0), 7));
  Bytes bytes = record::copy(rankmesh_test::own_record(facts.mesh_key));
  store(bytes, offsetof(format::Header, process_id), std::int64_t{1000 + rank});
  store(bytes, offsetof(format::Header, opened_at), std::int64_t{1});
  for (const std::size_t pair : {offsetof(format::Header, first), offsetof(format::Header, last)})
    for (const std::size_t word : {std::size_t{8}, std::size_t{16}})
      store(bytes, pair + word, std::uint64_t{1'000'000});
  for (std::size_t i = 1; i <= 15; ++i) {
    const std::size_t entry = format::header_bytes + i * sizeof(format::Entry);
    store(bytes, entry + offsetof(format::Entry, begin), std::uint64_t{2'000'000 + i * 1000});
    store(bytes, entry + offsetof(format::Entry, end), std::uint64_t{2'000'500 + i * 1000});
  }
  return bytes;
}

std::size_t offset_in(const std::uint8_t* data) {
  return (data[0] + std::size_t{256} * data[1] + std::size_t{65536} * data[2]) %
         (format::total_bytes + 1);
}

void replace_groups(Bytes& bytes, const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t begin = format::header_bytes + format::entry_count * sizeof(format::Entry);
  size = std::min(size, bytes.size() - std::min(begin, bytes.size()));
  if (size != 0) std::memcpy(bytes.data() + begin, data, size);
  store(bytes, offsetof(format::Header, group_bytes_used), static_cast<std::uint32_t>(size));
}

Bytes changed(Bytes bytes, const std::uint8_t* data, std::size_t size) {
  std::size_t cut = bytes.size();
  while (size >= 4) {
    if (data[0] == 'g') {
      replace_groups(bytes, data + 1, size - 1);
      break;
    }
    const std::size_t offset = offset_in(data + 1);
    std::size_t used = 4;
    if (data[0] == 's') {
      cut = std::min(cut, offset);
    } else if (size > 5) {
      const std::size_t length = std::min({std::size_t{data[4]}, size - 5, bytes.size() - offset});
      if (length != 0) std::memcpy(bytes.data() + offset, data + 5, length);
      used = 5 + length;
    }
    data += used;
    size -= used;
  }
  bytes.resize(cut);
  return bytes;
}

bool is_printable(const std::string& text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 127; });
}

void check(const record::Record& record) {
  constexpr record::Time limit = record::Time{1} << 60;
  const auto is_in = [](record::Time time) { return time >= -limit && time <= limit; };
  require(record.rank >= Rank{0} && record.rank.value() < record.world_size, "a rank of no world");
  require(is_in(record.read_at), "a time too far away");
  require(is_printable(record.mesh + record.host + record.coordinates + record.reason), "a text");
  std::uint64_t last = 0;
  for (const record::Call& call : record.calls) {
    require(call.group < record.groups.size(), "a group that does not exist");
    require(call.sequence > last && call.sequence <= record.calls_made, "the order of the calls");
    require(is_in(call.begin.value_or(0)) && is_in(call.end.value_or(0)), "a time too far away");
    require(is_printable(to_string(record, call)), "the text of a call");
    last = call.sequence;
  }
  for (const record::Mark& mark : record.marks) require(is_printable(mark.text), "a mark");
}

void make_reports(const std::vector<record::Record>& records) {
  static_cast<void>(report::to_string(report::trace(records), report::Format::text));
  static_cast<void>(report::to_string(report::trace(records), report::Format::json));
  static_cast<void>(report::to_string(report::follow(records, records), report::Format::text));
  if (records[0].mesh_key != records[1].mesh_key) return;
  const auto aligned = record::align(records);
  const auto ignore = [](std::string_view) {};
  report::write_trace_events(ignore, aligned);
  report::write_html(ignore, aligned);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes first = record_of(0), second = record_of(1);
  try {
    std::vector<record::Record> records{record::read(first, "first")};
    records.push_back(record::read(changed(second, data, size), "second"));
    check(records.back());
    make_reports(records);
  } catch (const DataError& error) {
    require(!error.hint().empty() && error.message().size() < 1000,
            "a refusal without a hint, or without end");
  }
  return 0;
}
