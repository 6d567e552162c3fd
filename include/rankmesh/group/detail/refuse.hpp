// SPDX-License-Identifier: BSD-3-Clause
// Says what to write instead of a call that does not compile.
#pragma once

#include <utility>

#include "rankmesh/group/detail/miss.hpp"

namespace rankmesh::detail {

/// The result of a call that does not compile. It converts to everything and has the functions of a
/// Work, so that the reason is the only error.
struct AnyResult {
  template <class T>
  operator T() const {
    __builtin_unreachable();
  }
  void wait() const {}
  [[nodiscard]] bool test() const { return true; }
};

/// Does not compile. The error says what is wrong with the arguments A of a call, or how to call
/// the operation.
template <Called called, class... A>
AnyResult refuse() {
  constexpr Miss miss = miss_of<called, A...>();
  static_assert(miss != Miss::no_values,
                "there are no values, and a list in braces is no memory: write std::array{1, 2} or "
                "std::vector{1, 2}");
  static_assert(miss != Miss::pointer,
                "a pointer does not say how many elements there are: write std::span{pointer, n}");
  static_assert(miss != Miss::smart_pointer,
                "a smart pointer does not say how many elements there are: write "
                "std::span{pointer.get(), n}, or *pointer");
  static_assert(miss != Miss::world_rank,
                "a rank of the world is no rank in the group: write "
                "*group.ranks().index_of(rank), or the number in the group");
  static_assert(miss != Miss::rank_or_nothing,
                "a rank may be outside the group, so this is a std::optional: write "
                "*group.ranks().index_of(rank)");
  static_assert(
      miss != Miss::packed_bits,
      "std::vector<bool> packs its values into bits: use std::vector<char> or std::array<bool, n>");
  static_assert(miss != Miss::not_contiguous,
                "the elements must be contiguous: use std::vector, std::array or std::span");
  static_assert(miss != Miss::not_described,
                "this type is not described: include its header of rankmesh/adapt/, specialise "
                "rankmesh::MemoryOf, or pass std::span{pointer, n}");
  static_assert(miss != Miss::expression,
                "an expression or a view has no values of its own in memory: evaluate it first, as "
                "in Eigen::MatrixXd sum = a + b, or xt::eval(a + b)");
  static_assert(miss != Miss::list,
                "a list of buffers is not one buffer: call the operation for each of them, or use "
                "a rankmesh::exchange::Bucket");
  static_assert(miss != Miss::not_copyable,
                "the elements must be trivially copyable: flatten them into one std::vector, or "
                "use rankmesh::exchange::all_gather_objects and its kin");
  static_assert(miss != Miss::not_reducible,
                "a ReduceOp cannot combine this type: pass a function T f(const T&, const T&), or "
                "use integers, floats or std::complex");
  static_assert(
      miss != Miss::slice,
      "a Slice is the part of one member, and the counts of all members are needed: write "
      "Blocks::even(n, group)");
  static_assert(miss != Miss::stream_early, "the stream is the last argument");
  static_assert(miss != Miss::axis_late,
                "the axis comes before the root: write (in, out, axis, root)");
  static_assert(miss != Miss::blocks_early,
                "the counts come after both buffers: write (in, out, counts, ...)");
  static_assert(miss != Miss::peer_early,
                "the buffers come first: write send_recv(in, out, to, from, tag)");
  static_assert(miss != Miss::constant,
                "the values are const, but the operation changes them: pass values that are not "
                "const, or an output where there is one, as in all_reduce(in, out)");
  static_assert(miss != Miss::constant_output, "the output is const: pass memory that can change");
  static_assert(miss != Miss::element_types,
                "the input and the output must have the same element type");
  static_assert(miss != Miss::memory_kinds,
                "the input and the output must both be host memory, or both a DeviceSpan");
  static_assert(miss != Miss::function_on_device,
                "functions combine host memory only: pass a ReduceOp for a DeviceSpan");
  static_assert(miss != Miss::no_output,
                "results in device memory are not allocated: pass a DeviceSpan as the output");
  static_assert(miss != Miss::braces_output,
                "a list in braces is no output: pass std::span<float>{} where the output is "
                "ignored, with the type of the values, or leave the output out, as in auto all = "
                "gather(in, root)");
  static_assert(miss != Miss::temporary,
                "the result needs a variable that stays valid until wait(): pass a variable");
  static_assert(miss != Miss::received_temporary,
                "nobody can read what a temporary container receives: pass a variable");
  constexpr bool other = miss != Miss::usage;
  static_assert(other || !called.is(Operation::broadcast), "write broadcast(values, root)");
  static_assert(other || !called.is(Operation::all_reduce),
                "write all_reduce(values, op) in place, or all_reduce(in, out, op); op is a "
                "ReduceOp or a function");
  static_assert(other || !called.is(Operation::reduce),
                "write reduce(values, root, op) in place, or reduce(in, out, root, op); op is a "
                "ReduceOp or a function");
  static_assert(other || !called.is(Operation::all_gather),
                "write all_gather(in, out), or auto all = all_gather(in)");
  static_assert(other || !called.is(Operation::reduce_scatter),
                "write reduce_scatter(in, out, op), or auto mine = reduce_scatter(in, op)");
  static_assert(other || !called.is(Operation::gather),
                "write gather(in, out, root), or auto all = gather(in, root)");
  static_assert(
      other || !called.is(Operation::scatter),
      "write scatter(in, out, root), or auto mine = scatter(in, root) for one value each");
  static_assert(other || !called.is(Operation::all_to_all),
                "write all_to_all(in, out), or auto all = all_to_all(in)");
  static_assert(other || !called.is(Operation::all_gather, true),
                "write all_gather_v(in, out, counts), or auto all = all_gather_v(in)");
  static_assert(other || !called.is(Operation::reduce_scatter, true),
                "write reduce_scatter_v(in, out, counts, op), or auto mine = reduce_scatter_v(in, "
                "counts, op)");
  static_assert(other || !called.is(Operation::gather, true),
                "write gather_v(in, out, counts, root), or auto all = gather_v(in, root)");
  static_assert(
      other || !called.is(Operation::scatter, true),
      "write scatter_v(in, out, counts, root), or auto mine = scatter_v(in, counts, root)");
  static_assert(other || !called.is(Operation::all_to_all, true),
                "write all_to_all_v(in, out, in_counts, out_counts), or auto all = "
                "all_to_all_v(in, in_counts)");
  static_assert(other || !called.is(Operation::send),
                "write send(values, to, tag); the tag may be left out");
  static_assert(
      other || !called.is(Operation::recv),
      "write recv(values, from, tag), or auto x = recv<float>(from, tag); the tag may be left out");
  static_assert(other || !called.is(Operation::send_recv),
                "write send_recv(in, out, to, from, tag); the tag may be left out");
  static_assert(other || !called.is(Operation::scan),
                "write scan(values, op) in place, or auto x = scan(value, op); op is a ReduceOp or "
                "a function");
  static_assert(other || !called.is(Operation::exscan),
                "write exscan(values, op) in place, or auto x = exscan(value, op); op is a "
                "ReduceOp or a function");
  static_assert(other || !called.tries,
                "write if (try_recv(values, from, tag)); the tag may be left out");
  return {};
}

}  // namespace rankmesh::detail

/// Declares an overload of an operation for all calls that no form accepts; see refuse(). The class
/// template Forms<false> has the forms and this overload. The overload asks Forms<true>, which has
/// the forms alone, whether it accepts a call. Because of the int, a call cannot give the types
/// explicitly: in recv<float>(0), `float` is the type of the value. In a requires-expression, these
/// calls count as valid.
// clang-format off
#define RANKMESH_REFUSE_OTHER(Forms, name)                                                       \
  template <int = 0, class First = detail::Braces, class... A>                                   \
    requires(!forms_only && !requires(Forms<!forms_only>& forms, First&& first, A&&... others) { \
      forms.name(std::forward<First>(first), std::forward<A>(others)...);                        \
    })                                                                                           \
  detail::AnyResult name(First&& = {}, A&&...) {                                                 \
    return detail::refuse<detail::called_by(Forms::operation_of_forms, #name), First, A...>();                 \
  }
#define RANKMESH_REFUSE_OTHERS(Forms, name) \
  RANKMESH_REFUSE_OTHER(Forms, name)        \
  RANKMESH_REFUSE_OTHER(Forms, name##_async)

/// Declares an overload for calls whose output is a list in braces. It is not the output where a
/// form accepts a root in its place.
#define RANKMESH_REFUSE_BRACES(Forms, name)                                                      \
  template <class First, class... A>                                                             \
    requires(!forms_only && !requires(Forms<!forms_only>& forms, First&& first, RankInGroup root,  \
                                      A&&... others) {                                           \
      forms.name(std::forward<First>(first), root, std::forward<A>(others)...);                  \
    })                                                                                           \
  detail::AnyResult name(First&&, detail::BracesInside, A&&...) {                                \
    return detail::refuse<detail::called_by(Forms::operation_of_forms, #name), First,            \
                          detail::BracesInside, A...>();                                         \
  }
/// Declares overloads for wrong calls of a v-form with lists in braces, which may be the counts. A
/// list is wrong if no form accepts counts, or a root, in its place. A list of several numbers is no
/// root.
#define RANKMESH_REFUSE_BRACES_OF_V(Forms, name)                                                 \
  template <class First>                                                                         \
    requires(!forms_only && !requires(Forms<!forms_only>& forms, First&& first,                  \
                                      const Blocks& counts) {                                    \
      forms.name(std::forward<First>(first), counts);                                            \
    } && requires(Forms<!forms_only>& forms, First&& first, RankInGroup root) {                  \
      forms.name(std::forward<First>(first), root);                                              \
    })                                                                                           \
  detail::AnyResult name(First&&, detail::SeveralInside) {                                       \
    return detail::refuse<detail::called_by(Forms::operation_of_forms, #name), First,            \
                          detail::BracesInside>();                                               \
  }                                                                                              \
  template <class First = detail::Braces>                                                        \
    requires(!forms_only && !requires(Forms<!forms_only>& forms, First&& first,                  \
                                      const Blocks& counts) {                                    \
      forms.name(std::forward<First>(first), counts);                                            \
    } && !requires(Forms<!forms_only>& forms, First&& first, RankInGroup root) {                 \
      forms.name(std::forward<First>(first), root);                                              \
    })                                                                                           \
  detail::AnyResult name(First&&, detail::BracesInside) {                                        \
    return detail::refuse<detail::called_by(Forms::operation_of_forms, #name), First,            \
                          detail::BracesInside>();                                               \
  }                                                                                              \
  template <class First = detail::Braces, class Third, class... A>                               \
    requires(!forms_only && !requires(Forms<!forms_only>& forms, First&& first,                  \
                                      const Blocks& counts, Third&& third, A&&... others) {      \
      forms.name(std::forward<First>(first), counts, std::forward<Third>(third),                 \
                 std::forward<A>(others)...);                                                    \
    })                                                                                           \
  detail::AnyResult name(First&&, detail::BracesInside, Third&&, A&&...) {                       \
    return detail::refuse<detail::called_by(Forms::operation_of_forms, #name), First,            \
                          detail::BracesInside, Third, A...>();                                  \
  }                                                                                              \
  template <class First = detail::Braces, class Third = detail::BracesInside>                    \
    requires(!forms_only)                                                                        \
  detail::AnyResult name(First&&, detail::BracesInside, Third&&, detail::BracesInside) {         \
    return detail::refuse<detail::called_by(Forms::operation_of_forms, #name), First,            \
                          detail::BracesInside, Third>();                                        \
  }                                                                                              \
  template <class First = detail::Braces, class... A>                                            \
    requires(!forms_only)                                                                        \
  detail::AnyResult name(First&&, detail::BracesInside, detail::BracesInside, A&&...) {          \
    return detail::refuse<detail::called_by(Forms::operation_of_forms, #name), First,            \
                          detail::BracesInside>();                                               \
  }                                                                                              \
  template <class First = detail::Braces, class Second, class... A>                              \
    requires(!forms_only && !requires(Forms<!forms_only>& forms, First&& first, Second&& second, \
                                      const Blocks& counts, A&&... others) {                     \
      forms.name(std::forward<First>(first), std::forward<Second>(second), counts,               \
                 std::forward<A>(others)...);                                                    \
    })                                                                                           \
  detail::AnyResult name(First&&, Second&&, detail::BracesInside, A&&...) {                      \
    return detail::refuse<detail::called_by(Forms::operation_of_forms, #name), First, Second,    \
                          detail::BracesInside, A...>();                                         \
  }
// clang-format on
