// SPDX-License-Identifier: BSD-3-Clause
#include "detail/own_messages.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace rankmesh::detail {

void OwnMessages::complete(Receive& receive, const ConstBuffer& in) {
  receive.is_complete = true;
  if (receive.out.count != in.count || receive.out.type != in.type)
    receive.wrong.emplace(fmt::format("received {} x {}, but {} x {} were expected", in.count,
                                      to_string(in.type), receive.out.count,
                                      to_string(receive.out.type)));
  else if (in.count > 0)
    std::memmove(receive.out.data, in.data, static_cast<std::size_t>(in.bytes()));
}

void OwnMessages::send(const ConstBuffer& in, int tag) {
  const auto receive = std::ranges::find(waiting_, tag, [](const Receive* r) { return r->tag; });
  if (receive != waiting_.end()) {
    complete(**receive, in);
    waiting_.erase(receive);
    return;
  }
  Message& message = sent_.emplace_back(Message{{}, in.count, in.type, tag});
  if (in.count > 0) message.bytes.assign(in.data, in.data + in.bytes());
}

void OwnMessages::begin(Receive& receive) {
  const auto message = std::ranges::find(sent_, receive.tag, &Message::tag);
  if (message == sent_.end()) {
    waiting_.push_back(&receive);
    return;
  }
  complete(receive, {message->bytes.data(), message->count, message->type});
  sent_.erase(message);
}

std::optional<std::int64_t> OwnMessages::arrived(int tag) const {
  const auto message = std::ranges::find(sent_, tag, &Message::tag);
  if (message == sent_.end()) return std::nullopt;
  return static_cast<std::int64_t>(message->bytes.size());
}

bool OwnMessages::has_any(int tag) const {
  return std::ranges::find(sent_, tag, &Message::tag) != sent_.end() ||
         std::ranges::find(waiting_, tag, [](const Receive* r) { return r->tag; }) !=
             waiting_.end();
}

}  // namespace rankmesh::detail
