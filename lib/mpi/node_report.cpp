// SPDX-License-Identifier: BSD-3-Clause
#include "detail/node_report.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh::mpi {
namespace {

constexpr std::size_t most_texts = 16;  // more distinct texts are counted only
constexpr std::size_t most_named = 4;   // ranks of one text that are named with coordinates

struct Datagram {
  std::uint64_t key = 0;
  int rank = 0;
  char coordinates[124] = {};
  char program[64] = {};
  char text[8192] = {};
};

template <std::size_t size>
std::string text_of(const char (&from)[size]) {
  return {from, strnlen(from, size)};
}

// Returns the part of a text that is compared. Long texts are cut when they are sent. If several
// ranks find the missing ranks at the same moment, their texts differ only in "found by rank N" and
// in the diagnosis of their node, which some of these texts may lack.
std::string compared_part(const std::string& text) {
  std::string part = text.substr(
      0, std::min(text.find(rankmesh::detail::diagnosis_mark), sizeof(Datagram::text) - 1));
  const std::size_t begin = part.find(" (found by rank ");
  const std::size_t end = begin == std::string::npos ? begin : part.find(')', begin);
  return end == std::string::npos ? part : part.erase(begin, end + 1 - begin);
}

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
};

Address address_of(std::uint64_t key) {
  const std::string name = fmt::format("rankmesh-end-{:016x}", key);
  Address address;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path + 1, name.data(), name.size());  // abstract: begins with 0
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

std::string named(const LastWords& words) {
  return words.coordinates.empty() ? fmt::format("{}", words.rank)
                                   : fmt::format("{} ({})", words.rank, words.coordinates);
}

std::string ranks_text(const std::vector<const LastWords*>& same, int ranks) {
  if (same.size() == 1) return fmt::format("rank {}", named(*same.front()));
  if (same.size() == static_cast<std::size_t>(ranks)) return fmt::format("all {} ranks", ranks);
  if (same.size() <= most_named) {
    std::vector<std::string> names;
    for (const LastWords* words : same) names.push_back(named(*words));
    return fmt::format("ranks {}", fmt::join(names, ", "));
  }
  std::vector<Rank> list;
  for (const LastWords* words : same) list.emplace_back(words->rank);
  return fmt::format("ranks {}", RankSet::of(list).to_string(60));
}

}  // namespace

NodeReport::NodeReport(std::uint64_t key) noexcept
    : key_{key}, socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)} {
  if (socket_ < 0) return;
  const Address address = address_of(key);
  is_reporter_ =
      ::bind(socket_, reinterpret_cast<const sockaddr*>(&address.name), address.size) == 0;
  // For the case that the reporter's queue is full.
  const timeval send_timeout{.tv_sec = 0, .tv_usec = 200'000};
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &send_timeout, sizeof send_timeout);
}

NodeReport::~NodeReport() {
  if (socket_ >= 0) ::close(socket_);
}

bool NodeReport::hand_over(const LastWords& words) const noexcept {
  Datagram message{.key = key_, .rank = words.rank};
  rankmesh::detail::copy_text(message.coordinates, words.coordinates);
  rankmesh::detail::copy_text(message.program, words.program);
  rankmesh::detail::copy_text(message.text, words.text);
  const Address address = address_of(key_);
  return socket_ >= 0 && ::sendto(socket_, &message, sizeof message, MSG_NOSIGNAL,
                                  reinterpret_cast<const sockaddr*>(&address.name),
                                  address.size) == static_cast<ssize_t>(sizeof message);
}

void NodeReport::collect(std::vector<LastWords>& words, std::size_t enough,
                         Deadline::Duration time) const {
  const Deadline end{time};
  while (words.size() < enough) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end.left());
    if (left.count() <= 0) return;
    pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    Datagram message;
    if (::recv(socket_, &message, sizeof message, 0) != static_cast<ssize_t>(sizeof message) ||
        message.key != key_)
      continue;
    words.push_back({message.rank, text_of(message.coordinates), text_of(message.program),
                     text_of(message.text)});
  }
}

bool have_same_text(const LastWords& a, const LastWords& b) {
  return compared_part(a.text) == compared_part(b.text);
}

std::string report_text(const std::vector<LastWords>& words, int ranks) {
  std::vector<const LastWords*> left;
  for (const LastWords& w : words) left.push_back(&w);
  std::string lines;
  std::size_t texts = 0;
  std::size_t not_shown = 0;
  while (!left.empty()) {
    const LastWords& first = *left.front();
    const auto others = std::stable_partition(left.begin(), left.end(), [&](const LastWords* w) {
      return w->program == first.program && have_same_text(*w, first);
    });
    std::vector<const LastWords*> same{left.begin(), others};
    left.erase(left.begin(), others);
    const auto has_diagnosis = [](const LastWords* w) {
      return w->text.find(rankmesh::detail::diagnosis_mark) != std::string::npos;
    };
    const auto diagnosed = std::ranges::find_if(same, has_diagnosis);
    const std::string& text = diagnosed == same.end() ? first.text : (*diagnosed)->text;
    std::ranges::sort(same, {}, &LastWords::rank);
    if (texts++ < most_texts)
      lines += fmt::format("{}: {}: {}\n", first.program, ranks_text(same, ranks), text);
    else
      not_shown += same.size();
  }
  if (not_shown > 0) lines += fmt::format("({} more ranks report other errors)\n", not_shown);
  return lines;
}

}  // namespace rankmesh::mpi
