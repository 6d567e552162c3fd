// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes routes: any text is refused with a place and a hint, or is printed and parses back to the
// same rules.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "rankmesh/base/error.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "require.hpp"

using namespace rankmesh;

namespace {

void check(const RouteTable& table) {
  const std::string text = table.to_string();
  require(RouteTable::parse(text, RouteSource::code, "again").to_string() == text,
          "does not read back");
  RouteTable whole = table;
  whole.append(RouteTable::defaults());
  for (std::size_t o = 0; o < operation_count; ++o) {
    const RouteQuery query{
        .operation = static_cast<Operation>(o), .bytes = 0, .type = TypeClass::floating};
    const auto segments = whole.resolve({"tp", 4, 1}, query);
    std::int64_t end = 0;
    for (const RouteSegment& segment : segments) {
      require(segment.bytes.begin == end && segment.bytes.end > end, "a gap between sizes");
      require(!segment.rules.empty(), "nothing serves");
      end = segment.bytes.end;
    }
    require(end == ByteRange::infinite, "the largest sizes are missing");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  try {
    check(RouteTable::parse(text, RouteSource::code, "fuzz"));
  } catch (const SpecError& error) {
    require(!error.hint().empty() && error.message().size() < 1000,
            "a refusal without a hint, or without end");
  }
  return 0;
}
