// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "detail/attempt.hpp"
#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/conformance/conformance.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::conformance {

namespace {

// The first members whose inputs are combined.
std::int64_t combined_of(Operation operation, const Carrier& carrier) {
  const OperationFacts& facts = facts_of(operation);
  if (facts.awaited != Awaited::earlier) return carrier.members;
  return facts.excludes_own ? carrier.self : carrier.self + 1;
}

// The values that reductions read and give. They are computed once for each kind of reduction.
class KnownValues {
 public:
  KnownValues(const Carrier& carrier, const Table& table) : carrier_{carrier}, table_{table} {}

  // Returns null for operations that do not reduce.
  const ReductionValues* of(const TableEntry& entry) {
    if (!reduces(entry.operation)) return nullptr;
    const std::int64_t combined = combined_of(entry.operation, carrier_);
    const bool is_known =
        table_.order.size() == 1 ||
        (!entry.has_blocks && facts_of(entry.operation).awaited != Awaited::earlier);
    ReductionValues& values = values_[{entry.type, entry.op, is_known, combined}];
    if (values.own.empty())
      values =
          values_of(entry.type, entry.op, carrier_, is_known ? table_.order : Order{}, combined);
    return &values;
  }

 private:
  const Carrier& carrier_;
  const Table& table_;
  std::map<std::tuple<DataType, ReduceOp, bool, std::int64_t>, ReductionValues> values_;
};

// Makes the calls one after the other, with several asynchronous ones in flight.
class TableRun {
 public:
  TableRun(const Carrier& carrier, const Table& table)
      : carrier_{carrier}, values_{carrier, table}, own_{static_cast<unsigned>(carrier.self)} {}

  void add(const TableEntry& entry) {
    attempting([&] {
      auto attempt = std::make_unique<AttemptedCall>(entry, carrier_, values_.of(entry));
      describe(*attempt);
      if (!is_async(entry.form)) {
        carrier_.run(attempt->call());
        return judge(std::move(attempt));
      }
      auto wait = carrier_.start(attempt->call());
      in_flight_.push_back({std::move(attempt), std::move(wait)});
      if (in_flight_.size() > most_in_flight) finish_one();
    });
  }
  void finish() {
    attempting([&] {
      while (!in_flight_.empty()) finish_one();
    });
  }
  [[nodiscard]] const Report& report() const { return report_; }

 private:
  static constexpr std::size_t most_in_flight = 4, most_past = 16;
  struct InFlight {
    std::unique_ptr<AttemptedCall> attempt;
    std::function<void()> wait;
  };

  void describe(const AttemptedCall& attempt) {
    present_ = attempt.text();
    if (carrier_.before) carrier_.before(present_);
  }
  // A transport that has returned too early still writes to the memory of the call.
  void judge(std::unique_ptr<AttemptedCall> attempt) {
    Report::Tally& tally = report_.operations[attempt->call().operation];
    ++tally.calls;
    if (const std::string problem = attempt->problem(); !problem.empty()) {
      ++tally.wrong;
      add_failure(attempt->entry().kind(), attempt->text() + ": " + problem);
    }
    past_.push_back(std::move(attempt));
    if (past_.size() > most_past) past_.pop_front();
  }
  void add_failure(std::size_t kind, const std::string& sentence) {
    if (!failed_.insert(kind).second) return;
    report_.failures.push_back(sentence);
    if (carrier_.found) carrier_.found(kind, sentence);
  }
  void finish_one() {
    const auto at = static_cast<std::ptrdiff_t>(own_() % in_flight_.size());
    InFlight& chosen = in_flight_[static_cast<std::size_t>(at)];
    describe(*chosen.attempt);
    chosen.wait();
    judge(std::move(chosen.attempt));
    in_flight_.erase(in_flight_.begin() + at);
  }
  template <class Action>
  void attempting(Action&& action) {
    if (report_.has_ended_early) return;
    try {
      action();
    } catch (...) {
      end_early(rankmesh::detail::current_reasons().text());
    }
  }
  // An asynchronous call that fails breaks the group, so the next call throws.
  [[nodiscard]] std::string in_flight_text() const {
    std::string text;
    for (const InFlight& one : in_flight_)
      if (one.attempt->text() != present_)
        text += (text.empty() ? " (or one of those in flight: " : "; ") + one.attempt->text();
    return text.empty() ? text : text + ")";
  }
  void end_early(std::string_view why) {
    report_.has_ended_early = true;
    add_failure(thrown, present_ + in_flight_text() + ": it threw: " + std::string{why});
    // The memory of what is in flight must exist until the process ends.
    static_cast<void>(std::make_unique<std::deque<InFlight>>(std::move(in_flight_)).release());
    in_flight_.clear();
  }

  const Carrier& carrier_;
  KnownValues values_;
  std::mt19937 own_;  // chooses the call to wait for
  std::deque<InFlight> in_flight_;
  std::deque<std::unique_ptr<AttemptedCall>> past_;
  std::set<std::size_t> failed_;
  std::string present_;
  Report report_;
};

}  // namespace

Order in_group_order(std::int64_t members) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(members));
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

Report check(const Carrier& carrier, const Table& table) {
  TableRun run{carrier, table};
  for (const TableEntry& entry : entries(table)) run.add(entry);
  run.finish();
  return run.report();
}

Report check(GroupCoordinator& group, const Table& table, Carrier carrier) {
  carrier.members = group.size();
  carrier.self = group.rank_in_group().value();
  carrier.run = [&](const Call& call) { detail::GroupAccess::run(group, call); };
  carrier.start = [&](const Call& call) -> std::function<void()> {
    auto work = std::make_shared<Work>(detail::GroupAccess::start(group, call));
    return [work] { work->wait(); };
  };
  return check(carrier, table);
}

}  // namespace rankmesh::conformance
