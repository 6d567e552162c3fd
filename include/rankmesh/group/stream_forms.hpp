// SPDX-License-Identifier: BSD-3-Clause
// Operations on device memory with a stream, but without a reduction or a tag.
#pragma once

#include <type_traits>
#include <utility>

#include "rankmesh/group/point_to_point.hpp"

namespace rankmesh {

/// Adds forms for device memory that leave out the reduction (which is then a sum) or the tag
/// (which is then 0) before the stream. The stream is the last argument of every operation.
class StreamForms : public PointToPoint {
 public:
  using PointToPoint::all_reduce;
  using PointToPoint::all_reduce_async;
  using PointToPoint::recv;
  using PointToPoint::recv_async;
  using PointToPoint::reduce;
  using PointToPoint::reduce_async;
  using PointToPoint::reduce_scatter;
  using PointToPoint::reduce_scatter_async;
  using PointToPoint::reduce_scatter_v;
  using PointToPoint::reduce_scatter_v_async;
  using PointToPoint::send;
  using PointToPoint::send_async;
  using PointToPoint::send_recv;
  using PointToPoint::send_recv_async;

  /// Calls all_reduce() with ReduceOp::sum, on a stream.
  template <DeviceMemory M>
    requires WritableReducibleMemory<M>
  void all_reduce(M&& values, StreamRef stream) {
    all_reduce(values, ReduceOp::sum, stream);
  }
  /// Starts all_reduce() in this form; returns a Work.
  template <DeviceMemory M>
    requires WritableReducibleMemory<M>
  [[nodiscard]] auto all_reduce_async(M&& values, StreamRef stream) {
    return all_reduce_async(std::forward<M>(values), ReduceOp::sum, stream);
  }
  /// Calls all_reduce() with ReduceOp::sum, on a stream.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingReducible<In, Out>
  void all_reduce(In&& in, Out&& out, StreamRef stream) {
    all_reduce(in, out, ReduceOp::sum, stream);
  }
  /// Starts all_reduce() in this form; returns a Work.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingReducible<In, Out>
  [[nodiscard]] auto all_reduce_async(In&& in, Out&& out, StreamRef stream) {
    return all_reduce_async(in, out, ReduceOp::sum, stream);
  }

  /// Calls reduce() with ReduceOp::sum, on a stream.
  template <DeviceMemory M>
    requires WritableReducibleMemory<M>
  void reduce(M&& values, RankInGroup root, StreamRef stream) {
    reduce(values, root, ReduceOp::sum, stream);
  }
  /// Starts reduce() in this form; returns a Work.
  template <DeviceMemory M>
    requires WritableReducibleMemory<M>
  [[nodiscard]] auto reduce_async(M&& values, RankInGroup root, StreamRef stream) {
    return reduce_async(std::forward<M>(values), root, ReduceOp::sum, stream);
  }
  /// Calls reduce() with ReduceOp::sum, on a stream.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingReducible<In, Out>
  void reduce(In&& in, Out&& out, RankInGroup root, StreamRef stream) {
    reduce(in, out, root, ReduceOp::sum, stream);
  }
  /// Starts reduce() in this form; returns a Work.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingReducible<In, Out>
  [[nodiscard]] auto reduce_async(In&& in, Out&& out, RankInGroup root, StreamRef stream) {
    return reduce_async(in, out, root, ReduceOp::sum, stream);
  }

  /// Calls reduce_scatter() with ReduceOp::sum, on a stream.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingReducible<In, Out>
  void reduce_scatter(In&& in, Out&& out, StreamRef stream) {
    reduce_scatter(in, out, ReduceOp::sum, stream);
  }
  /// Starts reduce_scatter() in this form; returns a Work.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingReducible<In, Out>
  [[nodiscard]] auto reduce_scatter_async(In&& in, Out&& out, StreamRef stream) {
    return reduce_scatter_async(in, out, ReduceOp::sum, stream);
  }
  /// Calls reduce_scatter() with ReduceOp::sum, on a stream.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingReducible<In, Out>
  void reduce_scatter(In&& in, Out&& out, const Axis& axis, StreamRef stream) {
    reduce_scatter(in, out, axis, ReduceOp::sum, stream);
  }
  /// Starts reduce_scatter() in this form; returns a Work.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingReducible<In, Out>
  [[nodiscard]] auto reduce_scatter_async(In&& in, Out&& out, const Axis& axis, StreamRef stream) {
    return reduce_scatter_async(in, out, axis, ReduceOp::sum, stream);
  }
  /// Calls reduce_scatter_v() with ReduceOp::sum, on a stream.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingReducible<In, Out>
  void reduce_scatter_v(In&& in, Out&& out, const Blocks& blocks, StreamRef stream) {
    reduce_scatter_v(in, out, blocks, ReduceOp::sum, stream);
  }
  /// Starts reduce_scatter_v() in this form; returns a Work.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingReducible<In, Out>
  [[nodiscard]] auto reduce_scatter_v_async(In&& in, Out&& out, const Blocks& blocks,
                                            StreamRef stream) {
    return reduce_scatter_v_async(in, out, blocks, ReduceOp::sum, stream);
  }

  /// Calls send() with the tag 0, on a stream.
  template <DeviceMemory In>
  void send(In&& values, Peer to, StreamRef stream) {
    send(values, to, 0, stream);
  }
  /// Starts send() in this form; returns a Work.
  template <DeviceMemory In>
  [[nodiscard]] auto send_async(In&& values, Peer to, StreamRef stream) {
    return send_async(std::forward<In>(values), to, 0, stream);
  }
  /// Calls recv() with the tag 0, on a stream.
  template <DeviceMemory Out>
    requires WritableMemory<Out>
  void recv(Out&& values, Peer from, StreamRef stream) {
    recv(values, from, 0, stream);
  }
  /// Starts recv() in this form; returns a Work.
  template <DeviceMemory Out>
    requires WritableMemory<Out>
  [[nodiscard]] auto recv_async(Out&& values, Peer from, StreamRef stream) {
    return recv_async(std::forward<Out>(values), from, 0, stream);
  }
  /// Calls send_recv() with the tag 0, on a stream.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingMemory<In, Out>
  void send_recv(In&& in, Out&& out, Peer to, Peer from, StreamRef stream) {
    send_recv(in, out, to, from, 0, stream);
  }
  /// Starts send_recv() in this form; returns a Work.
  template <DeviceMemory In, DeviceMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto send_recv_async(In&& in, Out&& out, Peer to, Peer from, StreamRef stream) {
    return send_recv_async(in, out, to, from, 0, stream);
  }

 protected:
  using PointToPoint::PointToPoint;
  ~StreamForms() = default;
};

}  // namespace rankmesh
