// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/document.hpp"

#include <algorithm>
#include <utility>

namespace rankmesh::report {

Value::Value(std::nullptr_t) {}
Value::Value(bool value) : data_{value} {}
Value::Value(double value) : data_{value} {}
Value::Value(const char* text) : data_{std::string{text}} {}
Value::Value(std::string_view text) : data_{std::string{text}} {}
Value::Value(std::string text) : data_{std::move(text)} {}
Value::Value(Ranks ranks) : data_{std::move(ranks)} {}
Value::Value(List items) : data_{std::move(items)} {}
Value::Value(Object fields) : data_{std::move(fields)} {}
Value::Value(std::initializer_list<Field> fields) : data_{Object{}} {
  for (const Field& field : fields) (*this)[field.key] = field.value;
}

Value& Value::operator[](std::string_view key) {
  if (is_null()) data_ = Object{};
  auto& [keys, values] = std::get<Object>(data_);
  const auto found = std::ranges::find(keys, key);
  if (found != keys.end()) return values[static_cast<std::size_t>(found - keys.begin())];
  keys.emplace_back(key);
  return values.emplace_back();
}

void Value::push_back(Value item) {
  if (is_null()) data_ = List{};
  std::get<List>(data_).push_back(std::move(item));
}

}  // namespace rankmesh::report
