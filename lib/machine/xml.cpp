// SPDX-License-Identifier: BSD-3-Clause
#include "detail/xml.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "detail/input.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::size_t most_elements = std::size_t{1} << 20;
constexpr std::string_view xml_hint = "check that the file is complete";

class XmlReader {
 public:
  XmlReader(std::string_view text, std::string_view origin) : text_{text}, origin_{origin} {}

  std::vector<XmlElement> read() {
    while (at_ < text_.size()) {
      if (text_[at_] != '<')
        read_text();
      else if (starts_with("<!--"))
        skip_past("-->", "a comment is not closed");
      else if (starts_with("<?"))
        skip_past("?>", "a processing instruction is not closed");
      else if (starts_with("<!"))
        skip_past(">", "a declaration is not closed");
      else if (starts_with("</"))
        read_end();
      else
        read_start();
    }
    if (!open_.empty())
      fail(fmt::format("the element <{:.40}> of line {} is not closed",
                       elements_[open_.back()].name, elements_[open_.back()].line));
    if (elements_.empty()) fail("there is no XML element");
    return std::move(elements_);
  }

 private:
  [[nodiscard]] bool starts_with(std::string_view mark) const {
    return text_.substr(at_).starts_with(mark);
  }

  [[noreturn]] void fail(std::string_view reason) const {
    refuse(origin_, line_, reason, xml_hint);
  }

  void advance(std::size_t count) {
    line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                        text_.begin() + static_cast<std::ptrdiff_t>(at_ + count), '\n');
    at_ += count;
  }

  void skip_past(std::string_view mark, std::string_view reason) {
    const std::size_t end = text_.find(mark, at_);
    if (end == text_.npos) fail(reason);
    advance(end + mark.size() - at_);
  }

  void skip_blanks() {
    while (at_ < text_.size() && is_xml_blank(text_[at_])) advance(1);
  }

  static bool is_xml_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  void read_text() {
    const std::size_t end = std::min(text_.find('<', at_), text_.size());
    if (!open_.empty()) elements_[open_.back()].text += text_.substr(at_, end - at_);
    advance(end - at_);
  }

  std::string name() {
    const std::size_t begin = at_;
    const auto belongs = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-' || c == '.' || c == ':';
    };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (at_ == begin) fail("a name is missing in a tag");
    return std::string{text_.substr(begin, at_ - begin)};
  }

  void read_end() {
    at_ += 2;
    const std::string closed = name();
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != '>') fail("a closing tag is not complete");
    ++at_;
    if (open_.empty() || elements_[open_.back()].name != closed)
      fail(fmt::format("</{:.40}> closes an element that is not open", closed));
    open_.pop_back();
  }

  void read_start() {
    if (elements_.size() == most_elements) fail("the text has too many elements");
    const std::int64_t line = line_;
    ++at_;
    XmlElement element{.name = name(), .line = line};
    if (!open_.empty()) element.parent = open_.back();
    while (true) {
      skip_blanks();
      if (at_ == text_.size()) fail("a tag is not complete");
      if (text_[at_] == '>') {
        ++at_;
        open_.push_back(elements_.size());
        break;
      }
      if (starts_with("/>")) {
        at_ += 2;
        break;
      }
      element.attributes.push_back(attribute());
    }
    elements_.push_back(std::move(element));
  }

  std::pair<std::string, std::string> attribute() {
    std::string key = name();
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != '=')
      fail(fmt::format("the attribute '{:.40}' has no value", key));
    ++at_;
    skip_blanks();
    if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\''))
      fail(fmt::format("the value of the attribute '{:.40}' is not in quotes", key));
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == text_.npos)
      fail(fmt::format("the value of the attribute '{:.40}' is not closed", key));
    std::string value = decoded(text_.substr(at_ + 1, end - at_ - 1));
    advance(end + 1 - at_);
    return {std::move(key), std::move(value)};
  }

  static std::string decoded(std::string_view text) {
    constexpr std::pair<std::string_view, char> names[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    std::string result;
    while (!text.empty()) {
      const auto* found = std::ranges::find_if(
          names, [&](const auto& entry) { return text.starts_with(entry.first); });
      const bool is_name = found != std::end(names);
      result += is_name ? found->second : text.front();
      text.remove_prefix(is_name ? found->first.size() : 1);
    }
    return result;
  }

  std::string_view text_;
  std::string_view origin_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::vector<XmlElement> elements_;
  std::vector<std::size_t> open_;
};

}  // namespace

std::string_view XmlElement::get(std::string_view key) const {
  const auto found = std::ranges::find(attributes, key, [](const auto& a) { return a.first; });
  return found == attributes.end() ? std::string_view{} : found->second;
}

std::vector<XmlElement> read_xml(std::string_view text, std::string_view origin) {
  return XmlReader{text, origin}.read();
}

}  // namespace rankmesh::detail
