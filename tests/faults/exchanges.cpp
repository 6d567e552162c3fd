// SPDX-License-Identifier: BSD-3-Clause
// Mistakes with the functions of exchange/.
#include <sstream>

#include "faults/operations.hpp"
#include "rankmesh/exchange/bucket.hpp"
#include "rankmesh/exchange/control_queue.hpp"
#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "rankmesh/exchange/lockstep.hpp"
#include "rankmesh/exchange/message.hpp"
#include "rankmesh/exchange/stage_exchange.hpp"
#include "rankmesh/helpers/print.hpp"

namespace faults {
namespace {

using namespace exchange;

void expert_maps(Cell& c) {
  c.expect({}, {});
  const std::int64_t experts = c.size * c.pick(4, 2);
  const ExpertDispatcher dispatcher{*c.group, ExpertMap::contiguous(experts, c.size)};
}
void expert_map_of_two_slots(Cell& c) {  // the same number of experts, in another order
  c.expect({}, {});
  std::vector<std::int32_t> experts;
  for (std::int32_t i = 0; i < 2 * c.size; ++i) experts.push_back(i);
  if (c.is_odd()) std::swap(experts.front(), experts.back());
  const ExpertDispatcher dispatcher{*c.group, ExpertMap{experts, 2 * c.size, c.size}};
}

// Every rank sends rows to all experts; the rows of the odd rank have one element more.
void expert_widths(Cell& c) {
  ExpertDispatcher dispatcher{*c.group, ExpertMap::contiguous(c.size, c.size)};
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < c.size; ++i) ids.push_back(i);
  const ExpertRoute route = dispatcher.route(ids, 1);
  const std::size_t width = c.block() + (c.is_odd() ? 1 : 0);
  c.expect({}, {});
  dispatcher.dispatch(route, c.memory<float>(static_cast<std::size_t>(route.tokens()) * width),
                      c.memory<float>(static_cast<std::size_t>(route.rows()) * width));
}

Bytes message_of(const Cell& c) { return Bytes(static_cast<std::size_t>(c.bytes), std::byte{7}); }
void root_of_broadcast(Cell& c) {
  Bytes message = message_of(c);
  c.expect({"root " + std::to_string(c.size - 1)}, {"root 0"});
  broadcast_message(*c.group, message, c.pick(last_member(c), first_member));
}
void root_of_gather(Cell& c) {
  c.expect({"root " + std::to_string(c.size - 1)}, {"root 0"});
  (void)gather_messages(*c.group, message_of(c), c.pick(last_member(c), first_member));
}
void gather_and_all_gather(Cell& c) {
  c.expect({}, {});
  if (c.is_odd())
    (void)all_gather_messages(*c.group, message_of(c));
  else
    (void)gather_messages(*c.group, message_of(c), first_member);
}

void first_round_of_bucket(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({}, {});
  Bucket bucket{*c.group};
  bucket.add(c.memory<float>(c.pick(n - 1, n)));
  bucket.wait();
}
void order_of_bucket(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({}, {});
  Bucket bucket{*c.group};
  const auto a = c.memory<float>(n), b = c.memory<float>(n + 1);
  bucket.add(c.pick(b, a));
  bucket.add(c.pick(a, b));
  bucket.wait();
}
void later_round_of_bucket(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({}, {});
  Bucket bucket{*c.group};
  bucket.add(c.memory<float>(n));
  bucket.wait();
  bucket.add(c.memory<float>(c.pick(n - 1, n)));
  bucket.wait();
}
void later_order_of_bucket(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({"bucket 0 with buffer 1 in place 0"}, {"bucket 0"});
  Bucket bucket{*c.group};
  const auto a = c.memory<float>(n), b = c.memory<float>(n);
  for (const bool is_other : {false, c.is_odd()}) {
    bucket.add(is_other ? b : a);
    bucket.add(is_other ? a : b);
    bucket.wait();
  }
}
void size_of_bucket(Cell& c) {  // the odd rank needs two collectives where the others need one
  const std::size_t n = c.floats();
  c.expect({}, {});
  Bucket bucket{*c.group, {.bytes = c.pick<std::int64_t>(c.bytes, 4 * c.bytes)}};
  bucket.add(c.memory<float>(n));
  bucket.add(c.memory<float>(n));
  bucket.wait();
}

void options_of_lockstep(Cell& c) {
  c.expect({}, {});
  Lockstep lockstep{*c.group, {.sizes = {8, 16}, .multiple = c.pick(4, 2)}};
  (void)lockstep.agree({.tokens = 3});
}
void extra_step(Cell& c) {
  c.expect({"tp.Lockstep: all_reduce("}, {"tp.all_reduce("});
  Lockstep lockstep{*c.group};
  (void)lockstep.agree({.tokens = 3});
  if (c.is_odd()) (void)lockstep.agree({.tokens = 3});
}

void writer_of_queue(Cell& c) {
  c.expect({}, {});
  const ControlQueue queue{*c.group, c.pick(last_member(c), first_member)};
}
void slots_of_queue(Cell& c) {
  c.expect({}, {});
  const ControlQueue queue{*c.group, first_member, {.slots = c.pick(16, 32)}};
}
void missing_message(Cell& c) {  // the first member writes no message
  c.expect({}, {});
  ControlQueue queue{*c.group, first_member, {.slots = 16}};
  if (c.is_odd()) (void)queue.read();
}

void unread_message(Cell& c) {
  c.expect({"control queue"}, {});
  ControlQueue queue{*c.group, first_member, {.slots = 16}};
  for (int i = 0; i < 2; ++i)
    if (c.rank == 0)
      queue.write(Bytes(4));
    else if (i == 0 || !c.is_odd())
      (void)queue.read();
}

void new_map(Cell& c) {
  c.expect("");
  ExpertDispatcher dispatcher{*c.group, ExpertMap::contiguous(2 * c.size, c.size)};
  c.expect({"set_map"}, {"set_map"});
  std::vector<std::int32_t> experts;
  for (std::int32_t i = 0; i < 2 * c.size; ++i) experts.push_back(i);
  if (c.is_odd()) std::swap(experts.front(), experts.back());
  dispatcher.set_map(ExpertMap{experts, 2 * c.size, c.size});
}
void printing(Cell& c) {
  c.expect({"tp.all_reduce("}, {"print_in_order"});
  std::ostringstream out;
  c.is_odd() ? c.good(4, 1) : rankmesh::print_in_order(out, *c.group, "text");
}
void skipped_stage(Cell& c) {  // the last stage receives once less
  c.expect({"send", "tag"}, {});
  StageExchange stages{*c.group};
  const auto values = c.memory<float>(4);
  for (int i = 0; i < c.pick(2, 3); ++i) {
    stages.recv_forward(values);
    stages.send_forward(values);
  }
}
void no_message(Cell& c) {  // bytes that send_message() has not sent
  c.expect({"recv_message", "tp"}, {"rank " + std::to_string(c.odd)});
  if (c.is_odd()) c.group->send(c.memory<std::byte>(1024), 0);
  if (c.rank == 0) (void)recv_message(*c.group, RankInGroup{c.odd});
}

}  // namespace

Kinds exchanges() {
  return {
      {.name = "expert_maps", .fault = expert_maps, .has_one_size = true},
      {.name = "expert_order", .fault = expert_map_of_two_slots, .has_one_size = true},
      {.name = "expert_widths", .fault = expert_widths},
      {.name = "expert_set_map", .fault = new_map, .has_one_size = true},
      {.name = "object_print", .fault = printing, .has_one_size = true},
      {.name = "object_garbage",
       .expected = Expected::told,
       .fault = no_message,
       .has_one_size = true},
      {.name = "send_extra_stage",
       .expected = Expected::told,
       .fault = skipped_stage,
       .has_one_size = true},
      {.name = "object_root_broadcast", .fault = root_of_broadcast},
      {.name = "object_root_gather", .fault = root_of_gather},
      {.name = "object_all_gather", .fault = gather_and_all_gather},
      {.name = "bucket_first", .fault = first_round_of_bucket},
      {.name = "bucket_order", .fault = order_of_bucket},
      {.name = "bucket_later", .expected = Expected::usage, .fault = later_round_of_bucket},
      {.name = "bucket_later_order", .fault = later_order_of_bucket},
      {.name = "bucket_size", .fault = size_of_bucket},
      {.name = "lockstep_options", .fault = options_of_lockstep, .has_one_size = true},
      {.name = "lockstep_extra", .fault = extra_step, .has_one_size = true},
      {.name = "queue_writer", .fault = writer_of_queue, .has_one_size = true},
      {.name = "queue_slots", .fault = slots_of_queue, .has_one_size = true},
      {.name = "queue_unread",
       .expected = Expected::told,
       .fault = unread_message,
       .has_one_size = true},
      {.name = "queue_silent",
       .expected = Expected::told,
       .fault = missing_message,
       .has_one_size = true},
  };
}

}  // namespace faults
