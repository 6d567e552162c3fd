// SPDX-License-Identifier: BSD-3-Clause
// groups_by_hand json|text|csv: prints what `meshinfo groups pp=16,dp=512,cp=16,tp=8 --format ...`
// prints, with loops for this one mesh. scripts/bench-million compares meshinfo with it.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

constexpr std::int64_t sizes[] = {16, 512, 16, 8};
constexpr std::int64_t strides[] = {65536, 128, 8, 1};
constexpr std::string_view names[] = {"pp", "dp", "cp", "tp"};

char buffer[65536];
std::size_t used = 0;

void flush() {
  std::fwrite(buffer, 1, used, stdout);
  used = 0;
}
void text(std::string_view piece) {
  if (sizeof buffer - used < piece.size()) flush();
  std::memcpy(buffer + used, piece.data(), piece.size());
  used += piece.size();
}
void number(std::int64_t value) {
  if (sizeof buffer - used < 24) flush();
  used = static_cast<std::size_t>(std::to_chars(buffer + used, buffer + sizeof buffer, value).ptr -
                                  buffer);
}

// Calls take(first rank) for each group along dimension d, in order.
template <class Take>
void for_each_group(std::size_t d, Take take) {
  for (std::int64_t outer = 0; outer < 1048576; outer += sizes[d] * strides[d])
    for (std::int64_t inner = 0; inner < strides[d]; ++inner) take(outer + inner);
}

void json() {
  text("{\"schema\":\"rankmesh.groups/1\",\"world_size\":1048576,\"groups\":{");
  for (std::size_t d = 0; d < 4; ++d) {
    text(d == 0 ? "\"" : ",\"");
    text(names[d]);
    text("\":[");
    for_each_group(d, [&](std::int64_t first) {
      text(first == 0 ? "[" : ",[");
      for (std::int64_t k = 0; k < sizes[d]; ++k) {
        if (k > 0) text(",");
        number(first + k * strides[d]);
      }
      text("]");
    });
    text("]");
  }
  text("}}\n");
}

// The only item of a group: first-last, and the step if it is not 1.
void item(std::size_t d, std::int64_t first) {
  number(first);
  text("-");
  number(first + (sizes[d] - 1) * strides[d]);
  if (strides[d] > 1) {
    text(":");
    number(strides[d]);
  }
}

int digits(std::int64_t value) { return value < 10 ? 1 : 1 + digits(value / 10); }

void plain() {
  for (std::size_t d = 0; d < 4; ++d) {
    if (d > 0) text("\n");
    text(names[d]);
    text("  ");
    number(1048576 / sizes[d]);
    text(" groups of ");
    number(sizes[d]);
    text("\n");
    const int width = digits(1048576 / sizes[d] - 1);
    std::int64_t group = 0;
    for_each_group(d, [&](std::int64_t first) {
      text(std::string_view{"                "}.substr(
          0, static_cast<std::size_t>(2 + width - digits(group))));
      number(group++);
      text("  ");
      item(d, first);
      text("\n");
    });
  }
}

void csv() {
  text("name,group,size,ranks\n");
  for (std::size_t d = 0; d < 4; ++d) {
    std::int64_t group = 0;
    for_each_group(d, [&](std::int64_t first) {
      text(names[d]);
      text(",");
      number(group++);
      text(",");
      number(sizes[d]);
      text(",");
      item(d, first);
      text("\n");
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view format = argc > 1 ? argv[1] : "json";
  format == "json" ? json() : format == "csv" ? csv() : plain();
  flush();
}
