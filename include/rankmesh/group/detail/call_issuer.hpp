// SPDX-License-Identifier: BSD-3-Clause
// Passes the calls of one group to its dispatcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "rankmesh/base/array_shape.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/base/user_function.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/peer.hpp"
#include "rankmesh/group/work.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

class CallDispatcher;
struct MeshRuntime;

/// Runs calls, and answers what operations ask about the group.
class RANKMESH_API CallIssuer {
 public:
  explicit CallIssuer(std::unique_ptr<CallDispatcher> dispatcher);
  ~CallIssuer();
  CallIssuer(const CallIssuer&) = delete;
  CallIssuer& operator=(const CallIssuer&) = delete;

  /// Runs a call whose arguments all satisfy is_ordinary. Leaves out the checks that other kinds of
  /// memory need.
  template <Operation operation>
  void run_fast(const Call& call);
  /// Runs any call.
  void run_any(const Call& call);
  /// Starts a call without blocking.
  /// @param kept  An object that stays alive until the operation is complete.
  [[nodiscard]] Work start_any(const Call& call, std::shared_ptr<void> kept);

  /// Returns the size in bytes of a message that has arrived, if it is known.
  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag);
  /// Throws UsageError if this member knows that the arguments of a v-form are wrong, before the
  /// members exchange the sizes of the blocks.
  /// @param of_arrays  Whether the elements that the Blocks count are arrays.
  void require_sizes(const Call& call, bool of_arrays) const;
  /// Throws UsageError unless a buffer of an all_to_all has a multiple of size() elements.
  void require_divisible(std::size_t elements) const;

  /// Throws UsageError unless the elements of two arrays follow each other in the same order, and
  /// blocks that follow each other in memory are parts along one axis. Accepts all arrays of one
  /// axis or none.
  /// @param has_axis  Whether the blocks lie along an Axis.
  void require_same_axes(const Call& call, const ArrayShape& in, const ArrayShape& out,
                         bool has_axis) const;

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(size_); }
  [[nodiscard]] RankInGroup self() const { return self_; }
  [[nodiscard]] std::uint32_t name_index() const { return name_index_; }
  [[nodiscard]] RankInGroup resolved(Peer peer) const { return peer.resolve(self_, size_); }

 protected:
  friend class CalledBy;
  struct FastPaths;

  std::unique_ptr<CallDispatcher> dispatcher_;
  std::int64_t size_;
  RankInGroup self_;
  std::uint32_t name_index_;  // see Call::name_index
};

/// As long as an object of this class exists, calls of the mesh belong to a function that the
/// program has called. Errors name it. If a function calls another one, the outer one counts.
class RANKMESH_API CalledBy {
 public:
  CalledBy(MeshRuntime& runtime, UserFunction function);
  CalledBy(const CallIssuer& group, UserFunction function);
  ~CalledBy();
  CalledBy(const CalledBy&) = delete;
  CalledBy& operator=(const CalledBy&) = delete;

 private:
  MeshRuntime& runtime_;
  UserFunction before_;
};

}  // namespace rankmesh::detail
