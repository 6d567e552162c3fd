// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/shares.hpp"

#include "transport/detail/reduce_kernels.hpp"
#include "transport/levels/scheme.hpp"

namespace rankmesh::levels {
namespace {

using shm::Flow;
using shm::Group;
using shm::Payload;
using shm::Step;

// A step carries the same part of all shares, so every carrier takes part in each step.
Payload payload_of_shares(const Group&, const Call& call) {
  const Piece& piece = piece_of(call);
  return {piece.share, piece.element_bytes() * static_cast<std::size_t>(piece.carriers)};
}

Payload payload_of_share(const Group&, const Call& call) {
  const Piece& piece = piece_of(call);
  return {piece.share, piece.element_bytes()};
}

void publish_shares(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  std::byte* to = group.payload(group.self, step);
  for (int carrier = 0; carrier < piece.carriers; ++carrier) {
    const Piece::Range part = piece.part(carrier, step.at, step.count);
    shm::copy_bytes(to, shm::element(piece.in, piece.begin + part.begin), piece.bytes(part.count));
    to += piece.bytes(step.count);
  }
}

void reduce_share(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  if (!piece.is_carrier()) return;
  const int carrier = piece.carrier();
  const Piece::Range part = piece.part(carrier, step.at, step.count);
  group.set_sources(step, static_cast<std::size_t>(carrier) * piece.bytes(step.count));
  group.sources[group.self] = shm::element(piece.in, piece.begin + part.begin);
  // For an average, the sum is divided when the results of the nodes are added up.
  detail::reduce(piece.type(), piece.reduction == ReduceOp::avg ? ReduceOp::sum : piece.reduction,
                 piece.scratch_partial() + piece.bytes(step.at), group.sources.get(),
                 static_cast<int>(group.size), part.count);
}

void publish_share(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  if (!piece.is_carrier()) return;
  shm::copy_bytes(group.payload(group.self, step), piece.result + piece.bytes(step.at),
                  piece.bytes(piece.part(piece.carrier(), step.at, step.count).count));
}

void read_shares(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  for (int carrier = 0; carrier < piece.carriers; ++carrier) {
    const auto from = static_cast<std::size_t>(piece.place_of_carrier(carrier));
    const Piece::Range part = piece.part(carrier, step.at, step.count);
    shm::copy_bytes(
        shm::element(piece.out, piece.begin + part.begin),
        from == group.self ? piece.result + piece.bytes(step.at) : group.payload(from, step),
        piece.bytes(part.count));
  }
}

void read_shares_at_root(const Group& group, const Step& step) {
  if (piece_of(step).is_root()) read_shares(group, step);
}

}  // namespace

extern constexpr CarrierSteps reduce_shares{
    {
        .name = "reduce_shares",
        .operation = Operation::all_reduce,
        .payload = payload_of_shares,
        .first = {.publish = publish_shares, .read = reduce_share},
    },
    Flow::all_to_root};

extern constexpr CarrierSteps spread_shares{
    {
        .name = "spread_shares",
        .operation = Operation::all_reduce,
        .payload = payload_of_share,
        .first = {.publish = publish_share, .read = read_shares},
    },
    Flow::root_to_all};

extern constexpr shm::Algorithm shares_to_root{
    .name = "shares_to_root",
    .operation = Operation::reduce,
    .payload = payload_of_share,
    .first = {.flow = Flow::all_to_root, .publish = publish_share, .read = read_shares_at_root},
};

extern constexpr shm::Algorithm spread_from_root{
    .name = "spread_from_root",
    .operation = Operation::broadcast,
    .payload =
        [](const Group&, const Call& call) {
          const Piece& piece = piece_of(call);
          return Payload{piece.count, piece.element_bytes()};
        },
    .first = {.flow = Flow::root_to_all,
              .publish =
                  [](const Group& group, const Step& step) {
                    shm::copy_bytes(group.payload(group.self, step),
                                    shm::element(step.call.out, piece_of(step).begin + step.at),
                                    step.bytes);
                  },
              .read =
                  [](const Group& group, const Step& step) {
                    if (shm::is_root(group, step.call)) return;
                    shm::copy_bytes(shm::element(step.call.out, piece_of(step).begin + step.at),
                                    group.payload(shm::root_of(step.call), step), step.bytes);
                  }},
};

}  // namespace rankmesh::levels
