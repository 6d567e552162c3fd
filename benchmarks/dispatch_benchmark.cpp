// SPDX-License-Identifier: BSD-3-Clause
// dispatch_benchmark [TOKENS [WIDTH [TOP_K [EXPERTS_PER_RANK [PAIRS]]]]]
//
// Measures one step of expert dispatch and combine, alternately by ExpertDispatcher and by
// hand-written MPI code. TOKENS is the number per rank. The defaults are 4096 tokens of 1024
// floats, top-2, 4 experts per rank, 30 pairs. First it compares the results. Then it prints the
// median, the minimum and the maximum of the slowest rank's milliseconds for both, and the ratios
// of the pairs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "rankmesh/rankmesh.hpp"

namespace {

using rankmesh::exchange::ExpertDispatcher;
using rankmesh::exchange::ExpertMap;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Step {
  std::int64_t tokens, width, top_k, experts;
  std::vector<std::int32_t> ids;
  std::vector<float> in, weights, out;
};

// The hand-written step: a counting sort of the choices by expert, an exchange of counts and rows
// by MPI, rows ordered by local expert, and all buffers kept between steps.
class ByHand {
 public:
  ByHand(MPI_Comm comm, std::int64_t experts) : comm_{comm}, experts_{experts} {
    MPI_Comm_size(comm, &size_);
    local_ = experts_ / size_;
  }

  void operator()(Step& step) {
    const std::int64_t choices = step.tokens * step.top_k;
    const std::size_t row_bytes = at(step.width) * sizeof(float);
    // Sort the choices by expert, which also sorts them by rank.
    send_counts_.assign(at(experts_), 0);
    for (const std::int32_t e : step.ids) ++send_counts_[at(e)];
    next_.resize(at(experts_));
    std::exclusive_scan(send_counts_.begin(), send_counts_.end(), next_.begin(), 0);
    place_.resize(at(choices));
    sent_.resize(at(choices * step.width));
    for (std::int64_t i = 0; i < choices; ++i) {
      place_[at(i)] = next_[at(step.ids[at(i)])]++;
      std::memcpy(&sent_[at(place_[at(i)] * step.width)], &step.in[at(i / step.top_k * step.width)],
                  row_bytes);
    }
    // Exchange the counts, then the rows.
    received_counts_.resize(at(experts_));
    const int n = static_cast<int>(local_);
    MPI_Alltoall(send_counts_.data(), n, MPI_INT, received_counts_.data(), n, MPI_INT, comm_);
    MPI_Datatype row = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(step.width), MPI_FLOAT, &row);
    MPI_Type_commit(&row);
    sum_by_rank(send_counts_, to_, to_place_);
    sum_by_rank(received_counts_, from_, from_place_);
    const std::int64_t rows = from_place_.back() + from_.back();
    received_.resize(std::max(received_.size(), at(rows * step.width)));
    grouped_.resize(std::max(grouped_.size(), at(rows * step.width)));
    MPI_Alltoallv(sent_.data(), to_.data(), to_place_.data(), row, received_.data(), from_.data(),
                  from_place_.data(), row, comm_);
    for_each_block([&](std::int64_t in, std::int64_t out, std::int64_t count) {
      std::memcpy(&grouped_[at(out * step.width)], &received_[at(in * step.width)],
                  at(count) * row_bytes);
    });
    // The experts would compute here. Send the rows back.
    for_each_block([&](std::int64_t in, std::int64_t out, std::int64_t count) {
      std::memcpy(&received_[at(in * step.width)], &grouped_[at(out * step.width)],
                  at(count) * row_bytes);
    });
    MPI_Alltoallv(received_.data(), from_.data(), from_place_.data(), row, sent_.data(), to_.data(),
                  to_place_.data(), row, comm_);
    MPI_Type_free(&row);
    for (std::int64_t t = 0; t < step.tokens; ++t) {
      float* out = &step.out[at(t * step.width)];
      std::fill_n(out, step.width, 0.0F);
      for (std::int64_t j = t * step.top_k; j < (t + 1) * step.top_k; ++j) {
        const float* from = &sent_[at(place_[at(j)] * step.width)];
        const float weight = step.weights[at(j)];
        for (std::int64_t i = 0; i < step.width; ++i) out[i] += weight * from[i];
      }
    }
  }

 private:
  void sum_by_rank(const std::vector<int>& by_expert, std::vector<int>& counts,
                   std::vector<int>& places) const {
    counts.assign(static_cast<std::size_t>(size_), 0);
    places.resize(counts.size());
    for (std::int64_t e = 0; e < experts_; ++e) counts[at(e / local_)] += by_expert[at(e)];
    std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0);
  }
  // Blocks of received rows, ordered by rank and expert, and their places ordered by expert
  // and rank.
  template <class Use>
  void for_each_block(Use&& use) const {
    std::int64_t out = 0;
    for (std::int64_t e = 0; e < local_; ++e)
      for (int r = 0; r < size_; ++r) {
        std::int64_t in = from_place_[static_cast<std::size_t>(r)];
        for (std::int64_t before = 0; before < e; ++before)
          in += received_counts_[at(r * local_ + before)];
        const std::int64_t count = received_counts_[at(r * local_ + e)];
        use(in, out, count);
        out += count;
      }
  }

  MPI_Comm comm_;
  int size_ = 0;
  std::int64_t experts_, local_ = 0;
  std::vector<int> send_counts_, received_counts_, next_, to_, from_, to_place_, from_place_;
  std::vector<std::int64_t> place_;
  std::vector<float> sent_, received_, grouped_;
};

class ByRankmesh {
 public:
  ByRankmesh(rankmesh::GroupCoordinator& ep, std::int64_t experts)
      : dispatcher_{ep, ExpertMap::contiguous(experts, ep.size())} {}

  void operator()(Step& step) {
    const auto route = dispatcher_.route(step.ids, step.top_k);
    rows_.resize(std::max(rows_.size(), at(route.rows() * step.width)));
    const auto rows = std::span{rows_}.first(at(route.rows() * step.width));
    dispatcher_.dispatch(route, step.in, rows);
    dispatcher_.combine(route, rows, step.weights, step.out);
  }

 private:
  ExpertDispatcher dispatcher_;
  std::vector<float> rows_;
};

template <class Side>
double milliseconds(Side& side, Step& step) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  side(step);
  double time = (MPI_Wtime() - start) * 1e3;
  MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return time;
}

void print(const char* label, std::vector<double> values) {
  std::ranges::sort(values);
  std::printf("%-22s %8.2f (%.2f .. %.2f)\n", label, values[values.size() / 2], values.front(),
              values.back());
}

// Chooses experts, weights and tokens at random.
void fill(Step& step, unsigned seed) {
  // A token's choices are different experts, as a router chooses them.
  std::mt19937 random{seed};
  for (std::int64_t t = 0; t < step.tokens; ++t) {
    std::int32_t e = static_cast<std::int32_t>(random() % static_cast<unsigned>(step.experts));
    for (std::int64_t j = 0; j < step.top_k; ++j) {
      step.ids.push_back(e);
      step.weights.push_back(static_cast<float>(random() % 100) / 100);
      e = static_cast<std::int32_t>((e + 1 + static_cast<std::int32_t>(random() % 3)) %
                                    step.experts);
    }
  }
  for (std::int64_t i = 0; i < step.tokens * step.width; ++i)
    step.in.push_back(static_cast<float>(random() % 1000));
  step.out.resize(step.in.size());
}

int run(int argc, char** argv) {
  const auto argument = [&](int i, std::int64_t otherwise) {
    return argc > i ? std::atoll(argv[i]) : otherwise;
  };
  rankmesh::MeshOptions options;
  options.devices = rankmesh::DeviceUse::off;
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "ep=auto", options};
  auto& ep = mesh["ep"];
  Step step{argument(1, 4096),
            argument(2, 1024),
            argument(3, 2),
            argument(4, 4) * ep.size(),
            {},
            {},
            {},
            {}};
  const auto pairs = argument(5, 30);

  fill(step, static_cast<unsigned>(mesh.rank().value()));

  ByHand by_hand{ep.native_mpi(), step.experts};
  ByRankmesh by_rankmesh{ep, step.experts};
  by_hand(step);
  const auto expected = std::exchange(step.out, std::vector<float>(step.out.size()));
  by_rankmesh(step);
  std::vector<std::int32_t> wrong{step.out != expected};
  ep.all_reduce(wrong, rankmesh::ReduceOp::max);

  std::vector<double> hand, ours, ratios;
  for (std::int64_t i = 0; i < pairs; ++i) {
    // The two sides begin alternately.
    if (i % 2 == 0) hand.push_back(milliseconds(by_hand, step));
    ours.push_back(milliseconds(by_rankmesh, step));
    if (i % 2 != 0) hand.push_back(milliseconds(by_hand, step));
    ratios.push_back(ours.back() / hand.back());
  }
  if (mesh.rank() == rankmesh::Rank{0}) {
    std::printf("%lld ranks, each %lld tokens x %lld floats, top-%lld, %lld experts; results %s\n",
                static_cast<long long>(ep.size()), static_cast<long long>(step.tokens),
                static_cast<long long>(step.width), static_cast<long long>(step.top_k),
                static_cast<long long>(step.experts), wrong[0] != 0 ? "DIFFER" : "equal");
    print("by hand, ms", hand);
    print("ExpertDispatcher, ms", ours);
    print("ratio of the pairs", ratios);
  }
  mesh.close();
  return wrong[0];
}

}  // namespace

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};
  return run(argc, argv);
}
