// SPDX-License-Identifier: BSD-3-Clause
// Reads YAML, of which JSON is a part, through libyaml.
#include "detail/data.hpp"

#include <algorithm>

#include <yaml.h>

#include "detail/input.hpp"

namespace rankmesh::detail {
namespace {

constexpr int deepest = 64;  // levels of nesting
constexpr std::string_view data_hint = "write JSON, or YAML with maps, lists and texts only";

class Reader {
 public:
  Reader(std::string_view text, std::string_view origin) : origin_{origin} {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  ~Reader() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  Data read() {
    next();  // the begin of the text
    next();  // the begin of the first document
    if (event_.type == YAML_STREAM_END_EVENT) refuse(origin_, 0, "the text is empty", data_hint);
    next();
    Data data = value(0);
    next();  // the end of the document
    next();
    if (event_.type != YAML_STREAM_END_EVENT)
      refuse(origin_, line(), "there is a second document", data_hint);
    return data;
  }

 private:
  void next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) != 0) return;
    const bool has_line = parser_.error != YAML_READER_ERROR && parser_.error != YAML_MEMORY_ERROR;
    refuse(origin_, has_line ? static_cast<std::int64_t>(parser_.problem_mark.line) + 1 : 0,
           parser_.problem == nullptr ? "no memory" : parser_.problem, data_hint);
  }
  [[nodiscard]] std::int64_t line() const {
    return static_cast<std::int64_t>(event_.start_mark.line) + 1;
  }
  Data value(int depth) {
    Data data{.line = line()};
    if (depth > deepest) refuse(origin_, line(), "the text is nested too deeply", data_hint);
    if (event_.type == YAML_SCALAR_EVENT) {
      const auto& scalar = event_.data.scalar;
      data.text.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
    } else if (event_.type == YAML_SEQUENCE_START_EVENT) {
      data.kind = Data::Kind::list;
      for (next(); event_.type != YAML_SEQUENCE_END_EVENT; next())
        data.items.push_back(value(depth + 1));
    } else if (event_.type == YAML_MAPPING_START_EVENT) {
      data.kind = Data::Kind::map;
      for (next(); event_.type != YAML_MAPPING_END_EVENT; next()) {
        const std::string key = value(depth + 1).text;
        next();
        data.fields.push_back(value(depth + 1));
        data.fields.back().key = key;
      }
    } else {  // with aliases, a small text could become large
      refuse(origin_, line(), "aliases are not supported", data_hint);
    }
    return data;
  }

  std::string_view origin_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

}  // namespace

const Data* Data::find(std::string_view wanted) const {
  const auto field = std::ranges::find(fields, wanted, &Data::key);
  return field == fields.end() ? nullptr : &*field;
}

Data read_data(std::string_view text, std::string_view origin) {
  return Reader{text, origin}.read();
}

}  // namespace rankmesh::detail
