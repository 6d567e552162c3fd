#include "detail/agreement.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {
namespace {

using mpi::check;

constexpr std::size_t max_text = 512;

// Parts with their lengths in front, so that any text can be in them.
void append(std::string& record, std::string_view part) {
  record += fmt::format("{}:{}", part.size(), part);
}

std::vector<std::string> split_record(std::string_view record) {
  std::vector<std::string> parts;
  while (!record.empty()) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(record.data(), record.data() + record.size(), size);
    const auto head = static_cast<std::size_t>(end - record.data()) + 1;
    if (error != std::errc{} || head > record.size() || size > record.size() - head)
      break;  // of another release
    parts.emplace_back(record.substr(head, size));
    record.remove_prefix(head + size);
  }
  parts.resize(std::max<std::size_t>(parts.size(), 1));
  return parts;
}

// Runs non-blocking operations on memory that MPI may keep when the deadline passes.
template <class Memory>
class Lent {
 public:
  Lent() : memory_{std::make_unique<Memory>()} {}
  Memory* operator->() { return memory_.get(); }
  void wait(MPI_Request request, WaitMonitor& monitor, const WaitPoint& step,
            const Deadline& deadline) {
    try {
      monitor.wait({&request, 1}, step, deadline);
    } catch (...) {
      (void)memory_.release();  // NOLINT: lent to MPI until the process ends
      throw;
    }
  }

 private:
  std::unique_ptr<Memory> memory_;
};

std::string ranks_text(const std::vector<Rank>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", RankSet::of(ranks).to_string(60));
}

}  // namespace

void Agreement::add(std::string field, Hash128 hash, std::string text) {
  if (text.size() > max_text) {
    text.resize(max_text);
    text += "...";
  }
  fields_.push_back({std::move(field), hash, std::move(text)});
}

// failure, then per field name, hash and text.
std::string Agreement::record() const {
  std::string record;
  append(record, failure_.substr(0, 2 * max_text));
  for (const Field& field : fields_)
    for (const std::string& part : {field.name, to_string(field.hash), field.text})
      append(record, part);
  return record;
}

std::string Agreement::finding(std::string_view what, const std::vector<std::string>& records) {
  std::map<std::string, std::vector<Rank>> failures;
  std::vector<std::vector<std::string>> parts;
  for (std::size_t r = 0; r < records.size(); ++r) {
    parts.push_back(split_record(records[r]));
    if (!parts.back().front().empty()) failures[parts.back().front()].emplace_back(r);
  }
  std::string text = fmt::format("the {} ranks do not agree before {}", records.size(), what);
  for (const auto& [message, ranks] : failures)
    text += fmt::format("\n  {} failed: {}", ranks_text(ranks), message);
  if (!failures.empty()) return text;  // what the failed ranks would have said is not known

  struct Variant {
    std::string hash, text;
    std::vector<Rank> ranks;
  };
  const auto& fields = parts.front();  // rank 0's, in its order; other releases may lack some
  for (std::size_t field = 1; field + 2 < fields.size(); field += 3) {
    std::vector<Variant> variants;
    for (std::size_t r = 0; r < parts.size(); ++r) {
      std::string hash;
      std::string value = "not known to its release";
      for (std::size_t f = 1; f + 2 < parts[r].size(); f += 3)
        if (parts[r][f] == fields[field]) {
          hash = parts[r][f + 1];
          value = parts[r][f + 2];
        }
      auto same = std::ranges::find(variants, hash, &Variant::hash);
      if (same == variants.end()) same = variants.insert(same, {hash, value, {}});
      same->ranks.emplace_back(r);
    }
    if (variants.size() < 2) continue;
    // The first variant holds rank 0: moving it behind those of its size puts the others first on a
    // tie.
    std::ranges::rotate(variants, variants.begin() + 1);
    std::ranges::stable_sort(variants, {}, [](const Variant& v) { return v.ranks.size(); });
    text += fmt::format("\n  {}:", fields[field]);
    for (const Variant& variant : variants)
      text += fmt::format("\n    {}: {}", ranks_text(variant.ranks), variant.text);
  }
  return text;
}

void Agreement::settle(const mpi::CommunicatorView& comm, WaitMonitor& monitor,
                       std::string_view what, const Deadline& deadline) const {
  WaitPoint step{hash_bytes(what).low, fmt::format("the agreement before {}", what), {}};
  step.members.resize(static_cast<std::size_t>(comm.size()));
  std::iota(step.members.begin(), step.members.end(), 0);

  // A maximum of h and of ~h shows whether all h are equal.
  struct Phase1 {
    std::array<std::uint64_t, 5> mine, most;
  };
  std::string hashes;
  for (const Field& field : fields_) hashes += field.name + to_string(field.hash);
  const Hash128 hash = hash_bytes(hashes);
  Lent<Phase1> phase1;
  phase1->mine = {failure_.empty() ? 0U : 1U, hash.high, hash.low, ~hash.high, ~hash.low};
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(phase1->mine.data(), phase1->most.data(), 5, MPI_UINT64_T, MPI_MAX,
                       comm.native(), &request),
        "MPI_Iallreduce");
  phase1.wait(request, monitor, step, deadline);
  const auto& most = phase1->most;
  if (most[0] == 0 && most[1] == ~most[3] && most[2] == ~most[4]) return;

  struct Phase2 {
    std::string record, all, text;
    std::vector<int> sizes, places;
    std::array<int, 2> head{};  // length of the text; whether all records are equal
  };
  Lent<Phase2> phase2;
  phase2->record = record();
  phase2->head[0] = static_cast<int>(phase2->record.size());
  phase2->sizes.resize(static_cast<std::size_t>(comm.size()));
  check(MPI_Igather(phase2->head.data(), 1, MPI_INT, phase2->sizes.data(), 1, MPI_INT, 0,
                    comm.native(), &request),
        "MPI_Igather");
  phase2.wait(request, monitor, step, deadline);
  phase2->places.resize(phase2->sizes.size());
  std::exclusive_scan(phase2->sizes.begin(), phase2->sizes.end(), phase2->places.begin(), 0);
  if (comm.rank() == 0)
    phase2->all.resize(static_cast<std::size_t>(phase2->places.back() + phase2->sizes.back()));
  check(MPI_Igatherv(phase2->record.data(), phase2->head[0], MPI_BYTE, phase2->all.data(),
                     phase2->sizes.data(), phase2->places.data(), MPI_BYTE, 0, comm.native(),
                     &request),
        "MPI_Igatherv");
  phase2.wait(request, monitor, step, deadline);
  if (comm.rank() == 0) {
    std::vector<std::string> records;
    for (std::size_t r = 0; r < phase2->sizes.size(); ++r)
      records.push_back(phase2->all.substr(static_cast<std::size_t>(phase2->places[r]),
                                           static_cast<std::size_t>(phase2->sizes[r])));
    phase2->text = finding(what, records);
    phase2->head[1] =
        std::ranges::adjacent_find(records, std::ranges::not_equal_to{}) == records.end() ? 1 : 0;
    phase2->head[0] = static_cast<int>(phase2->text.size());
  }
  check(MPI_Ibcast(phase2->head.data(), 2, MPI_INT, 0, comm.native(), &request), "MPI_Ibcast");
  phase2.wait(request, monitor, step, deadline);
  phase2->text.resize(static_cast<std::size_t>(phase2->head[0]));
  check(MPI_Ibcast(phase2->text.data(), phase2->head[0], MPI_BYTE, 0, comm.native(), &request),
        "MPI_Ibcast");
  phase2.wait(request, monitor, step, deadline);
  const bool is_failure = most[0] != 0;
  throw MismatchError{
      phase2->text,
      is_failure ? "mend what the failed ranks say; nothing was left open on any rank"
                 : "start all ranks with the same mesh, options, environment and libraries",
      phase2->head[1] != 0};
}

}  // namespace rankmesh::detail
