// SPDX-License-Identifier: BSD-3-Clause
// The base of the classes that declare the forms of one operation.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "rankmesh/base/memory.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/group/axis.hpp"
#include "rankmesh/group/detail/call_issuer.hpp"
#include "rankmesh/group/detail/calls.hpp"
#include "rankmesh/group/detail/refuse.hpp"
#include "rankmesh/group/value.hpp"
#include "rankmesh/group/work.hpp"
#include "rankmesh/transport/call.hpp"
#include "rankmesh/transport/user_reduction.hpp"

namespace rankmesh {

/// What the asynchronous form of an operation returns: a Work, or an OwningWork if a container of
/// type M was moved into the call.
template <class M>
using WorkOn = std::conditional_t<detail::is_borrowed<M>, Work, OwningWork<std::remove_cvref_t<M>>>;

namespace detail {

/// Creates the calls of an operation from typed memory, and runs them. A class that inherits from
/// this one declares the forms of the operation. It passes the memory and, in a Call, the other
/// arguments: the root, the reduction, the tag, the stream. GroupCoordinator inherits from all
/// these classes, which are empty, and from the CallIssuer that runs their calls.
template <Operation operation>
class OperationForms {
 public:
  OperationForms(const OperationForms&) = delete;
  OperationForms& operator=(const OperationForms&) = delete;

 protected:
  static constexpr Operation operation_of_forms = operation;

  OperationForms() = default;
  ~OperationForms() = default;

  /// Returns what runs the calls of the group.
  CallIssuer& issuer();
  /// Returns the forms of another operation of the group.
  template <class Forms>
  Forms& other();

  /// Runs the operation without Blocks and Axis. If the types of the memory show at compile time
  /// that it is ordinary (see is_ordinary), the call takes the fast path. Most calls do.
  template <class In, class Out>
  void run(In& in, Out& out, Call&& call) {
    describe(call, in, out);
    if constexpr (is_ordinary<operation, In> && is_ordinary<operation, Out>)
      issuer().template run_fast<operation>(call);
    else
      issuer().run_any(call);
  }
  /// Does the same for an operation in place, or with one buffer.
  template <class M>
  void run(M& values, Call&& call) {
    run(values, values, std::move(call));
  }
  /// Runs the operation with Blocks or an Axis.
  template <class In, class Out>
  void run_any(In& in, Out& out, Call&& call, const Axis* axis = nullptr) {
    describe(call, in, out, axis);
    issuer().run_any(call);
  }
  /// Checks a v-form that returns its result, as far as this member can before the members exchange
  /// the sizes of the blocks.
  template <class In>
  void require_sizes(In& in, const Blocks& blocks, RankInGroup root = {}) {
    const auto& sizes = blocks_in<In>(blocks);
    Call call{.operation = operation, .in = calls::input(in), .root = root};
    (gathers(operation) ? call.out_blocks : call.in_blocks) = &sizes;
    issuer().require_sizes(call, units_of<In> != units_per_leaf<In>);
  }
  /// Runs a reduction with a function of the program.
  template <class In, class Out, class F>
  void run_user(In& in, Out& out, F& combine, Commutative commutative, RankInGroup root = {}) {
    ReductionOf<Out, F> reduction{combine, commutative};
    issuer().run_any(user_call(in, out, reduction, root));
  }

  /// Starts the operation without blocking. If the caller moves a container into `in` or `out`, the
  /// container stays alive until the operation is complete, even if the Work is destroyed.
  /// Otherwise the memory belongs to the caller.
  template <class In, class Out>
  WorkOn<Out> start(In&& in, Out&& out, Call&& call, const Axis* axis = nullptr) {
    const auto own_in = kept<In>(in);
    const auto own_out = kept<Out>(out);
    describe(call, *own_in, *own_out, axis);
    return started<Out>(call, own_out, owner(own_in));
  }
  /// Does the same for an operation in place, or with one buffer.
  template <class M>
  WorkOn<M> start(M&& values, Call&& call) {
    const auto own = kept<M>(values);
    describe(call, *own, *own);
    return started<M>(call, own, {});
  }
  /// Starts a reduction with a function of the program.
  template <class In, class Out, class F>
  WorkOn<Out> start_user(In&& in, Out&& out, F& combine, Commutative commutative,
                         RankInGroup root = {}) {
    const auto reduction = std::make_shared<ReductionOf<Out, F>>(combine, commutative);
    const auto own_in = kept<In>(in);
    const auto own_out = kept<Out>(out);
    return started<Out>(user_call(*own_in, *own_out, *reduction, root), own_out,
                        both(owner(own_in), reduction));
  }
  /// Does the same in place.
  template <class M, class F>
  WorkOn<M> start_user(M&& values, F& combine, Commutative commutative) {
    const auto reduction = std::make_shared<ReductionOf<M, F>>(combine, commutative);
    const auto own = kept<M>(values);
    return started<M>(user_call(*own, *own, *reduction, {}), own, reduction);
  }

 private:
  template <class M, class F>
  using ReductionOf = UserReductionOf<ValueOf<M>, std::decay_t<F>>;

  // Adds the operation, its memory and an axis to a call.
  template <class In, class Out>
  void describe(Call& call, In& in, Out& out, const Axis* axis = nullptr) {
    call.operation = operation;
    call.name_index = name_and_order(in, out);
    if constexpr (facts_of(operation).in != Extent::none) assign(call.in, buffer_of(in));
    if constexpr (facts_of(operation).out != Extent::none) assign(call.out, buffer_of(out));
    check_axes(call, in, out, axis);
    if (axis != nullptr) call = along(*axis, call, in, out);
    if constexpr (reduces(operation) && is_complex<LeafOf<ElementOf<Out>>>)
      require_complex(call.reduction);
  }
  // The elements of an array are a sequence only in the order of its axes, so the input and the
  // output must have the same order.
  template <class In, class Out>
  void check_axes(const Call& call, In& in, Out& out, const Axis* axis) {
    if constexpr ((HasShape<In> || HasShape<Out>)&&facts_of(operation).in != Extent::none &&
                  facts_of(operation).out != Extent::none && operation != Operation::send_recv)
      issuer().require_same_axes(call, shape_of(in), shape_of(out), axis != nullptr);
  }
  // Returns Call::name_index. The order is that of the buffer that every member has. Those of
  // messages are not compared.
  template <class In, class Out>
  std::uint32_t name_and_order(In& in, Out& out) {
    const std::uint32_t name = issuer().name_index();
    const auto with_order = [name]<class M>(M& memory) {
      if constexpr (HasShape<M>)
        return name | static_cast<std::uint32_t>(DescriptionOf<M>::shape(memory).order()) << 14;
      else
        return name;
    };
    if constexpr (is_point_to_point(operation))
      return name;
    else if constexpr (counts_output(operation))
      return with_order(out);
    else
      return with_order(in);
  }
  // Returns the shape of an array, or for other memory one without axes.
  template <class M>
  static ArrayShape shape_of(M& memory) {
    if constexpr (HasShape<M>)
      return DescriptionOf<M>::shape(memory);
    else
      return {};
  }
  // Returns the call with blocks along an axis.
  template <class In, class Out>
  static Call along(const Axis& axis, const Call& call, In& in, Out& out) {
    return axis.along(call, units_per_leaf<Out>,
                      axis.is_mirrored(shape_of(in)) || axis.is_mirrored(shape_of(out)));
  }
  // Copies the members one by one, so that the fast path keeps them in registers.
  template <class To, class From>
  static void assign(To& to, const From& from) {
    to.data = from.data;
    to.count = from.count;
    to.type = from.type;
    to.kind = from.kind;
    to.window = from.window;
  }
  // The counts of the buffers are in bytes.
  template <class In, class Out>
  Call user_call(In& in, Out& out, UserReduction& reduction, RankInGroup root) {
    const Call call{.operation = operation,
                    .in = calls::bytes_of(in).as_input(),
                    .out = calls::bytes_of(out),
                    .user = &reduction,
                    .root = root,
                    .name_index = name_and_order(in, out)};
    check_axes(call, in, out, nullptr);
    return call;
  }

  // Returns a pointer to memory of the caller, to a container that was moved into the call, or to a
  // copy of an object that shares its memory.
  template <class M>
  static auto kept(std::remove_reference_t<M>& memory) {
    if constexpr (ownership_of<M>() == Ownership::shared)
      return std::make_shared<std::remove_cvref_t<M>>(memory);
    else if constexpr (is_borrowed<M>)
      return std::addressof(memory);
    else
      return std::make_shared<std::remove_cvref_t<M>>(std::move(memory));
  }
  static std::shared_ptr<void> owner(const void* /*borrowed*/) { return {}; }
  template <class M>
  static std::shared_ptr<void> owner(const std::shared_ptr<M>& moved) {
    return moved;
  }
  static std::shared_ptr<void> both(std::shared_ptr<void> first, std::shared_ptr<void> second) {
    if (first == nullptr) return second;
    if (second == nullptr) return first;
    using Pair = std::pair<std::shared_ptr<void>, std::shared_ptr<void>>;
    return std::make_shared<Pair>(std::move(first), std::move(second));
  }
  template <class Out, class Kept>
  WorkOn<Out> started(const Call& call, const Kept& out, std::shared_ptr<void> also) {
    Work work = issuer().start_any(call, both(owner(out), std::move(also)));
    if constexpr (is_borrowed<Out>)
      return work;
    else
      return {std::move(work), out};
  }
};

}  // namespace detail

}  // namespace rankmesh
