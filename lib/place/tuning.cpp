// SPDX-License-Identifier: BSD-3-Clause
#include "place/tuning.hpp"

namespace rankmesh {

std::vector<RouteRule> tuned_rules(const RouteRule& conditions, Operation operation,
                                   std::span<const RouteTiming> timings, bool sized,
                                   const std::string& usual, double gain) {
  std::vector<RouteRule> rules;
  std::string before;  // the best transport at the previous size
  for (std::size_t i = 0; i < timings.size(); ++i) {
    const auto& seconds = timings[i].seconds;
    const auto of_usual = seconds.find(usual);
    std::string best;
    double least = of_usual == seconds.end() ? 0 : of_usual->second * gain;
    for (const auto& [transport, time] : seconds)
      if (transport != usual && time < least) {
        best = transport;
        least = time;
      }
    const std::int64_t begin = i == 0 ? 0 : timings[i].bytes;
    const std::int64_t end = i + 1 < timings.size() ? timings[i + 1].bytes : timings[i].bytes + 1;
    if (!best.empty() && best == before) {
      rules.back().bytes->end = end;
    } else if (!best.empty()) {
      RouteRule& rule = rules.emplace_back(conditions);
      rule.operation = operation;
      rule.kind = MemoryKind::host;
      rule.transport = best;
      rule.bytes = ByteRange{begin, end};
    }
    before = best;
  }
  if (!sized)
    for (RouteRule& rule : rules) rule.bytes.reset();
  return rules;
}

}  // namespace rankmesh
