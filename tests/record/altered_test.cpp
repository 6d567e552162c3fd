// SPDX-License-Identifier: BSD-3-Clause
// Records that were cut or altered are refused, or read as something possible; nothing crashes.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "rankmesh/base/error.hpp"
#include "rankmesh/record/find.hpp"
#include "rankmesh/record/format.hpp"
#include "rankmesh/record/read.hpp"
#include "record/recorded_rank.hpp"
#include "support/checks.hpp"

using namespace rankmesh;
namespace format = rankmesh::record::format;
using rankmesh_test::call_of;
using rankmesh_test::RecordedRank;
using rankmesh_test::TemporaryFolder;

namespace {

using Bytes = std::vector<std::byte>;

Bytes valid_record() {
  const TemporaryFolder folder;
  {
    const RecordedRank rank{rankmesh_test::facts_of_rank_1(), folder.path()};
    for (std::uint64_t i = 1; i <= 5'000; ++i)
      rank.make(i % 3 == 0 ? rank.tp : rank.dp, call_of(Operation::all_reduce), i);
    rank.recorder->mark("step 1");
    rank.recorder->publish(
        {.text = "close()", .point = 77, .ranks = RankSet::of(std::vector{Rank{0}, Rank{1}})});
  }
  return record::copy(record::sources_in(folder.path()).at(0).path);
}

// Returns the message of the refusal; empty if the record is read.
std::string refusal(const Bytes& bytes) {
  try {
    static_cast<void>(record::read(bytes, "job/x.rankmesh"));
  } catch (const DataError& error) {
    CHECK_FALSE(error.hint().empty());
    return error.message();
  }
  return "";
}

std::string refusal_with(const std::function<void(Bytes&)>& change) {
  Bytes bytes = valid_record();
  change(bytes);
  return refusal(bytes);
}

template <class Number>
void store(Bytes& bytes, std::size_t offset, Number number) {
  std::memcpy(bytes.data() + offset, &number, sizeof number);
}

std::size_t word_of(std::size_t slot, std::size_t offset) {
  return format::header_bytes + slot * sizeof(format::Entry) + offset;
}
constexpr std::size_t groups_begin =
    format::header_bytes + format::entry_count * sizeof(format::Entry);

}  // namespace

TEST_CASE("a record that was cut is refused, wherever it was cut") {
  const Bytes whole = valid_record();
  REQUIRE(refusal(whole) == "");
  for (std::size_t size = 0; size < whole.size(); size += 64) {
    CAPTURE(size);
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE_FALSE(refusal(cut).empty());
  }
  CHECK_CONTAINS(refusal(Bytes(whole.begin(), whole.begin() + 5000)),
                 "the record 'job/x.rankmesh' is truncated: it has 5000 bytes instead of 528384");
  Bytes longer = whole;
  longer.push_back({});
  CHECK_CONTAINS(refusal(longer), "it has 528385 bytes instead of 528384");
  CHECK(refusal({}) == "'job/x.rankmesh' is not a record of rankmesh");
}

TEST_CASE("records of other versions and machines are refused by name") {
  const auto with_number = [](std::size_t offset, std::uint32_t number) {
    return refusal_with([=](Bytes& bytes) { store(bytes, offset, number); });
  };
  CHECK(with_number(offsetof(format::Header, version), 1) ==
        "the record 'job/x.rankmesh' has version 1, and this program reads version 4");
  CHECK_CONTAINS(with_number(offsetof(format::Header, byte_order), 0x04030201),
                 "another byte order");
  CHECK_CONTAINS(with_number(offsetof(format::Header, magic), 0), "is not a record");
  CHECK_CONTAINS(with_number(offsetof(format::Header, entry_bytes), 32), "its sizes");
}

TEST_CASE("impossible values are refused, with their name") {
  struct Case {
    const char* name;
    std::size_t offset;
    std::int64_t value;
    const char* message;
  };
  using format::Entry, format::Header;
  // After 5,001 entries, the ring's entry 1000 has the number 1000 + 4096.
  constexpr std::int64_t sequence = (1000 + 4096 - 4096) * 64;
  const Case cases[] = {
      {"a world of no ranks", offsetof(Header, world_size), 0, "'world_size'"},
      {"a rank outside the world", offsetof(Header, rank), 4, "'rank'"},
      {"no process", offsetof(Header, process_id), 0, "'process_id'"},
      {"a position in parts", offsetof(Header, next), 258, "'next'"},
      {"an entry of another place", word_of(1000, offsetof(Entry, sequence)),
       sequence + 4099 * 64 + 3, "its entry 1000"},
      {"an entry of the future", word_of(1000, offsetof(Entry, sequence)),
       sequence + 3 * 4096 * 64 + 3, "its entry 1000"},
      {"an operation that does not exist", word_of(1000, offsetof(Entry, kind)),
       static_cast<std::int64_t>(operation_count), "is not possible"},
      {"an element type that does not exist", word_of(1000, offsetof(Entry, kind)), 0x0e03,
       "is not possible"},
      {"a root outside the group", word_of(1000, offsetof(Entry, kind)), std::int64_t{2} << 32 | 1,
       "is not possible"},
      {"a negative count", word_of(1000, offsetof(Entry, count)), -1, "is not possible"},
      {"more bytes than memory has", word_of(1000, offsetof(Entry, count)), std::int64_t{1} << 60,
       "is not possible"},
      {"a group that does not exist", word_of(1000, offsetof(Entry, call)),
       std::int64_t{77} << format::group_shift, "is not possible"},
      {"lines that are not JSON", groups_begin, 0x4141414141414141, "its line 0"},
  };
  for (const Case& altered : cases) {
    CAPTURE(altered.name);
    // Slots 0 to 905 hold the positions from 4096 on; 1000 holds 1000 itself.
    const std::string message =
        refusal_with([&](Bytes& bytes) { store(bytes, altered.offset, altered.value); });
    CHECK_CONTAINS(message, altered.message);
  }
}

TEST_CASE("groups are checked against the world") {
  const std::pair<const char*, bool> lines[] = {
      {R"({"identity":"0000000000000001","names":["tp"],"size":2,"ranks":"0-1"})", true},
      {R"({"identity":"0000000000000001","names":["tp"],"size":2,"ranks":""})", true},
      {R"({"identity":"0000000000000001","names":["tp"],"size":2,"ranks":"0-2"})", false},
      {R"({"identity":"0000000000000001","names":["tp"],"size":2,"ranks":"3-4"})", false},
      {R"({"identity":"0000000000000001","names":["tp"],"size":5,"ranks":""})", false},
      {R"({"identity":"0000000000000001","names":["tp"],"size":-1,"ranks":""})", false},
      {R"({"identity":"000000000000001","names":["tp"],"size":2,"ranks":""})", false},
      {R"({"identity":"000000000000000x","names":["tp"],"size":2,"ranks":""})", false},
      {R"({"identity":"0000000000000001","names":[1],"size":2,"ranks":""})", false},
      {R"({"identity":"0000000000000001","names":["tp"],"size":2})", false},
      {R"(["identity"])", false},
      {R"({"file":"a program"})", true},
      {R"({"file":1})", false},
      {R"({"site":[]})", true},
      {R"({"site":[[0,1]]})", false},
      {R"({"site":[1]})", false},
      {R"({"site":1})", false},
      {"", false},
  };
  Bytes bytes = valid_record();
  const std::string others =
      R"({"identity":"0000000000000002","names":["dp"],"size":2,"ranks":"1,3"})"
      "\n"
      R"({"identity":"0000000000000003","names":["pp"],"size":2,"ranks":"1,3"})"
      "\n";
  for (const auto& [line, is_valid] : lines) {
    CAPTURE(line);
    const std::string text = std::string{line} + "\n" + others;
    std::memcpy(bytes.data() + groups_begin, text.data(), text.size());
    store(bytes, offsetof(format::Header, group_bytes_used),
          static_cast<std::uint32_t>(text.size()));
    CHECK(refusal(bytes).empty() == is_valid);
  }
}

TEST_CASE("bytes that were altered at random never crash the reader") {
  const Bytes whole = valid_record();
  std::minstd_rand random{1};
  std::size_t refused = 0;
  const auto used = [&] {
    std::uint32_t size = 0;
    std::memcpy(&size, whole.data() + offsetof(format::Header, group_bytes_used), sizeof size);
    return size;
  }();
  for (int round = 0; round < 1000; ++round) {
    Bytes bytes = whole;
    // Half of the changes hit the header or the groups, which are small.
    const std::size_t begin = round % 4 == 0 ? groups_begin : 0;
    const std::size_t size = round % 4 == 0   ? used
                             : round % 4 == 1 ? sizeof(format::Header)
                                              : groups_begin;
    for (unsigned change = 0; change <= random() % 4; ++change)
      bytes[begin + random() % size] ^= static_cast<std::byte>(1 + random() % 255);
    if (!refusal(bytes).empty()) ++refused;
  }
  CHECK(refused > 150);
  CHECK(refused < 1000);
}

TEST_CASE("a folder with a bad file is read without it") {
  const TemporaryFolder folder;
  { const RecordedRank rank{rankmesh_test::facts_of_rank_1(), folder.path()}; }
  std::ofstream{folder.path() / "bad.rankmesh"} << "something else";
  const auto found = record::read_all(record::sources_in(folder.path()));
  CHECK(found.records.size() == 1);
  REQUIRE(found.remarks.size() == 1);
  CHECK_CONTAINS(found.remarks[0], "bad.rankmesh' is not a record of rankmesh");
}
