// Which transport carries which operation: an ordered list of rules.
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

/// The kinds of element types that rules tell apart: int8 .. uint64; float32, float64; float16,
/// bfloat16; the two of 8 bits. Spelled int, float, half, fp8.
enum class TypeClass : std::uint8_t { integer, floating, half, fp8 };
inline constexpr std::size_t type_class_count = 4;
RANKMESH_API std::string_view to_string(TypeClass type_class);

constexpr TypeClass class_of(DataType type) {
  return visit(type, []<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) return TypeClass::integer;
    if constexpr (std::is_floating_point_v<T>) return TypeClass::floating;
    constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
    return is_half ? TypeClass::half : TypeClass::fp8;
  });
}

/// Bytes from `begin` up to, not including, `end`.
struct ByteRange {
  static constexpr std::int64_t infinite = std::numeric_limits<std::int64_t>::max();
  std::int64_t begin = 0;
  std::int64_t end = infinite;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// Where a rule was written. What stands further up is asked first.
enum class RouteSource : std::uint8_t {
  code,         ///< MeshOptions::routes
  environment,  ///< RANKMESH_ROUTES
  file,         ///< the mesh file
  builtin,      ///< rankmesh's defaults
};

/// A group, as far as rules tell groups apart.
struct RouteScope {
  /// As the plan has it; empty for dynamic and adopted groups, which rules for `*` alone match.
  std::string name;
  std::int64_t ranks = 2;
  /// How many nodes the group touches; nothing where that is not known (offline).
  std::optional<std::int32_t> nodes{};
};

/// One rule: conditions that all must hold, and the transport that then carries the operation.
/// Conditions that are empty hold always.
struct RANKMESH_API RouteRule {
  std::string name;                      ///< of the group; empty: `*`
  std::optional<Operation> operation{};  ///< nothing: `*`
  std::optional<MemoryKind> kind{};
  std::optional<ByteRange> bytes{};
  std::optional<TypeClass> type{};
  std::int64_t least_ranks = 2;
  std::int64_t most_ranks = std::numeric_limits<std::int64_t>::max();
  std::optional<bool> one_node{};
  std::optional<bool> capture{};
  std::string transport;

  RouteSource source = RouteSource::builtin;
  std::string origin;  ///< of the text, for people: `RANKMESH_ROUTES`, `mesh.toml:4`, `default`
  std::size_t position = 0;  ///< in the text

  /// As it is written: `tp.all_reduce:host:0-32K=shm`.
  [[nodiscard]] std::string to_string() const;
  /// Whether name, size and place of a group let it hold; places that are not known do.
  [[nodiscard]] bool fits(const RouteScope& scope) const;
};

/// What a rule is asked for besides the group.
struct RouteQuery {
  Operation operation = Operation::all_reduce;
  MemoryKind kind = MemoryKind::host;
  /// Nothing where the counts of the members differ by contract, or nobody but the two ends knows
  /// them (v-forms, objects, send and recv): rules with sizes do not match then.
  std::optional<std::int64_t> bytes{};
  /// Nothing for barriers: rules with a type do not match.
  std::optional<TypeClass> type{};
  bool capture = false;
};

/// A stretch of sizes in which the same rules are asked in the same order.
struct RouteSegment {
  ByteRange bytes;
  std::vector<std::size_t>
      rules;  ///< numbers in RouteTable::rules(); the first that can be served serves
};

/// Ordered rules; the first that matches and whose transport carries the call wins. Plain data:
/// local, no MPI.
///
///     table     := rule { ';' rule }                          a line end separates too; # begins a
///     comment rule      := name '.' operation { ':' condition } '=' transport name      := a name
///     of the mesh | '*' operation := all_reduce | broadcast | ... | '*' condition := host | device
///     kind of memory
///                | from '-' to                                bytes, from <= bytes < to; K, M, G;
///                to may be inf | int | float | half | fp8                   element type | ranks
///                '(' least [ '-' most ] ')'           size of the group, both ends included |
///                one_node | many_nodes where its members are | eager | capture device calls
///                outside and inside a CUDA graph
///     transport := mpi | shm | nccl
///
/// docs/routes.md says what `bytes` counts for every operation.
class RANKMESH_API RouteTable {
 public:
  RouteTable() = default;
  /// @param origin  what to call the text in errors and explanations.
  /// @throws SpecError with the position, the reason and a hint: what is not in the grammar, a
  /// range without
  ///         bytes, conditions that exclude each other, a rule that can never match.
  static RouteTable parse(std::string_view text, RouteSource source, std::string_view origin);
  /// The text itself, or what the file holds where it is `@PATH`. @throws SpecError.
  static RouteTable read(std::string_view text_or_path, RouteSource source,
                         std::string_view origin);
  /// What is asked last: every host and device call finds a rule there.
  static const RouteTable& defaults();

  /// Asked after this one.
  void append(const RouteTable& later);
  [[nodiscard]] const std::vector<RouteRule>& rules() const { return rules_; }
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  /// The rules in their canonical form; parses back to the same rules.
  [[nodiscard]] std::string to_string() const;

  /// @throws SpecError where a rule is for a name that is not among these.
  void check_names(const std::vector<std::string>& names) const;

  /// The stretches of sizes of one operation in one group, in order, from 0 to infinity. In each
  /// the rules are listed up to the first whose transport carries everything of its kind.
  /// `query.bytes` without a value gives one stretch.
  [[nodiscard]] std::vector<RouteSegment> resolve(const RouteScope& scope,
                                                  const RouteQuery& query) const;

 private:
  std::vector<RouteRule> rules_;
};

/// Whether a transport of that name carries every call of its kind of memory, wherever the group's
/// members are.
RANKMESH_API bool carries_everything(std::string_view transport);

/// Which transport serves, and why.
struct RANKMESH_API RouteExplanation {
  struct Skipped {
    std::string rule;
    std::string origin;
    std::string why;
  };
  std::string question;          ///< `tp.all_reduce of 8 bytes on the host`
  std::string transport;         ///< empty: none does
  std::string rule;              ///< empty where no rule is asked (groups of one)
  std::string origin;            ///< of the rule
  std::vector<Skipped> skipped;  ///< rules before it that match, and why they do not serve

  /// A line for the answer, and one for each rule that was skipped.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace rankmesh
