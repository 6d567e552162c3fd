// SPDX-License-Identifier: BSD-3-Clause
// The formulas against published configurations. RANKMESH_SEARCH_TABLE=1 prints a line for each
// row; RANKMESH_PUBLISHED=FILE reads other rows.
//
// The first row of each source and precision that has a measurement calibrates it, and the others
// are predicted. Shares are means over the sources, so that one large source does not decide.
#include <doctest/doctest.h>

#include <cstdio>

#include "published.hpp"
#include "search/groups.hpp"

namespace {

using published::Row;
using published::search::Candidate;
using published::search::CostModel;
using published::search::Fit;
using published::search::Margins;

constexpr double tolerance = 0.25;

std::vector<Row> all_rows() {
  const char* path = std::getenv("RANKMESH_PUBLISHED");
  std::vector<Row> rows;
  for (const auto& fields : published::read(path == nullptr ? RANKMESH_PUBLISHED_LAYOUTS : path))
    if (const auto row = published::row_of(fields)) rows.push_back(*row);
  return rows;
}

bool prints() { return std::getenv("RANKMESH_SEARCH_TABLE") != nullptr; }

// How many of the predictions of each source are near the measurement.
struct Shares {
  std::map<std::string, std::pair<int, int>> of_source{};

  void add(const std::string& source, bool is_near) {
    auto& [near, all] = of_source[source];
    near += is_near ? 1 : 0;
    ++all;
  }
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const auto& [source, share] : of_source) sum += double(share.first) / share.second;
    return sum / double(of_source.size());
  }
};

// The rows of one source and precision, with what its first measurements say.
struct Batch {
  std::vector<const Row*> rows{};
  const Row* of_time = nullptr;
  const Row* of_memory = nullptr;
  Margins margins{};

  void calibrate() {
    for (const Row* row : rows) {
      if (of_time == nullptr && row->seconds) of_time = row;
      if (of_memory == nullptr && row->bytes) of_memory = row;
    }
    if (of_time != nullptr)
      margins.efficiency = published::search::calibrate(published::cost_of(*of_time),
                                                        of_time->settings, {of_time->seconds, {}})
                               .efficiency;
    if (of_memory == nullptr) return;
    margins.reserve = published::search::calibrate(published::cost_of(*of_memory),
                                                   of_memory->settings, {{}, of_memory->bytes})
                          .reserve;
  }
};

std::vector<Batch> batches(const std::vector<Row>& rows) {
  std::map<std::pair<std::string, std::string>, Batch> found;
  for (const Row& row : rows) found[{row.source, row.software.precision}].rows.push_back(&row);
  std::vector<Batch> result;
  for (auto& [key, batch] : found) {
    batch.calibrate();
    result.push_back(batch);
  }
  return result;
}

void print_row(const Row& row, double bytes, double seconds, Fit fit) {
  const auto& s = row.settings;
  std::printf("%-40.40s %-20.20s tp%d pp%d v%d dp%d cp%d ep%d b%d m%d  GB %6.1f",
              row.source.c_str(), row.name.c_str(), s.tp, s.pp, s.virtual_stages, s.dp, s.cp, s.ep,
              s.micro_batch, s.microbatches, bytes / 1e9);
  const auto compare = [](double predicted, const std::optional<double>& measured, double unit) {
    if (!measured) return;
    const double error = predicted / *measured - 1;
    std::printf(" of %6.1f (%+3.0f %%)%s", *measured / unit, 100 * error,
                std::abs(error) > tolerance ? " MISS" : "");
  };
  compare(bytes, row.bytes, 1e9);
  std::printf(" %s%s  s %7.2f", row.ran_out_of_memory ? "ran out of memory, " : "",
              std::string{to_string(fit)}.c_str(), seconds);
  compare(seconds, row.seconds, 1);
  std::printf("\n");
}

}  // namespace

TEST_CASE("published configurations: memory, seconds and what fits") {
  const auto rows = all_rows();
  REQUIRE(rows.size() > 30);
  Shares memory, time;
  int ran = 0, tight = 0;
  for (const Batch& batch : batches(rows))
    for (const Row* row : batch.rows) {
      const CostModel cost = published::cost_of(*row, batch.margins);
      const auto used = cost.memory(row->settings);
      const double seconds = cost.time(row->settings).total();
      const Fit fit = cost.judge(used);
      if (prints()) print_row(*row, used.total(), seconds, fit);
      const auto is_near = [](double predicted, double measured) {
        return std::abs(predicted / measured - 1) <= tolerance;
      };
      if (row->bytes && row != batch.of_memory)
        memory.add(row->source, is_near(used.total(), *row->bytes));
      if (row->seconds && row != batch.of_time)
        time.add(row->source, is_near(seconds, *row->seconds));
      INFO(row->source, " ", row->name);
      if (row->ran_out_of_memory) {
        CHECK(fit != Fit::fits);
        continue;
      }
      CHECK(fit != Fit::does_not_fit);
      ++ran;
      tight += fit == Fit::tight ? 1 : 0;
    }
  std::printf("within 25 %%, mean over sources: memory %.2f, seconds %.2f; %d of %d tight\n",
              memory.mean(), time.mean(), tight, ran);
  CHECK(memory.mean() >= 0.8);
  CHECK(time.mean() >= 0.8);
  CHECK(tight <= ran / 5);
}

TEST_CASE("published configurations are candidates, and tuned ones are among the best") {
  std::map<std::string, const Row*> tuned;  // the fastest layout of each source, model and size
  const auto rows = all_rows();
  for (const Row& row : rows) {
    if (!row.seconds || row.gpus < 64) continue;
    const Row*& best = tuned[row.source + row.name + std::to_string(row.gpus) + row.gpu];
    const auto per_sequence = [](const Row& r) { return *r.seconds / double(r.batch); };
    if (best == nullptr || per_sequence(row) < per_sequence(*best)) best = &row;
  }
  int near = 0;
  for (const auto& [key, row] : tuned) {
    const CostModel cost = published::cost_of(*row);
    published::search::SearchOptions options{.devices = row->gpus, .batch = row->batch};
    // What the program of the authors could do was no choice of theirs.
    options.fixed.zero = row->settings.zero;
    options.fixed.recompute = row->settings.recompute;
    options.fixed.sequence_parallel = row->settings.sequence_parallel;
    const auto result = rankmesh::search::search(cost, options);
    const auto is_theirs = [&](const Candidate& c) { return c.settings == row->settings; };
    const auto theirs = std::ranges::find_if(result.candidates, is_theirs);
    INFO(row->source, " ", row->name, " ", row->settings.mesh());
    CHECK(theirs != result.candidates.end());
    if (theirs == result.candidates.end()) continue;
    const std::size_t place = static_cast<std::size_t>(theirs - result.candidates.begin());
    const double best = result.candidates.front().seconds;
    const bool is_near = best * (1 + published::search::same_time) >= theirs->seconds ||
                         place * 10 < result.candidates.size();
    near += is_near ? 1 : 0;
    if (prints())
      std::printf("%-40.40s %-20.20s %-28s %6zu of %6zu, %.2f of the best time%s\n",
                  row->source.c_str(), row->name.c_str(), row->settings.mesh().c_str(), place + 1,
                  result.candidates.size(), theirs->seconds / result.candidates.front().seconds,
                  is_near ? "" : " MISS");
  }
  std::printf("tuned layouts in the first group or the best 10 %%: %d of %zu\n", near,
              tuned.size());
  CHECK(near >= 0.8 * double(tuned.size()));
}
