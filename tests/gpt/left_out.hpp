// SPDX-License-Identifier: BSD-3-Clause
// Stands for examples/gpt/library.hpp in the test left_out.cpp: rankmesh, of which one call can be
// left out on all ranks. A call is named by its place in the program. Where it is issued inside of
// rankmesh (Bucket, ShardedBuffer, ExpertDispatcher), it is named by its group and its function;
// all calls of such objects on a group are left out together, too.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <rankmesh/exchange/bucket.hpp>
#include <rankmesh/exchange/expert_dispatcher.hpp>
#include <rankmesh/exchange/sharded_buffer.hpp>
#include <rankmesh/rankmesh.hpp>

#include "../../examples/gpt/values.hpp"

namespace left_out {

inline std::string call;             // that is left out
inline std::set<std::string> calls;  // that ranks of larger groups made

class Group {
 public:
  using Where = std::source_location;

  Group(std::string name, rankmesh::GroupCoordinator& group, rankmesh::GroupCoordinator& alone)
      : name_{std::move(name)}, group_{group}, alone_{alone} {}

  [[nodiscard]] std::int64_t size() const { return group_.size(); }
  [[nodiscard]] rankmesh::RankInGroup rank_in_group() const { return group_.rank_in_group(); }
  [[nodiscard]] bool is_first() const { return group_.is_first(); }
  [[nodiscard]] bool is_last() const { return group_.is_last(); }

  template <class In, class Out>
  void all_gather(const In& in, Out&& out, Where where = Where::current()) {
    if (is_made(where)) return group_.all_gather(in, out);
    std::ranges::copy(in, std::ranges::begin(out) + rank_in_group().value() * std::ssize(in));
  }
  template <class In, class Out>
  void reduce_scatter(const In& in, Out&& out, Where where = Where::current()) {
    if (is_made(where)) return group_.reduce_scatter(in, out);
    std::copy_n(std::ranges::begin(in) + rank_in_group().value() * std::ssize(out), out.size(),
                std::ranges::begin(out));
  }
  template <class T>
  void all_reduce(T&& values, rankmesh::ReduceOp op = rankmesh::ReduceOp::sum,
                  Where where = Where::current()) {
    if (is_made(where)) group_.all_reduce(values, op);
  }
  template <class T>
  void broadcast(T&& value, rankmesh::RankInGroup root, Where where = Where::current()) {
    if (is_made(where)) group_.broadcast(value, root);
  }
  template <class In, class Out>
  void send_recv(const In& in, Out&& out, rankmesh::Peer to, rankmesh::Peer from, int tag = 0,
                 Where where = Where::current()) {
    if (is_made(where)) group_.send_recv(in, out, to, from, tag);
  }
  template <class In, class Out>
  rankmesh::Work send_recv_async(const In& in, Out&& out, rankmesh::Peer to, rankmesh::Peer from,
                                 int tag = 0, Where where = Where::current()) {
    if (is_made(where)) return group_.send_recv_async(in, out, to, from, tag);
    return {};
  }
  // A message is left out with both ends. Its tag says whether it goes forwards or backwards.
  template <class Out>
  void recv(Out&& out, rankmesh::Peer from, int tag) {
    if (is_made(message(tag))) group_.recv(out, from, tag);
  }
  rankmesh::OwningWork<Values> send_async(Values values, rankmesh::Peer to, int tag) {
    if (is_made(message(tag))) return group_.send_async(std::move(values), to, tag);
    return {rankmesh::Work{}, std::make_shared<Values>(std::move(values))};
  }

  // For objects that issue calls on a group: without them, each rank is alone.
  rankmesh::GroupCoordinator& coordinator() { return is_made("objects") ? group_ : alone_; }
  // Whether a function of such an object is not left out.
  [[nodiscard]] bool is_made(const char* function) const { return is_made(name_ + " " + function); }

 private:
  [[nodiscard]] bool is_made(const std::string& made) const {
    if (size() > 1) calls.insert(made);
    return made != call;
  }
  [[nodiscard]] bool is_made(const Where& where) const {
    const std::string file = where.file_name();
    return is_made(name_ + " in " + file.substr(file.rfind('/') + 1) + ":" +
                   std::to_string(where.line()));
  }
  [[nodiscard]] std::string message(int tag) const {
    return name_ + (tag % 2 == 0 ? " messages forwards" : " messages backwards");
  }

  std::string name_;
  rankmesh::GroupCoordinator &group_, &alone_;
};

class Mesh {
 public:
  Mesh(MPI_Comm world, const std::string& layout)
      : mesh_{world, layout}, alone_{MPI_COMM_SELF, "alone=1"} {}

  Group& operator[](const std::string& name) {
    auto& group = groups_[name];
    if (!group) group = std::make_unique<Group>(name, mesh_[name], alone_["alone"]);
    return *group;
  }
  [[nodiscard]] rankmesh::Rank rank() const { return mesh_.rank(); }
  [[nodiscard]] std::int64_t size() const { return mesh_.size(); }
  void progress() { mesh_.progress(); }
  void close() {
    mesh_.close();
    alone_.close();
  }

 private:
  rankmesh::Mesh mesh_, alone_;
  std::map<std::string, std::unique_ptr<Group>> groups_;
};

// The objects that issue calls on a group.
class ShardedBuffer : public rankmesh::exchange::ShardedBuffer<Real> {
 public:
  using Base = rankmesh::exchange::ShardedBuffer<Real>;
  ShardedBuffer(Group& group, const std::vector<std::int64_t>& sizes,
                rankmesh::exchange::ShardedBufferOptions options)
      : Base{group.coordinator(), sizes, options}, group_{group} {}
  ShardedBuffer like(rankmesh::exchange::ShardedBufferOptions options = {}) const {
    return {Base::like(options), group_};
  }
  void reduce(std::int64_t tensor) {
    if (group_.is_made("reduce")) Base::reduce(tensor);
  }
  void changed() {
    if (group_.is_made("changed")) Base::changed();
  }

 private:
  ShardedBuffer(Base&& other, Group& group) : Base{std::move(other)}, group_{group} {}
  Group& group_;
};

class ExpertDispatcher : public rankmesh::exchange::ExpertDispatcher {
 public:
  using Base = rankmesh::exchange::ExpertDispatcher;
  using Route = rankmesh::exchange::ExpertRoute;
  ExpertDispatcher(Group& group, rankmesh::exchange::ExpertMap map)
      : Base{group.coordinator(), std::move(map)}, group_{group} {}
  void dispatch(const Route& route, const Values& tokens, Values& rows) {
    if (group_.is_made("dispatch")) Base::dispatch(route, tokens, rows);
  }
  void collect_choices(const Route& route, const Values& rows, Values& choices) {
    if (group_.is_made("collect_choices")) Base::collect_choices(route, rows, choices);
  }
  void dispatch_choices(const Route& route, const Values& choices, Values& rows) {
    if (group_.is_made("dispatch_choices")) Base::dispatch_choices(route, choices, rows);
  }
  void combine(const Route& route, const Values& rows, const std::vector<float>& weights,
               Values& out) {
    if (group_.is_made("combine")) Base::combine(route, rows, weights, out);
  }

 private:
  Group& group_;
};

class Bucket : public rankmesh::exchange::Bucket {
 public:
  Bucket(Group& group, rankmesh::exchange::BucketOptions options)
      : rankmesh::exchange::Bucket{group.coordinator(), options} {}
};

}  // namespace left_out

using left_out::Bucket;
using left_out::ExpertDispatcher;
using left_out::Group;
using left_out::Mesh;
using left_out::ShardedBuffer;
using rankmesh::ReduceOp;
using rankmesh::Slice;
using rankmesh::Work;
using rankmesh::exchange::ExpertMap;
using rankmesh::exchange::ExpertRoute;
using Message = rankmesh::OwningWork<Values>;
