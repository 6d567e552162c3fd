// The TOML form of a mesh.
#include <algorithm>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "detail/text.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {
namespace {

class Reader {
 public:
  Reader(const toml::table& table, std::string_view origin) : table_{table}, origin_{origin} {}

  void refuse_unknown_keys() const {
    for (const auto& [key, node] : table_)
      if (std::ranges::find(keys, key.str()) == keys.end())
        refuse(node, fmt::format("there is no key '{:.40}'", key.str()),
               detail::suggest(key.str(), keys, "keys"));
  }

  std::string text(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const auto value = node->value_exact<std::string>();
    if (!value) refuse(*node, fmt::format("'{}' is no string", key), fmt::format("write {} = \"...\"", key));
    return *value;
  }

  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> result;
    const toml::node* node = table_.get(key);
    if (node == nullptr) return result;
    const toml::array* array = node->as_array();
    if (array == nullptr)
      refuse(*node, fmt::format("'{}' is no list", key), fmt::format("write {} = [\"...\"]", key));
    for (const toml::node& element : *array) {
      const auto value = element.value_exact<std::string>();
      if (!value)
        refuse(element, fmt::format("'{}' holds something that is no string", key), "use strings only");
      result.push_back(*value);
    }
    return result;
  }

  std::optional<std::int64_t> positive(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->value_exact<std::int64_t>();
    if (!value || *value < 1)
      refuse(*node, fmt::format("'{}' is no whole number from 1 up", key), "write a number of ranks");
    return value;
  }

  [[noreturn]] void refuse(const toml::node& where, std::string_view reason, std::string_view hint) const {
    throw SpecError{fmt::format("{}:{}: {}", origin_, where.source().begin.line, reason), std::string{hint}};
  }

 private:
  static inline const std::vector<std::string> keys{"mesh",  "world_size", "source", "locator",
                                                    "given", "derived",    "unknown"};
  const toml::table& table_;
  std::string_view origin_;
};

toml::table parse_table(std::string_view text, std::string_view origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw SpecError{
        fmt::format("{}:{}: this is no TOML: {}", origin, error.source().begin.line, error.description()),
        "see toml.io for the syntax"};
  }
}

}  // namespace

MeshSpec MeshSpec::parse_toml(std::string_view text, std::string_view origin) {
  const toml::table table = parse_table(text, origin);
  const Reader reader{table, origin};
  reader.refuse_unknown_keys();
  const std::string mesh = reader.text("mesh");
  if (mesh.empty())
    throw SpecError{fmt::format("{}: there is no mesh", origin), "write mesh = \"pp=2,dp=4,tp=8\""};
  if (mesh.ends_with(".toml"))
    throw SpecError{fmt::format("{}: 'mesh' names another file", origin), "write the mesh string itself"};
  try {
    MeshSpec spec = parse_string(mesh);
    spec.stated_world_size_ = reader.positive("world_size");
    spec.provenance_ = {reader.text("source"), reader.text("locator"), reader.texts("given"),
                        reader.texts("derived"), reader.texts("unknown")};
    return spec;
  } catch (const SpecError& error) {
    if (error.message().starts_with(origin)) throw;
    throw SpecError{fmt::format("{}: {}", origin, error.message()), error.hint(), error.position()};
  }
}

}  // namespace rankmesh
