// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/helpers/check_equal.hpp"

#include <algorithm>
#include <compare>
#include <cstring>
#include <map>
#include <ranges>
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
  std::uint64_t hash_low = 0, hash_high = 0;
  std::int64_t count = 0;  // elements of one buffer, or buffers
  std::int64_t units = 0;  // numbers in an element of a buffer
  std::int64_t type = 0;   // of these numbers
  friend auto operator<=>(const Contents&, const Contents&) = default;
  [[nodiscard]] bool has_size_of(const Contents& other) const {
    return count == other.count && has_elements_of(other);
  }
  [[nodiscard]] bool has_elements_of(const Contents& other) const {
    return units == other.units && type == other.type;
  }
};

Contents contents_of(const ReplicaBuffer& buffer) {
  const Hash128 hash = hash_bytes(bytes_of(buffer));
  return {hash.low, hash.high, buffer.memory.count / buffer.units, buffer.units,
          static_cast<std::int64_t>(buffer.memory.type)};
}

Contents contents_of(const std::vector<Contents>& buffers) {
  const Hash128 hash =
      hash_bytes({reinterpret_cast<const char*>(buffers.data()), std::span{buffers}.size_bytes()});
  return {hash.low, hash.high, std::ssize(buffers)};
}

bool have_one_size(const std::vector<Contents>& members) {
  return std::ranges::all_of(
      members, [&](const Contents& other) { return other.has_size_of(members.front()); });
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
  std::map<Contents, std::ptrdiff_t> votes;
  for (const Contents& contents : members) ++votes[contents];
  const auto votes_of = [&](const Contents& contents) { return votes.at(contents); };
  const auto first = std::ranges::max_element(members, {}, votes_of);
  const std::ptrdiff_t agreeing = votes_of(*first);
  const auto winners = std::ranges::count(votes | std::views::values, agreeing);
  return {static_cast<std::size_t>(first - members.begin()), agreeing, winners == 1};
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
    if (!have_one_size(all)) return of_counts(all, "buffers");
    const std::vector<std::size_t> different = different_ones(contents);
    const std::size_t first = different.front();
    const std::vector<Contents> members = group_.all_gather(contents[first]);
    std::string text = buffers.size() > 1 ? fmt::format("buffer {}: ", first) : std::string{};
    text += have_one_size(members) ? of_values(members, buffers[first])
                                   : of_counts(members, "elements");
    if (different.size() > 1)
      text += fmt::format("; {} other buffers differ", different.size() - 1);
    return text;
  }

 private:
  // Returns the numbers of the buffers that are not equal on all members. Where all members have
  // one number, its greatest complement is the complement of the greatest number.
  std::vector<std::size_t> different_ones(const std::vector<Contents>& contents) {
    std::vector<std::uint64_t> numbers;
    for (const Contents& c : contents)
      for (const std::uint64_t number :
           {c.hash_low, c.hash_high, static_cast<std::uint64_t>(c.count),
            static_cast<std::uint64_t>(c.units), static_cast<std::uint64_t>(c.type)})
        numbers.insert(numbers.end(), {number, ~number});
    group_.all_reduce(numbers, ReduceOp::max);
    const std::size_t each = numbers.size() / contents.size();
    std::vector<std::size_t> different;
    for (std::size_t i = 0; i < numbers.size(); i += 2)
      if (numbers[i] != ~numbers[i + 1] && (different.empty() || different.back() != i / each))
        different.push_back(i / each);
    return different;
  }
  std::string name_of(std::size_t member) const {
    const Rank rank = group_.ranks().at(static_cast<std::int64_t>(member));
    return fmt::format("rank {} ({})", rank.value(), mesh_.plan().describe(rank));
  }

  std::string of_counts(const std::vector<Contents>& members, std::string_view noun) const {
    const Contents& right = members[reference_among(members).member];
    const auto with_type = [](const Contents& c) {
      return fmt::format("{} x {}", c.count * c.units, to_string(static_cast<DataType>(c.type)));
    };
    std::vector<std::string> texts;
    for (std::size_t k = 0; k < members.size(); ++k)
      if (!members[k].has_size_of(right))
        texts.push_back(members[k].has_elements_of(right)
                            ? fmt::format("{}: {} {} instead of {}", name_of(k), members[k].count,
                                          noun, right.count)
                            : fmt::format("{}: {} instead of {}", name_of(k), with_type(members[k]),
                                          with_type(right)));
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

void require_host(const ConstBuffer& memory) {
  if (memory.kind != MemoryKind::host)
    throw UsageError{"check_equal of device memory", "copy device memory to the host before"};
}

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
