// SPDX-License-Identifier: BSD-3-Clause
#include "search/search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh::search {
namespace {

// Choices: of the published layouts, the most are 8 virtual stages and 18 sequences.
constexpr std::int64_t most_virtual_stages = 12;
constexpr std::int64_t most_micro_batch = 32;

std::vector<std::int64_t> divisors(std::int64_t of, std::int64_t most) {
  std::vector<std::int64_t> result;
  for (std::int64_t d = 1; d <= std::min(of, most); ++d)
    if (of % d == 0) result.push_back(d);
  return result;
}

// Chooses the figures of a candidate one after the other. Each choice asks the rules that it
// completes, so a rule counts what it refuses once.
class Enumeration {
 public:
  Enumeration(const CostModel& cost, const SearchOptions& options, SearchResult& result)
      : cost_{cost},
        options_{options},
        fixed_{options.fixed},
        limits_{cost.model(), cost.shape(), options.batch, options.devices, &cost.software()},
        result_{result} {}

  void run() {
    choose_meshes();
    std::int64_t done = 0;
    for (const MeshSettings& mesh : meshes_) {
      if (options_.progress) options_.progress(done++, std::ssize(meshes_));
      choose_experts(mesh);
    }
  }

 private:
  [[nodiscard]] bool is_refused(const MeshSettings& settings, RuleChoice choice) {
    const Rule* rule = refusing(limits_, settings, choice);
    if (rule == nullptr) return false;
    Refusal& refusal = result_.refused[rule->id];
    if (refusal.count++ == 0) refusal.example = rule->why(limits_, settings);
    return true;
  }
  // What the user fixes is the only value, whether or not the search would try it: the rules say
  // why it does not work.
  static std::vector<std::int64_t> values(const std::optional<std::int64_t>& fixed,
                                          std::vector<std::int64_t> otherwise) {
    return fixed ? std::vector{*fixed} : std::move(otherwise);
  }
  static std::vector<std::int64_t> up_to(std::int64_t most) {
    std::vector<std::int64_t> result(static_cast<std::size_t>(std::max<std::int64_t>(1, most)));
    std::iota(result.begin(), result.end(), 1);
    return result;
  }

  void choose_meshes() {
    MeshSettings s;
    for (const std::int64_t tp :
         values(fixed_.tp, up_to(std::min(options_.devices, limits_.model.heads)))) {
      s.tp = static_cast<std::int32_t>(tp);
      if (is_refused(s, RuleChoice::tp)) continue;
      const std::int64_t most_cp = std::min(options_.devices / tp, limits_.model.sequence / 2);
      std::vector<std::int64_t> powers{1};
      while (powers.back() * 2 <= most_cp) powers.push_back(powers.back() * 2);
      for (const std::int64_t cp : values(fixed_.cp, powers)) {
        s.cp = static_cast<std::int32_t>(cp);
        if (is_refused(s, RuleChoice::cp)) continue;
        for (const std::int64_t pp : values(fixed_.pp, up_to(limits_.model.layers))) {
          s.pp = static_cast<std::int32_t>(pp);
          if (!is_refused(s, RuleChoice::pp)) choose_replicas(s);
        }
      }
    }
  }

  // The largest number of replicas among which the batch can be divided.
  void choose_replicas(MeshSettings s) {
    const std::int64_t most = std::min<std::int64_t>(
        INT32_MAX, options_.devices / (std::int64_t{1} * s.tp * s.cp * s.pp));
    if (fixed_.dp) {
      s.dp = static_cast<std::int32_t>(*fixed_.dp);
      if (!is_refused(s, RuleChoice::dp)) meshes_.push_back(s);
      return;
    }
    if (most == 0) {
      s.dp = 1;
      static_cast<void>(is_refused(s, RuleChoice::dp));
      return;
    }
    s.dp = static_cast<std::int32_t>(most);
    if (is_refused(s, RuleChoice::dp))
      for (s.dp = static_cast<std::int32_t>(std::min(most, options_.batch));
           options_.batch % s.dp != 0;)
        --s.dp;
    const double used = static_cast<double>(s.ranks()) / static_cast<double>(options_.devices);
    if (used >= least_used) meshes_.push_back(s);
  }

  void choose_experts(MeshSettings s) {
    const std::int64_t most = std::max<std::int64_t>(1, limits_.model.experts);
    for (const std::int64_t ep : values(fixed_.ep, divisors(most, most))) {
      s.ep = static_cast<std::int32_t>(ep);
      if (!is_refused(s, RuleChoice::ep)) choose_micro_batch(s);
    }
  }

  void choose_micro_batch(MeshSettings s) {
    for (const std::int64_t b :
         values(fixed_.micro_batch, divisors(options_.batch / s.dp, most_micro_batch))) {
      s.micro_batch = static_cast<std::int32_t>(b);
      if (is_refused(s, RuleChoice::micro_batch)) continue;
      s.microbatches = static_cast<std::int32_t>(options_.batch / s.dp / b);
      choose_chunks(s);
    }
  }

  void choose_chunks(MeshSettings s) {
    const std::int64_t most =
        s.pp == 1 ? 1 : std::min(most_virtual_stages, (limits_.model.layers + 2) / s.pp);
    for (const std::int64_t v : values(fixed_.virtual_stages, up_to(most))) {
      s.virtual_stages = static_cast<std::int32_t>(v);
      bool is_exact = false;
      for (const StageKind kind : {StageKind::even, StageKind::counted, StageKind::uneven}) {
        s.stages = kind;
        if (kind != StageKind::even && s.pp == 1) continue;
        if ((kind == StageKind::uneven && is_exact) || is_refused(s, RuleChoice::schedule))
          continue;
        is_exact = true;
        choose_sharing(s);
      }
    }
  }

  void choose_sharing(MeshSettings s) {
    const int most_zero = s.dp * s.cp > 1 ? 3 : 0;
    for (int zero = 0; zero <= most_zero; ++zero) {
      if (fixed_.zero && zero != std::min<std::int64_t>(*fixed_.zero, most_zero)) continue;
      s.zero = static_cast<std::int8_t>(zero);
      if (is_refused(s, RuleChoice::sharing)) continue;
      for (const bool sequence : {false, true}) {
        if (sequence && s.tp == 1) continue;
        if (fixed_.sequence_parallel && sequence != (*fixed_.sequence_parallel && s.tp > 1))
          continue;
        s.sequence_parallel = sequence;
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
          if (fixed_.recompute && recompute != *fixed_.recompute) continue;
          s.recompute = recompute;
          if (!sequence || !is_refused(s, RuleChoice::schedule)) judge(s);
        }
      }
    }
  }

  void judge(const MeshSettings& s) {
    ++result_.judged;
    const DeviceMemory memory = cost_.memory(s);
    const Fit fit = cost_.judge(memory);
    Candidate candidate{s, 0, static_cast<float>(memory.total()), fit};
    if (!result_.smallest || candidate.bytes < result_.smallest->bytes)
      result_.smallest = candidate;
    if (fit == Fit::does_not_fit) {
      ++result_.too_large;
      return;
    }
    candidate.seconds = static_cast<float>(cost_.time(s).total());
    result_.candidates.push_back(candidate);
  }

  const CostModel& cost_;
  const SearchOptions& options_;
  const Fixed& fixed_;
  RuleLimits limits_;
  SearchResult& result_;
  std::vector<MeshSettings> meshes_{};
};

}  // namespace

SearchResult search(const CostModel& cost, const SearchOptions& options) {
  SearchResult result;
  Enumeration{cost, options, result}.run();
  std::ranges::stable_sort(result.candidates, {}, [](const Candidate& c) {
    return std::pair{c.seconds, c.bytes};
  });
  return result;
}

Margins calibrate(CostModel cost, const MeshSettings& settings, const Measured& measured) {
  Margins margins = cost.margins();
  if (measured.bytes) {
    const DeviceMemory memory = cost.memory(settings);
    const double states = memory.weights + memory.gradients + memory.optimizer;
    if (*measured.bytes < states)
      throw UsageError{fmt::format("the measured {:.1f} GB are less than the {:.1f} GB of the "
                                   "weights, gradients and optimizer of this mesh",
                                   *measured.bytes / 1e9, states / 1e9),
                       "check memory_gb, zero, --software and --precision"};
    margins.reserve += *measured.bytes - memory.total();
  }
  if (!measured.seconds) return margins;
  double low = 1e-3, high = 1e3;  // the time falls as the efficiency grows
  for (int step = 0; step < 60; ++step) {
    margins.efficiency = std::sqrt(low * high);
    cost.set_margins(margins);
    (cost.time(settings).total() > *measured.seconds ? low : high) = margins.efficiency;
  }
  if (margins.efficiency > 100)
    throw UsageError{fmt::format("the measured {} s are less than the messages of this mesh take",
                                 *measured.seconds),
                     "check the row, and the bandwidths of the machine"};
  return margins;
}

}  // namespace rankmesh::search
