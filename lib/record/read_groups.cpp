// SPDX-License-Identifier: BSD-3-Clause
// The lines of a record, which describe groups and places of calls, and its texts.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/detail/private_api.hpp"
#include "detail/image.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::record::detail {
namespace {

using nlohmann::json;

// A call has 16 bits for the name of its group.
constexpr std::size_t most_names = 1 << 16;
// Ranks in all groups whose ranks have no regular strides.
constexpr std::int64_t most_listed_ranks = 1 << 22;

// Returns the length of the UTF-8 sequence at the start of the text; 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer forms than necessary, surrogates, and values above U+10FFFF.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90))
    return 0;
  return length;
}

// Control characters could move the cursor of a terminal, or reverse the direction of its output.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < ' ' || first == 0x7f;
  const auto second = static_cast<unsigned char>(character[1]);
  return character.size() == 2 && first == 0xc2 && second < 0xa0;
}

// Returns the value of 16 hexadecimal digits.
std::optional<std::uint64_t> identity_of(const std::string& digits) {
  std::uint64_t identity = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, identity, 16);
  if (digits.size() != 16 || error != std::errc{} || stop != end) return std::nullopt;
  return identity;
}

// @param most  the number of ranks that a list of several items may have.
RankSet parse_ranks(const std::string& text, std::int64_t most) {
  try {
    return RankSet::parse(text, most);
  } catch (const Error&) {
    return {};
  }
}

// Returns nothing if the object does not describe a group of a world of this size.
// @param most_listed  the number of ranks that may be stored one by one; becomes less.
std::optional<Group> parse_group(const json& object, std::int64_t world_size,
                                 std::int64_t& most_listed) {
  const auto text = [&](const char* key) -> const std::string* {
    const auto at = object.find(key);
    return at == object.end() ? nullptr : at->get_ptr<const std::string*>();
  };
  const std::string* const identity = text("identity");
  const std::string* const ranks = text("ranks");
  const auto names = object.find("names");
  const auto size = object.find("size");
  if (identity == nullptr || ranks == nullptr || names == object.end() || !names->is_array() ||
      names->size() > most_names || size == object.end() || !size->is_number_unsigned())
    return std::nullopt;
  Group group;
  const auto number = identity_of(*identity);
  if (!number || size->get<std::uint64_t>() > static_cast<std::uint64_t>(world_size))
    return std::nullopt;
  group.identity = *number;
  group.size = size->get<std::int64_t>();
  for (const json& name : *names) {
    if (!name.is_string()) return std::nullopt;
    group.names.push_back(printable(name.get_ref<const std::string&>()));
  }
  if (ranks->empty()) return group;
  group.ranks = parse_ranks(*ranks, most_listed);
  if (group.ranks.size() != group.size || group.ranks.highest() >= Rank{world_size})
    return std::nullopt;
  if (group.ranks.table() != nullptr) most_listed -= group.size;
  return group;
}

// Returns nothing if the list does not consist of addresses in files of the record.
std::optional<CallSite> parse_site(const json& frames, const Record& record) {
  if (!frames.is_array()) return std::nullopt;
  CallSite site;
  for (const json& frame : frames) {
    if (!frame.is_array() || frame.size() != 2 || !frame[0].is_number_unsigned() ||
        !frame[1].is_number_unsigned())
      return std::nullopt;
    const auto file = frame[0].get<std::uint64_t>();
    if (file >= record.files.size()) return std::nullopt;
    site.push_back({file, frame[1].get<std::uint64_t>()});
  }
  return site;
}

// Adds what a line describes: a group, a file of the program, or a place in these files. Returns
// whether it is valid.
bool add_line(const json& line, std::int64_t& most_listed, Record& record) {
  if (const auto path = line.find("file"); path != line.end()) {
    if (path->is_string()) record.files.push_back(path->get<std::string>());
    return path->is_string();
  }
  if (const auto frames = line.find("site"); frames != line.end()) {
    auto site = parse_site(*frames, record);
    if (site) record.call_sites.push_back(*std::move(site));
    return site.has_value();
  }
  auto group = parse_group(line, record.world_size, most_listed);
  if (group) record.groups.push_back(*std::move(group));
  return group.has_value();
}

}  // namespace

RANKMESH_PRIVATE_API std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0)
      result += "\xef\xbf\xbd";
    else if (is_control(text.substr(0, length)))
      result += ' ';
    else
      result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

Wait read_wait(const Image& image, std::string_view text, const std::string& name) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) refuse_altered(name, "its wait is not valid");
  Wait wait{.text = printable(text.substr(end + 1))};
  if (end == 0) return wait;
  wait.ranks = parse_ranks(std::string{text.substr(0, end)}, most_listed_ranks);
  if (wait.ranks.empty() || wait.ranks.highest() >= Rank{image.header().world_size})
    refuse_altered(name, "its wait is not valid");
  return wait;
}

void read_lines(const Image& image, const std::string& name, Record& record) {
  std::string_view lines = image.lines();
  std::int64_t most_listed = most_listed_ranks;
  for (std::size_t line = 0; !lines.empty(); ++line) {
    const std::size_t end = lines.find('\n');
    const json object = json::parse(lines.substr(0, end), nullptr, false);
    if (end == std::string_view::npos || !object.is_object() ||
        !add_line(object, most_listed, record))
      refuse_altered(name, fmt::format("its line {} is not valid", line));
    lines.remove_prefix(end + 1);
  }
}

}  // namespace rankmesh::record::detail
