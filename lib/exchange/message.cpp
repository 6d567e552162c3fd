// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/message.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {
namespace {

constexpr std::uint64_t mark = 0x6d73672e646e6172;  // "rand.msg"

enum class Kind : std::uint64_t { message = 1, failure = 2 };

struct Header {
  std::uint64_t mark_ = mark;
  std::uint64_t bytes = 0;
  Kind kind = Kind::message;
};
static_assert(sizeof(Header) + short_message == first_part);

using rankmesh::detail::CalledBy;
using rankmesh::detail::GroupAccess;
using rankmesh::detail::UserFunction;

using FirstPart = std::array<std::byte, first_part>;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

FirstPart first_part_of(std::span<const std::byte> message, Kind kind) {
  FirstPart part{};
  const Header header{.bytes = message.size(), .kind = kind};
  std::memcpy(part.data(), &header, sizeof header);
  const std::size_t begins = std::min(message.size(), short_message);
  if (begins > 0) std::memcpy(part.data() + sizeof header, message.data(), begins);
  return part;
}

// Returns the rank of a member with its coordinates.
std::string name_of(const GroupCoordinator& group, RankInGroup member) {
  return GroupAccess::runtime(group).control->names(group.ranks().at(member.value()));
}

// @param function  What the program has called.
[[noreturn]] void refuse(const GroupCoordinator& group, std::string_view function, RankInGroup from,
                         std::string_view problem) {
  throw DataError{
      fmt::format("{}.{}: rank {} sent bytes that are not a message of rankmesh: {}", group.name(),
                  function, name_of(group, from), problem),
      "call the matching functions in the same order at both ends; use a different tag for "
      "plain send and recv"};
}

// Returns the header after validating it: the bytes may come from any other function.
Header header_of(const GroupCoordinator& group, std::string_view function, RankInGroup from,
                 const FirstPart& part, std::uint64_t limit) {
  Header header;
  std::memcpy(&header, part.data(), sizeof header);
  if (header.mark_ != mark || (header.kind != Kind::message && header.kind != Kind::failure))
    refuse(group, function, from, "they do not begin with the mark of a message");
  if (header.bytes > limit)
    refuse(
        group, function, from,
        fmt::format("their header announces {} bytes, but the limit is {}", header.bytes, limit));
  return header;
}

[[noreturn]] void fail_as_sender(const GroupCoordinator& group, std::string_view function,
                                 RankInGroup from, std::span<const std::byte> text) {
  throw DataError{
      fmt::format("{}.{}: rank {} could not create its message: {}", group.name(), function,
                  name_of(group, from),
                  std::string_view{reinterpret_cast<const char*>(text.data()), text.size()}),
      "fix the error that this rank reports"};
}

// Returns a buffer of the whole length that begins with the first part; the rest is received
// into it.
Bytes begin_of(const FirstPart& part, std::uint64_t bytes) {
  Bytes message(bytes);
  const std::size_t begins = std::min<std::size_t>(bytes, short_message);
  if (begins > 0) std::memcpy(message.data(), part.data() + sizeof(Header), begins);
  return message;
}

template <class Byte>
std::span<Byte> rest_of(std::span<Byte> message) {
  return message.subspan(std::min(message.size(), short_message));
}

// Returns the lengths of all members' messages. If a member could not create its message, throws
// the same error on all of them.
std::vector<std::int64_t> exchange_lengths(GroupCoordinator& group, UserFunction function,
                                           std::size_t bytes, const Failure* failure) {
  std::vector<std::uint64_t> mine{bytes, failure == nullptr ? 0U : 1U};
  std::vector<std::uint64_t> all(2 * static_cast<std::size_t>(group.size()));
  run_or_leak([&] { group.all_gather(mine, all); }, mine, all);
  std::vector<std::int64_t> counts;
  for (std::size_t r = 0; r < all.size(); r += 2)
    counts.push_back(static_cast<std::int64_t>(all[r]));
  for (std::int64_t r = 0; r < group.size(); ++r) {
    if (all[2 * static_cast<std::size_t>(r) + 1] == 0) continue;
    std::vector<char> text(200);
    if (failure != nullptr) failure->text.copy(text.data(), text.size() - 1);
    run_or_leak([&] { group.broadcast(text, r); }, text);
    fail_as_sender(group, to_string(function), r, bytes_of(text.data()));
  }
  return counts;
}

Bytes memory_for(const std::vector<std::int64_t>& counts) {
  return Bytes(
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
}

std::vector<Bytes> divided(std::span<const std::byte> all,
                           const std::vector<std::int64_t>& counts) {
  std::vector<Bytes> messages;
  for (const std::int64_t count : counts) {
    const auto n = static_cast<std::size_t>(count);
    messages.emplace_back(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
    all = all.subspan(n);
  }
  return messages;
}

}  // namespace

void broadcast_message(GroupCoordinator& group, Bytes& message, RankInGroup root,
                       const Failure* failure, std::uint64_t limit) {
  const CalledBy by{GroupAccess::runtime(group), UserFunction::broadcast_message};
  const bool at_root = group.rank_in_group() == root;
  const std::string text = failure == nullptr ? "" : failure->text;
  const std::span<const std::byte> body =
      failure == nullptr ? std::span<const std::byte>{message} : bytes_of(text);
  auto part = std::make_unique<FirstPart>();
  if (at_root) *part = first_part_of(body, failure == nullptr ? Kind::message : Kind::failure);
  run_or_leak([&] { group.broadcast(*part, root); }, part);
  const Header header = header_of(group, "broadcast_message", root, *part, limit);
  Bytes received;
  Bytes& whole = at_root && failure == nullptr ? message : received;
  if (&whole == &received) {
    received = begin_of(*part, header.bytes);
    if (at_root) std::ranges::copy(body, received.begin());
  }
  if (header.bytes > short_message)
    run_or_leak([&] { group.broadcast(rest_of(std::span{whole}), root); }, whole);
  if (header.kind == Kind::failure) fail_as_sender(group, "broadcast_message", root, received);
  if (!at_root) message = std::move(received);
}

void send_message(GroupCoordinator& group, std::span<const std::byte> message, Peer to, int tag,
                  const Failure* failure) {
  const std::span<const std::byte> body = failure == nullptr ? message : bytes_of(failure->text);
  auto part = std::make_unique<FirstPart>(
      first_part_of(body, failure == nullptr ? Kind::message : Kind::failure));
  run_or_leak([&] { group.send(*part, to, tag); }, part);
  if (body.size() > short_message) group.send(rest_of(body), to, tag);
}

Bytes recv_message(GroupCoordinator& group, Peer from, int tag, std::uint64_t limit) {
  auto part = std::make_unique<FirstPart>();
  run_or_leak([&] { group.recv(*part, from, tag); }, part);
  const RankInGroup sender = from.resolve(group.rank_in_group(), group.size());
  const Header header = header_of(group, "recv_message", sender, *part, limit);
  Bytes message = begin_of(*part, header.bytes);
  if (header.bytes > short_message)
    run_or_leak([&] { group.recv(rest_of(std::span{message}), from, tag); }, message);
  if (header.kind == Kind::failure) fail_as_sender(group, "recv_message", sender, message);
  return message;
}

std::optional<Bytes> try_recv_message(GroupCoordinator& group, Peer from, int tag,
                                      std::uint64_t limit) {
  if (!group.probe(from, tag)) return std::nullopt;
  return recv_message(group, from, tag, limit);
}

std::vector<Bytes> gather_messages(GroupCoordinator& group, std::span<const std::byte> message,
                                   RankInGroup root, const Failure* failure) {
  const CalledBy by{GroupAccess::runtime(group), UserFunction::gather_messages};
  const auto counts =
      exchange_lengths(group, UserFunction::gather_messages, message.size(), failure);
  const bool at_root = group.rank_in_group() == root;
  Bytes all = at_root ? memory_for(counts) : Bytes{};
  run_or_leak([&] { group.gather_v(message, all, counts, root); }, all);
  return at_root ? divided(all, counts) : std::vector<Bytes>{};
}

std::vector<Bytes> all_gather_messages(GroupCoordinator& group, std::span<const std::byte> message,
                                       const Failure* failure) {
  const CalledBy by{GroupAccess::runtime(group), UserFunction::all_gather_messages};
  const auto counts =
      exchange_lengths(group, UserFunction::all_gather_messages, message.size(), failure);
  Bytes all = memory_for(counts);
  run_or_leak([&] { group.all_gather_v(message, all, counts); }, all);
  return divided(all, counts);
}

}  // namespace rankmesh::exchange
