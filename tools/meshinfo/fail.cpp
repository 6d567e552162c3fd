// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "launcher.hpp"
#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"

namespace meshinfo {
namespace {

// A message may quote the user's text. It is cut, and its control characters are replaced, so that
// it can neither end the line nor control a terminal.
std::string on_one_line(std::string text) {
  constexpr std::size_t most = 600;
  if (text.size() > most)
    text = text.substr(0, most / 2) + " ... " + text.substr(text.size() - most / 4);
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return text;
}

}  // namespace

int fail(const std::exception& error) {
  if (!is_printing_rank()) {
    // A launcher ends the job at the first rank that fails, so rank 0 gets time for its message.
    std::this_thread::sleep_for(std::chrono::seconds{1});
    return wrong_usage;
  }
  const auto* own = dynamic_cast<const rankmesh::Error*>(&error);
  std::string message = own != nullptr ? own->message() : error.what();
  // A disagreement lists its variants on lines of their own.
  if (dynamic_cast<const rankmesh::MismatchError*>(&error) == nullptr)
    message = on_one_line(message);
  const std::string hint = own != nullptr ? on_one_line(own->hint()) : "";
  std::fputs(fmt::format("meshinfo: {}\n", message).c_str(), stderr);
  if (!hint.empty()) std::fputs(fmt::format("  hint: {}\n", hint).c_str(), stderr);
  return wrong_usage;
}

}  // namespace meshinfo
