// SPDX-License-Identifier: BSD-3-Clause
// Reads XML through expat.
#include "detail/xml.hpp"

#include <algorithm>
#include <memory>

#include <expat.h>

#include "detail/input.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::size_t most_elements = std::size_t{1} << 20, most_depth = 256;

struct Reading {
  XML_Parser parser;
  std::vector<XmlElement> elements{};
  std::vector<std::size_t> open{};
};

void begin_element(void* reading, const char* name, const char** attributes) {
  auto& [parser, elements, open] = *static_cast<Reading*>(reading);
  if (elements.size() == most_elements || open.size() == most_depth) {
    XML_StopParser(parser, XML_FALSE);
    return;
  }
  XmlElement& element = elements.emplace_back();
  element.name = name;
  element.line = static_cast<std::int64_t>(XML_GetCurrentLineNumber(parser));
  if (!open.empty()) element.parent = open.back();
  for (; *attributes != nullptr; attributes += 2)
    element.attributes.emplace_back(attributes[0], attributes[1]);
  open.push_back(elements.size() - 1);
}

// An empty element ends after the parser was stopped at its beginning.
void end_element(void* reading, const char*) {
  auto& open = static_cast<Reading*>(reading)->open;
  if (!open.empty()) open.pop_back();
}

void add_text(void* reading, const char* text, int size) {
  auto& [parser, elements, open] = *static_cast<Reading*>(reading);
  elements[open.back()].text.append(text, static_cast<std::size_t>(size));
}

}  // namespace

std::string_view XmlElement::get(std::string_view key) const {
  const auto found = std::ranges::find(attributes, key, [](const auto& a) { return a.first; });
  return found == attributes.end() ? std::string_view{} : found->second;
}

std::vector<XmlElement> read_xml(std::string_view text, std::string_view origin) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser{
      XML_ParserCreate(nullptr), &XML_ParserFree};
  Reading reading{parser.get()};
  XML_SetUserData(parser.get(), &reading);
  XML_SetElementHandler(parser.get(), begin_element, end_element);
  XML_SetCharacterDataHandler(parser.get(), add_text);
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE) !=
      XML_STATUS_OK) {
    const XML_Error error = XML_GetErrorCode(parser.get());
    refuse(origin, static_cast<std::int64_t>(XML_GetCurrentLineNumber(parser.get())),
           error == XML_ERROR_ABORTED
               ? "the text has too many elements, or elements too deep inside others"
               : XML_ErrorString(error),
           "check that the file is complete");
  }
  return std::move(reading.elements);
}

}  // namespace rankmesh::detail
