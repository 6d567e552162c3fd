// SPDX-License-Identifier: BSD-3-Clause
// The base class of the classes that declare a coordinator's operations.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/detail/calls.hpp"
#include "rankmesh/group/peer.hpp"
#include "rankmesh/group/work.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

class CallDispatcher;

/// Runs calls. The derived classes declare the operations of a coordinator; each operation creates
/// a Call from its arguments and passes the Call to this class.
class RANKMESH_API CallIssuer {
 public:
  CallIssuer(const CallIssuer&) = delete;
  CallIssuer& operator=(const CallIssuer&) = delete;

 protected:
  explicit CallIssuer(std::unique_ptr<CallDispatcher> dispatcher);
  ~CallIssuer();

  /// Runs a call. If the types M of the arguments show at compile time that the memory is ordinary
  /// (see is_ordinary), the call takes the fast path. Most calls do.
  template <Operation operation, class... M>
  void run_typed(Call&& call) {
    call.family = family_;
    if constexpr ((is_ordinary<operation, M> && ...))
      run_fast<operation>(call);
    else
      run_any(call);
  }
  /// Runs a call whose arguments all satisfy is_ordinary. Leaves out the checks that other kinds of
  /// memory need.
  template <Operation operation>
  void run_fast(const Call& call);
  /// Runs any call.
  void run(Call&& call) {
    call.family = family_;
    run_any(call);
  }
  /// Starts a call without blocking.
  /// @param kept  An object that stays alive until the operation is complete.
  [[nodiscard]] Work start(Call&& call, std::shared_ptr<void> kept = {}) {
    call.family = family_;
    return start_any(call, std::move(kept));
  }

  /// Starts the call that `build` creates from `values`. If the caller moves a container into
  /// `values`, the container and `also` stay alive until the operation is complete, even if the
  /// Work is destroyed. Otherwise only `also` stays alive, and the memory of `values` belongs to
  /// the caller.
  template <class M, class Build>
  auto start_one(M&& values, Build&& build, const std::shared_ptr<void>& also = {}) {
    if constexpr (is_borrowed<M>) {
      return start(build(values), also);
    } else {
      auto kept = std::make_shared<std::remove_cvref_t<M>>(std::forward<M>(values));
      Work work = start(build(*kept), both(kept, also));
      return OwningWork{std::move(work), std::move(kept)};
    }
  }
  template <class In, class Out, class Build>
  auto start_two(In&& in, Out&& out, Build&& build, std::shared_ptr<void> also = {}) {
    if constexpr (is_borrowed<In>) {
      return start_one(
          std::forward<Out>(out), [&](auto& o) { return build(in, o); }, std::move(also));
    } else {
      auto kept = std::make_shared<std::remove_cvref_t<In>>(std::forward<In>(in));
      return start_one(
          std::forward<Out>(out), [&](auto& o) { return build(*kept, o); },
          both(kept, std::move(also)));
    }
  }

  /// Returns the size in bytes of a message that has arrived; see Transport::arrived().
  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag);
  /// Throws UsageError unless a scatter_v has one block per member.
  void require_blocks(std::size_t blocks) const;
  /// Throws UsageError unless a buffer of an all_to_all has a multiple of size() elements.
  void require_divisible(std::size_t elements) const;

  [[nodiscard]] RankInGroup resolved(Peer peer) const { return peer.resolve(self_, size_); }

  std::unique_ptr<CallDispatcher> dispatcher_;
  std::int64_t size_;
  RankInGroup self_;
  std::uint32_t family_;  // see Call::family

 private:
  struct FastPaths;
  void run_any(const Call& call);
  [[nodiscard]] Work start_any(const Call& call, std::shared_ptr<void> kept);
  static std::shared_ptr<void> both(std::shared_ptr<void> one, std::shared_ptr<void> other) {
    if (other == nullptr) return one;
    using Pair = std::pair<std::shared_ptr<void>, std::shared_ptr<void>>;
    return std::make_shared<Pair>(std::move(one), std::move(other));
  }
};

}  // namespace rankmesh::detail
