// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/helpers/check_equal.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::size_t outliers_listed = 8;

std::string_view bytes_of(const ReplicaBuffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.memory.data),
          static_cast<std::size_t>(buffer.memory.bytes())};
}

// What one member holds: of one buffer, or of all.
struct Contents {
  Hash128 hash;
  std::int64_t count = 0;  // elements of one buffer, or buffers
  friend bool operator==(const Contents&, const Contents&) = default;
};

Contents contents_of(const ReplicaBuffer& buffer) {
  return {hash_bytes(bytes_of(buffer)), buffer.memory.count / buffer.units};
}

Contents contents_of(const std::vector<Contents>& buffers) {
  return {
      hash_bytes({reinterpret_cast<const char*>(buffers.data()), std::span{buffers}.size_bytes()}),
      std::ssize(buffers)};
}

bool are_equal(const std::vector<Contents>& members) {
  return std::ranges::adjacent_find(members, std::ranges::not_equal_to{}) == members.end();
}

// The member with which the others are compared.
struct Reference {
  std::size_t member = 0;       // the first of the members that hold the most frequent values
  std::ptrdiff_t agreeing = 0;  // the number of these members
  bool is_right = false;        // false if as many members hold something else
};

Reference reference_among(const std::vector<Contents>& members) {
  const auto votes = [&](const Contents& contents) {
    return std::ranges::count(members, contents);
  };
  const auto first = std::ranges::max_element(members, {}, votes);
  const auto agreeing = votes(*first);
  const bool is_tie = std::ranges::any_of(members, [&](const Contents& contents) {
    return contents != *first && votes(contents) == agreeing;
  });
  return {static_cast<std::size_t>(first - members.begin()), agreeing, !is_tie};
}

// One number of a buffer.
std::string number_text(DataType type, const std::byte* data) {
  return visit(type, [&]<class T>(std::type_identity<T>) {
    T value;
    std::memcpy(&value, data, sizeof value);
    if constexpr (std::is_arithmetic_v<T>)
      return fmt::format("{}", +value);
    else
      return fmt::format("{}", static_cast<float>(value));
  });
}

// How a buffer differs from the right values, which have the same size.
std::string difference(const ReplicaBuffer& mine, const std::vector<std::byte>& right) {
  const ConstBuffer& memory = mine.memory;
  const std::size_t size = size_of(memory.type),
                    bytes = size * static_cast<std::size_t>(mine.units);
  std::size_t different = 0, first = 0;
  for (std::size_t at = 0; at < right.size(); at += bytes) {
    if (std::memcmp(memory.data + at, right.data() + at, bytes) == 0) continue;
    if (different++ == 0) first = at;
  }
  std::size_t unit = first;
  while (std::memcmp(memory.data + unit, right.data() + unit, size) == 0) unit += size;
  return fmt::format(
      "element {}{} is {} instead of {}, and {} of {} elements differ", first / bytes,
      mine.units == 1 ? "" : fmt::format(" ({} {})", to_string(memory.type), (unit - first) / size),
      number_text(memory.type, memory.data + unit), number_text(memory.type, right.data() + unit),
      different, right.size() / bytes);
}

// Compares the replicas in one group.
class Comparison {
 public:
  Comparison(Mesh& mesh, GroupCoordinator& group) : mesh_{mesh}, group_{group} {}

  // Returns how the members differ; empty if they do not.
  std::string run(const std::vector<ReplicaBuffer>& buffers,
                  const std::vector<Contents>& contents) {
    const detail::CalledBy by{detail::GroupAccess::runtime(group_),
                              detail::UserFunction::check_equal};
    const std::vector<Contents> all = group_.all_gather(contents_of(contents));
    if (are_equal(all)) return {};
    const auto counts = [](const Contents& a, const Contents& b) { return a.count != b.count; };
    if (std::ranges::adjacent_find(all, counts) != all.end()) return of_counts(all, "buffers");
    std::string text;
    std::size_t others = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::vector<Contents> members = group_.all_gather(contents[i]);
      if (are_equal(members)) continue;
      if (!text.empty()) {
        ++others;
        continue;
      }
      if (buffers.size() > 1) text = fmt::format("buffer {}: ", i);
      text += std::ranges::adjacent_find(members, counts) != members.end()
                  ? of_counts(members, "elements")
                  : of_values(members, buffers[i]);
    }
    if (others > 0) text += fmt::format("; {} other buffers differ", others);
    return text;
  }

 private:
  std::string name_of(std::size_t member) const {
    const Rank rank = group_.ranks().at(static_cast<std::int64_t>(member));
    return fmt::format("rank {} ({})", rank.value(), mesh_.plan().describe(rank));
  }

  std::string of_counts(const std::vector<Contents>& members, std::string_view noun) const {
    const std::int64_t right = members[reference_among(members).member].count;
    std::vector<std::string> texts;
    for (std::size_t k = 0; k < members.size(); ++k)
      if (members[k].count != right)
        texts.push_back(
            fmt::format("{}: {} {} instead of {}", name_of(k), members[k].count, noun, right));
    return joined(std::move(texts));
  }

  std::string of_values(const std::vector<Contents>& members, const ReplicaBuffer& mine) {
    const Reference reference = reference_among(members);
    const std::size_t source = reference.member;
    const auto self = group_.rank_in_group().to_size();
    const std::string_view bytes = bytes_of(mine);
    std::vector<std::byte> right(bytes.size());
    std::memcpy(right.data(), bytes.data(), bytes.size());
    group_.broadcast(right, source);
    const std::string text = members[self] == members[source] ? "" : difference(mine, right);
    const auto texts = group_.all_gather_v(text);
    std::vector<std::string> outliers;
    for (std::size_t k = 0; k < members.size(); ++k)
      if (const auto one = texts[k]; !one.empty())
        outliers.push_back(
            fmt::format("{}: {}", name_of(k), std::string_view{one.data(), one.size()}));
    if (!reference.is_right)
      return fmt::format(
          "{}; compared with {}: there is no majority, so it is not known which "
          "values are right",
          joined(std::move(outliers)), name_of(source));
    return fmt::format(
        "{}; the values of {} of {} members are right; the first of these members is {}",
        joined(std::move(outliers)), reference.agreeing, members.size(), name_of(source));
  }

  static std::string joined(std::vector<std::string> texts) {
    const std::size_t more = texts.size() > outliers_listed ? texts.size() - outliers_listed : 0;
    texts.resize(texts.size() - more);
    if (more > 0) texts.push_back(fmt::format("{} other ranks differ", more));
    return fmt::format("{}", fmt::join(texts, "; "));
  }

  Mesh& mesh_;
  GroupCoordinator& group_;
};

}  // namespace

void check_replicas(Mesh& mesh, const std::vector<ReplicaBuffer>& buffers,
                    const FamilyNames& families, std::string_view name) {
  std::vector<Contents> contents;
  for (const ReplicaBuffer& buffer : buffers) contents.push_back(contents_of(buffer));
  // All groups are compared before a rank throws, because members of later groups wait for it.
  std::vector<std::string> findings;
  for (GroupCoordinator* group : families.groups_of(mesh))
    if (const std::string text = Comparison{mesh, *group}.run(buffers, contents); !text.empty())
      findings.push_back(fmt::format("{}: {}", group->name(), text));
  if (!findings.empty())
    throw MismatchError{
        fmt::format("{} differ between replicas in {}", name, fmt::join(findings, "; in ")),
        "broadcast_parameters() makes replicas equal; replicas drift apart if a "
        "gradient was not reduced, or if ranks draw different random numbers",
        false};
}

}  // namespace rankmesh::detail
