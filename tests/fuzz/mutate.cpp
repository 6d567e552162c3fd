// SPDX-License-Identifier: BSD-3-Clause
// Mutations that keep the structure of a mesh: they change a number, or add, remove or move an
// item. Mutations of bytes alone seldom get past the check that the sizes fit the world.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

constexpr std::string_view numbers[] = {
    "1",  "1",    "2",  "2", "3", "4", "6",  "8",  "12", "16", "24",  "32",    "48",
    "64", "auto", "-1", "0", "5", "7", "72", "96", "36", "18", "128", "65536", "1073741824"};
constexpr std::string_view separators = ",;|*x.-\n#\"[]";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_separator(char c) { return separators.find(c) != std::string_view::npos; }

// Returns the spans of the text for which a predicate holds; neighbours are joined.
template <class Predicate>
std::vector<std::pair<std::size_t, std::size_t>> spans(const std::string& text, Predicate holds) {
  std::vector<std::pair<std::size_t, std::size_t>> result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!holds(text[i])) continue;
    if (!result.empty() && result.back().first + result.back().second == i)
      ++result.back().second;
    else
      result.emplace_back(i, 1);
  }
  return result;
}

void change(std::string& text, std::minstd_rand& random) {
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  const auto digits = spans(text, is_digit);
  const auto items = spans(text, [](char c) { return !is_separator(c); });
  const std::size_t kind = pick(5);
  if (kind < 2 && !digits.empty()) {
    const auto [at, size] = digits[pick(digits.size())];
    text.replace(at, size, numbers[pick(std::size(numbers))]);
  } else if (kind == 2 && items.size() > 1) {  // swap two
    auto a = items[pick(items.size())];
    auto b = items[pick(items.size())];
    if (a.first > b.first) std::swap(a, b);
    if (a == b) return;
    const std::string first = text.substr(a.first, a.second);
    const std::string second = text.substr(b.first, b.second);
    text.replace(b.first, b.second, first);
    text.replace(a.first, a.second, second);
  } else if (kind == 3 && !items.empty()) {  // remove one, with the separator after it
    const auto [at, size] = items[pick(items.size())];
    text.erase(at, size + 1);
  } else if (!items.empty()) {  // repeat one
    const auto [at, size] = items[pick(items.size())];
    text.insert(at, text.substr(at, size) + separators[pick(separators.size())]);
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  std::minstd_rand random{seed};
  random.discard(1);
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string text{reinterpret_cast<const char*>(data), size};
  for (auto edits = random() % 3 + 1; edits > 0; --edits) change(text, random);
  const std::size_t length = std::min(text.size(), max_size);
  std::copy_n(text.begin(), length, data);
  return length;
}
