// SPDX-License-Identifier: BSD-3-Clause
// The grammar of the mesh string.
#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "detail/text.hpp"
#include "presets/detail/preset.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_string.hpp"

namespace rankmesh {
namespace {

// These limits are far beyond any real mesh. They bound the work that damaged text can cause.
constexpr std::size_t max_characters = 1 << 20;  // a preset may list ranks
constexpr std::size_t max_dimensions = 32;
constexpr std::size_t max_views = 16;
constexpr std::size_t max_products = 256;
constexpr std::size_t max_name = 64;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }
bool is_value(char c) { return is_name(c) || c == '.' || c == '-'; }  // the value of a preset's key

}  // namespace

class MeshStringParser {
 public:
  explicit MeshStringParser(std::string_view text) {
    if (text.size() > max_characters)
      throw SpecError{
          fmt::format(
              "the mesh string has {} characters, more than the limit of {} (it begins with '{}')",
              text.size(), max_characters, detail::excerpt(text, 0)),
          std::string{example}, 0};
    mesh_.text_ = text;
  }

  MeshString parse() {
    skip_blanks();
    if (at_end()) refuse("the mesh string is empty", example);
    if (!take_preset()) {
      do {
        if (mesh_.views_.size() == max_views)
          refuse(fmt::format("more than {} views", max_views), "use fewer views");
        mesh_.views_.push_back(view());
      } while (take('|'));
    }
    if (take(';')) {
      do {
        if (mesh_.products_.size() == max_products)
          refuse(fmt::format("more than {} products", max_products), "use fewer products");
        mesh_.products_.push_back(product());
      } while (take(','));
    }
    if (!at_end())
      refuse(mesh_.products_.empty()
                 ? mesh_.preset_ ? "expected ',' ';' or the end" : "expected ',' '|' ';' or the end"
                 : "expected ',' '*' or the end",
             mesh_.preset_
                 ? "separate keys by ',', and write products after one ';'"
                 : "separate dimensions by ',' and views by '|', and write products after one ';'");
    return std::move(mesh_);
  }

 private:
  static constexpr std::string_view example =
      "write dimensions such as pp=2,dp=4,tp=8 (the last varies fastest)";

  [[nodiscard]] bool at_end() const { return at_ == mesh_.text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : mesh_.text_[at_]; }
  void skip_blanks() {
    while (!at_end() && is_blank(peek())) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_end() || peek() != c) return false;
    ++at_;
    skip_blanks();
    return true;
  }
  [[noreturn]] void refuse(std::string_view reason, std::string_view hint) const {
    mesh_.refuse(at_, reason, hint);
  }

  // Reads a preset if the text begins with `system:`.
  bool take_preset() {
    const std::size_t begin = at_;
    while (!at_end() && is_name(peek())) ++at_;
    PresetCall call{mesh_.text_.substr(begin, std::min(at_ - begin, max_name)), begin, {}};
    if (at_ == begin || !take(':')) {
      at_ = begin;
      return false;
    }
    do {
      if (call.arguments.size() == max_dimensions)
        refuse(fmt::format("more than {} keys", max_dimensions), "use fewer keys");
      call.arguments.push_back(argument(call));
    } while (take(','));
    presets::check(mesh_.text_, call);
    mesh_.preset_ = std::move(call);
    return true;
  }

  PresetCall::Argument argument(const PresetCall& call) {
    skip_blanks();
    PresetCall::Argument argument;
    argument.key_position = at_;
    argument.key = name("a key of the preset");
    for (const auto& other : call.arguments)
      if (other.key == argument.key) {
        at_ = argument.key_position;
        refuse(fmt::format("duplicate key '{}'", argument.key), "give each key once");
      }
    if (!take('=')) refuse(fmt::format("expected '=' after '{}'", argument.key), "write key=value");
    argument.value_position = at_;
    while (!at_end() && is_value(peek())) ++at_;
    argument.value = mesh_.text_.substr(argument.value_position, at_ - argument.value_position);
    if (argument.value.empty())
      refuse(fmt::format("the key '{}' has no value", argument.key),
             "write a value, or remove the key");
    return argument;
  }

  std::string name(std::string_view element) {
    skip_blanks();
    if (!is_name_start(peek()))
      refuse(fmt::format("expected {}", element),
             "a name begins with a letter or '_' and continues with letters, digits and '_'");
    const std::size_t begin = at_;
    while (!at_end() && is_name(peek())) ++at_;
    if (at_ - begin > max_name) {
      at_ = begin;
      refuse(fmt::format("a name is longer than {} characters", max_name), "use a shorter name");
    }
    return mesh_.text_.substr(begin, at_ - begin);
  }

  MeshString::View view() {
    MeshString::View view;
    do {
      skip_blanks();
      const std::size_t position = at_;
      if (view.size() == max_dimensions)
        refuse(fmt::format("more than {} dimensions in one view", max_dimensions),
               "use fewer dimensions");
      MeshString::WrittenDimension dimension{name("a dimension"), std::nullopt, position};
      const auto same = [&](const auto& d) { return d.name == dimension.name; };
      if (std::ranges::any_of(view, same)) {
        at_ = position;
        refuse(fmt::format("duplicate dimension '{}' in one view", dimension.name),
               "give each dimension its own name");
      }
      if (!take('='))
        refuse(fmt::format("expected '=' after '{}'", dimension.name),
               "write a dimension as name=size, such as tp=8");
      dimension.size = size(dimension.name, view);
      view.push_back(std::move(dimension));
    } while (take(','));
    return view;
  }

  std::optional<std::int64_t> size(const std::string& dimension, const MeshString::View& view) {
    const std::size_t begin = at_;
    if (std::string_view{mesh_.text_}.substr(at_, 4) == "auto" &&
        (at_ + 4 == mesh_.text_.size() || !is_name(mesh_.text_[at_ + 4]))) {
      for (const auto& other : view)
        if (!other.size)
          refuse(fmt::format("'{}' and '{}' are both auto", other.name, dimension),
                 "write a number for one of them: only one size per view can be auto");
      at_ += 4;
      return std::nullopt;
    }
    while (is_digit(peek())) ++at_;
    std::int64_t value = 0;
    const char* const first = mesh_.text_.data() + begin;
    const auto [end, error] = std::from_chars(first, mesh_.text_.data() + at_, value);
    const bool junk = at_ == begin || is_name(peek());
    const bool too_large = error == std::errc::result_out_of_range;
    if (junk || too_large || value == 0) {
      at_ = begin;
      if (junk)
        refuse(fmt::format("the size of '{}' must be a whole number, got '{}'", dimension,
                           value_at(begin)),
               "write a whole number from 1 up, or auto");
      if (too_large)
        refuse(fmt::format("the size of '{}' overflows 64 bits", dimension), "use a smaller size");
      refuse(fmt::format("the size of '{}' must be at least 1, got 0", dimension),
             "write 1 or more, or remove the dimension");
    }
    return value;
  }

  // Returns the text of a size for errors: up to the next separator, at most 20 characters.
  [[nodiscard]] std::string value_at(std::size_t begin) const {
    const std::string_view rest = std::string_view{mesh_.text_}.substr(begin, 20);
    return detail::excerpt(rest.substr(0, rest.find_first_of(",|;=* \t\r\n")), 0);
  }

  // Reads a factor of a product. In a preset the name of a dimension may be a number, such as the
  // axes of jax.
  std::string factor() {
    skip_blanks();
    if (!mesh_.preset_ || !is_digit(peek())) return name("a dimension");
    const std::size_t begin = at_;
    while (!at_end() && is_digit(peek())) ++at_;
    return mesh_.text_.substr(begin, std::min(at_ - begin, max_name));
  }

  // Reads `ends(`. A dimension may also be called `ends`.
  bool take_ends() {
    constexpr std::string_view word = "ends";
    const std::size_t begin = at_;
    skip_blanks();
    if (std::string_view{mesh_.text_}.substr(at_, word.size()) == word) {
      at_ += word.size();
      if (take('(')) return true;
    }
    at_ = begin;
    return false;
  }

  MeshString::Product product() {
    skip_blanks();
    MeshString::Product product;
    product.position = at_;
    product.name = name("the name of a product");
    std::set<std::string> taken;
    for (const auto& view : mesh_.views_)
      for (const auto& dimension : view) taken.insert(dimension.name);
    for (const auto& other : mesh_.products_) taken.insert(other.name);
    if (taken.contains(product.name)) {
      at_ = product.position;
      refuse(fmt::format("duplicate name '{}'", product.name),
             "choose another name for the product");
    }
    if (!take('='))
      refuse(fmt::format("expected '=' after '{}'", product.name),
             "write a product as name=a*b, such as dp_cp=dp*cp");
    if (take_ends()) {
      product.is_ends = true;
      product.factors.push_back(factor());
      if (!take(')'))
        refuse(fmt::format("expected ')' after 'ends({}'", product.factors.front()),
               "write the first and the last rank along a dimension as name=ends(a), such as "
               "embd=ends(pp)");
      return product;
    }
    do {
      product.factors.push_back(factor());
    } while (take('*'));
    return product;
  }

  MeshString mesh_;
  std::size_t at_ = 0;
};

MeshString MeshString::parse(std::string_view text) { return MeshStringParser{text}.parse(); }

}  // namespace rankmesh
