// SPDX-License-Identifier: BSD-3-Clause
// Stands for examples/gpt/library.hpp in gpt_speed.cpp: the same calls of MPI itself, on the
// communicators of the same groups. rankmesh opens them, and carries no call of the steps.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rankmesh/exchange/bucket.hpp>
#include <rankmesh/exchange/expert_dispatcher.hpp>
#include <rankmesh/exchange/sharded_buffer.hpp>
#include <rankmesh/rankmesh.hpp>

#include "../examples/gpt/values.hpp"

namespace raw {

static_assert(std::is_same_v<Real, double>);
inline const MPI_Datatype type = MPI_DOUBLE;
inline int count_of(In values) { return static_cast<int>(values.size()); }
inline MPI_Op op_of(rankmesh::ReduceOp op) {
  return op == rankmesh::ReduceOp::max ? MPI_MAX : MPI_SUM;
}

class Work {
 public:
  std::vector<MPI_Request> requests;
  [[nodiscard]] bool test() {
    int done = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
  }
  void wait() {
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
};

class Message : public Work {
 public:
  std::unique_ptr<Values> values;  // does not move while it is sent
};

class Group {
 public:
  explicit Group(rankmesh::GroupCoordinator& group) : group_{group}, comm_{group.native_mpi()} {}

  [[nodiscard]] std::int64_t size() const { return group_.size(); }
  [[nodiscard]] rankmesh::RankInGroup rank_in_group() const { return group_.rank_in_group(); }
  [[nodiscard]] bool is_first() const { return group_.is_first(); }
  [[nodiscard]] bool is_last() const { return group_.is_last(); }
  [[nodiscard]] MPI_Comm comm() const { return comm_; }
  operator rankmesh::GroupCoordinator&() { return group_; }  // for ZeRO and experts: as they are

  void barrier() { MPI_Barrier(comm_); }
  void all_gather(In in, Out out) {
    MPI_Allgather(in.data(), count_of(in), type, out.data(), count_of(in), type, comm_);
  }
  void reduce_scatter(In in, Out out) {
    MPI_Reduce_scatter_block(in.data(), out.data(), count_of(out), type, MPI_SUM, comm_);
  }
  void all_reduce(Out values, rankmesh::ReduceOp op = rankmesh::ReduceOp::sum) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), count_of(values), type, op_of(op), comm_);
  }
  void all_reduce(double& value) { all_reduce(Out{&value, 1}); }
  void broadcast(double& value, std::int64_t root) {
    MPI_Bcast(&value, 1, MPI_DOUBLE, static_cast<int>(root), comm_);
  }
  void recv(Out values, rankmesh::Peer from, int tag) {
    MPI_Recv(values.data(), count_of(values), type, number(from), tag, comm_, MPI_STATUS_IGNORE);
  }
  Message send_async(Values values, rankmesh::Peer to, int tag) {
    Message message;
    message.values = std::make_unique<Values>(std::move(values));
    message.requests.resize(1);
    MPI_Isend(message.values->data(), count_of(*message.values), type, number(to), tag, comm_,
              message.requests.data());
    return message;
  }
  void send_recv(In in, Out out, rankmesh::Peer to, rankmesh::Peer from, int tag) {
    MPI_Sendrecv(in.data(), count_of(in), type, number(to), tag, out.data(), count_of(out), type,
                 number(from), tag, comm_, MPI_STATUS_IGNORE);
  }
  Work send_recv_async(In in, Out out, rankmesh::Peer to, rankmesh::Peer from) {
    Work work;
    work.requests.resize(2);
    MPI_Irecv(out.data(), count_of(out), type, number(from), 0, comm_, &work.requests[0]);
    MPI_Isend(in.data(), count_of(in), type, number(to), 0, comm_, &work.requests[1]);
    return work;
  }

 private:
  [[nodiscard]] int number(rankmesh::Peer peer) const {
    return static_cast<int>(peer.resolve(rank_in_group(), size()).value());
  }

  rankmesh::GroupCoordinator& group_;
  MPI_Comm comm_;
};

class Mesh {
 public:
  Mesh(MPI_Comm world, const std::string& layout) : mesh_{world, layout} {}
  Group& operator[](const std::string& name) {
    auto& group = groups_[name];
    if (!group) group = std::make_unique<Group>(mesh_[name]);
    return *group;
  }
  [[nodiscard]] rankmesh::Rank rank() const { return mesh_.rank(); }
  void progress() {
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  void close() { mesh_.close(); }

 private:
  rankmesh::Mesh mesh_;
  std::map<std::string, std::unique_ptr<Group>> groups_;
};

// Copies gradients into buckets, reduces the buckets, and copies the sums back, as rankmesh does.
class Bucket {
 public:
  Bucket(Group& group, const rankmesh::exchange::BucketOptions& options)
      : group_{group}, most_{options.bytes / static_cast<std::int64_t>(sizeof(Real))} {}

  void add(Values& values) {
    if (group_.size() == 1) return;
    if (!added_.empty() && count_ + std::ssize(values) > most_) flush();
    added_.push_back(&values);
    count_ += std::ssize(values);
    if (count_ >= most_) flush();
  }
  void wait() {
    if (!added_.empty()) flush();
    for (Reduction& reduction : issued_) {
      reduction.work.wait();
      if (reduction.parts.size() == 1) continue;
      auto from = reduction.flat.begin();
      for (Values* part : reduction.parts) {
        std::copy_n(from, part->size(), part->begin());
        from += std::ssize(*part);
      }
    }
    issued_.clear();
  }

 private:
  struct Reduction {
    std::vector<Values*> parts;
    Values flat;
    Work work;
  };
  void flush() {
    Reduction& reduction = issued_.emplace_back();
    reduction.parts = std::exchange(added_, {});
    Out values = *reduction.parts.front();
    if (reduction.parts.size() > 1) {
      for (const Values* part : reduction.parts)
        reduction.flat.insert(reduction.flat.end(), part->begin(), part->end());
      values = reduction.flat;
    }
    reduction.work.requests.resize(1);
    MPI_Iallreduce(MPI_IN_PLACE, values.data(), count_of(values), type, MPI_SUM, group_.comm(),
                   reduction.work.requests.data());
    count_ = 0;
  }

  Group& group_;
  std::int64_t most_, count_ = 0;
  std::vector<Values*> added_;
  std::deque<Reduction> issued_;  // grows without moving its elements
};

}  // namespace raw

using rankmesh::ReduceOp;
using rankmesh::Slice;
using rankmesh::exchange::ExpertDispatcher;
using rankmesh::exchange::ExpertMap;
using rankmesh::exchange::ExpertRoute;
using raw::Bucket;
using raw::Group;
using raw::Mesh;
using raw::Message;
using raw::Work;
using ShardedBuffer = rankmesh::exchange::ShardedBuffer<Real>;
