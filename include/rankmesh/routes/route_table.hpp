// SPDX-License-Identifier: BSD-3-Clause
// Rules that choose the transport of each operation.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// The classes of element types that rules distinguish. Rules call int8 to uint64 `int`, float32
/// and float64 `float`, float16 and bfloat16 `half`, and the two 8-bit floats `fp8`.
enum class TypeClass : std::uint8_t { integer, floating, half, fp8 };
inline constexpr std::size_t type_class_count = 4;
/// Returns the name of a class in rules.
RANKMESH_API std::string_view to_string(TypeClass type_class);

/// Returns the class of an element type.
constexpr TypeClass class_of(DataType type) {
  return visit(type, []<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) return TypeClass::integer;
    if constexpr (std::is_floating_point_v<T>) return TypeClass::floating;
    constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
    return is_half ? TypeClass::half : TypeClass::fp8;
  });
}

/// The sizes from `begin` up to, but not including, `end`, in bytes.
struct ByteRange {
  static constexpr std::int64_t infinite = std::numeric_limits<std::int64_t>::max();
  std::int64_t begin = 0;
  std::int64_t end = infinite;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// The place where a rule was written. The rules of a place precede the rules of the places that
/// are listed after it.
enum class RouteSource : std::uint8_t {
  code,         ///< MeshOptions::routes
  environment,  ///< RANKMESH_ROUTES
  file,         ///< the mesh file
  builtin,      ///< the defaults of rankmesh
};

/// The properties of a group that rules can ask for.
struct RouteScope {
  /// The name of the family. The name is empty for dynamic and adopted groups, which match only
  /// rules for `*`.
  std::string name;
  std::int64_t ranks = 2;
  /// The number of nodes that have ranks of the group. Empty if the number is not known, which is
  /// the case outside a job.
  std::optional<std::int32_t> nodes{};
};

/// One rule, which has conditions and a transport. The transport carries the operation if all
/// conditions hold. A condition that is not set always holds.
struct RANKMESH_API RouteRule {
  std::string name;                      ///< name of the family; empty: `*`
  std::optional<Operation> operation{};  ///< not set: `*`
  std::optional<MemoryKind> kind{};
  std::optional<ByteRange> bytes{};
  std::optional<TypeClass> type{};
  std::int64_t least_ranks = 2;
  std::int64_t most_ranks = std::numeric_limits<std::int64_t>::max();
  std::optional<bool> one_node{};
  std::optional<bool> capture{};
  std::string transport;

  RouteSource source = RouteSource::builtin;
  std::string origin;        ///< place for messages: `RANKMESH_ROUTES`, `mesh.toml:4`, `default`
  std::size_t position = 0;  ///< byte offset in the text

  /// Returns the rule as text, for example `tp.all_reduce:host:0-32K=shm`.
  [[nodiscard]] std::string to_string() const;
  /// Returns whether the conditions on the name, the size and the nodes of a group hold. A
  /// condition on the nodes holds if the nodes are not known.
  [[nodiscard]] bool fits(const RouteScope& scope) const;
};

/// The properties of a call, other than its group, that rules can ask for.
struct RouteQuery {
  Operation operation = Operation::all_reduce;
  MemoryKind kind = MemoryKind::host;
  /// The size as rules count it (docs/routes.md). Empty if the counts of the members may differ, or
  /// if only two members know the counts. This is the case for v-forms, objects, send and recv.
  /// Rules with sizes do not match if the size is empty.
  std::optional<std::int64_t> bytes{};
  /// The class of the element type. Empty for barriers, which rules with a type do not match.
  std::optional<TypeClass> type{};
  bool capture = false;
};

/// A range of sizes for which the same rules match in the same order.
struct RouteSegment {
  ByteRange bytes;
  /// Indices into RouteTable::rules(); the first rule whose transport can carry the call decides.
  std::vector<std::size_t> rules;
};

/// A list of rules in order. The first rule that matches, and whose transport can carry the call,
/// decides. The table is plain data. Its functions are local and do not call MPI.
///
///     table     := rule { ';' rule }                 a line end also separates; # begins a comment
///     rule      := name '.' operation { ':' condition } '=' transport
///     name      := a name of the mesh | '*'
///     operation := all_reduce | broadcast | ... | '*'
///     condition := host | device                     memory kind
///                | from '-' to                       from <= bytes < to; K, M, G; to may be inf
///                | int | float | half | fp8          element type
///                | ranks '(' least [ '-' most ] ')'  group size, both ends included
///                | one_node | many_nodes             nodes of the members
///                | eager | capture                   device calls outside and inside a CUDA graph
///     transport := mpi | shm | nccl
///
/// docs/routes.md defines the size in bytes for each operation.
class RANKMESH_API RouteTable {
 public:
  RouteTable() = default;
  /// Reads rules from text.
  /// @param origin  the name of the text in errors and explanations.
  /// @throws SpecError if the syntax is wrong, a range is empty, conditions exclude each other, or
  /// a rule can never match. The error has the position, the reason and a hint.
  static RouteTable parse(std::string_view text, RouteSource source, std::string_view origin);
  /// Reads rules from text, or from a file if the text is `@PATH`.
  /// @throws SpecError if the file cannot be read, or in the cases in which parse() throws it.
  static RouteTable read(std::string_view text_or_path, RouteSource source,
                         std::string_view origin);
  /// Returns the default rules. They match every call on host and device memory.
  static const RouteTable& defaults();

  /// Adds rules after the existing rules.
  void append(const RouteTable& later);
  /// Returns the rules in order.
  [[nodiscard]] const std::vector<RouteRule>& rules() const { return rules_; }
  /// Returns whether there are no rules.
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  /// Returns the rules in their canonical form, from which parse() reads the same rules.
  [[nodiscard]] std::string to_string() const;

  /// Checks that each rule is for `*` or for a name in `names`.
  /// @throws SpecError if a rule is for another name.
  void check_names(const std::vector<std::string>& names) const;

  /// Returns the ranges of sizes of one operation in one group, in ascending order from 0 to
  /// infinity. Each range lists its rules up to the first rule whose transport carries every call.
  /// For a query without `bytes` the result is a single range.
  [[nodiscard]] std::vector<RouteSegment> resolve(const RouteScope& scope,
                                                  const RouteQuery& query) const;

 private:
  std::vector<RouteRule> rules_;
};

/// Returns whether a transport carries every call on its kind of memory, whichever nodes the group
/// is on.
RANKMESH_API bool carries_everything(std::string_view transport);

/// The transport of a call, and the reason for it.
struct RANKMESH_API RouteExplanation {
  /// A rule that matches but whose transport cannot carry the call.
  struct Skipped {
    std::string rule;
    std::string origin;
    std::string why;
  };
  std::string question;          ///< `tp.all_reduce of 8 bytes on the host`
  std::string transport;         ///< empty if no transport can carry the call
  std::string rule;              ///< empty for groups of one rank, which need no rule
  std::string origin;            ///< the origin of the rule
  std::vector<Skipped> skipped;  ///< the matching rules before this rule

  /// Returns one line for the answer and one line for each skipped rule.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace rankmesh
