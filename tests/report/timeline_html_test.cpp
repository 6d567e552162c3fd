// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <sstream>

#include <nlohmann/json.hpp>

#include "record/synthetic_job.hpp"
#include "report/timeline.hpp"

using namespace rankmesh;
using namespace rankmesh::test;

namespace {

std::string page_of(const std::vector<Record>& records,
                    const std::vector<std::string>& diagnosis = {}) {
  std::string text;
  report::write_html([&](std::string_view piece) { text += piece; }, records, diagnosis);
  return text;
}

/// Returns the text between the tags of the data, as a browser finds it.
std::string data_of(const std::string& page) {
  const std::string tag = "id=\"data\">";
  const auto begin = page.find(tag) + tag.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

}  // namespace

TEST_CASE("the page is one file that loads nothing") {
  const std::string page = page_of(SyntheticJob{2}.records);
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.ends_with("</html>\n"));
  for (const char* const word : {" src=", "href=", "@import", "url(", "fetch(", "{{", "http://"})
    CHECK_MESSAGE(page.find(word) == std::string::npos, word);
  CHECK(page.find("default-src 'none'") != std::string::npos);
}

TEST_CASE("texts of the program cannot end the data") {
  SyntheticJob job{1};
  const std::string text = "</script><!--<script>\"\\\n\xff\xE2\x80\xA8";
  job.records[0].mesh = job.records[0].coordinates = job.records[0].host = text;
  job.records[0].groups[0].names = {text};
  job.records[0].wait = record::Wait{text, 5};
  job.records[0].reason = text;
  job.add(0, descriptor_of(Operation::barrier), 1, 2);
  job.mark(0, 3, text);
  const std::string data = data_of(page_of(job.records, {text}));
  CHECK(data.find('<') == std::string::npos);
  const auto parsed = nlohmann::json::parse(data);
  const std::string expected = "</script><!--<script>\"\\\n\xEF\xBF\xBD\xE2\x80\xA8";
  CHECK(parsed.at("mesh") == expected);
  CHECK(parsed.at("diagnosis")[0] == expected);
  CHECK(parsed.at("ranks")[0].at("marks")[0][1] == expected);
  CHECK(parsed.at("ranks")[0].at("host") == expected);
  CHECK(parsed.at("texts")[0][0] == expected);
}

TEST_CASE("the data have every call, and messages name bars") {
  SyntheticJob job{2, 2};
  job.add(0, descriptor_of(Operation::broadcast, 4, 1), 5'000'000, 5'000'100);
  job.add(1, descriptor_of(Operation::broadcast, 4, 1), 5'000'050, 5'000'200);
  job.add(0, descriptor_of(Operation::send, 4, 1), 5'000'300, 5'000'400);
  job.add(1, descriptor_of(Operation::recv, 4, 0), 5'000'350, 5'000'450).is_async = true;
  job.add(1, descriptor_of(Operation::barrier), {}, {}, State::inside);
  const auto parsed = nlohmann::json::parse(data_of(page_of(job.records)));
  const auto& ranks = parsed.at("ranks");
  CHECK(ranks[0].at("begin") == std::vector<int>{0, 300});
  CHECK(ranks[0].at("length") == std::vector<int>{100, 100});
  CHECK(ranks[0].at("root") == std::vector<int>{0, 0});
  CHECK(ranks[1].at("root")[0] == 1);
  CHECK(ranks[1].at("begin")[0] == 50);
  CHECK(ranks[1].at("number") == std::vector<int>{1, 0, 2});
  CHECK(ranks[1].at("activity") == "dp.barrier(), call 2");
  CHECK(ranks[0].at("activity") == "");
  // Ended, asynchronous, in shared memory; inside, begin estimated, waits for all, in shared
  // memory.
  CHECK(ranks[1].at("flags")[1] == 2 + 16 + 512);
  CHECK(ranks[1].at("flags")[2] == 1 + 4 + 8 + 64 + 512);
  CHECK(parsed.at("messages") == nlohmann::json{{0, 1, 1, 1}});
  CHECK(parsed.at("groups") == nlohmann::json{{2, "0-1"}});
}

TEST_CASE("the page has a name for each carrier") {
  SyntheticJob job{1};
  job.records[0].transports = {"ucc", "gloo"};
  job.add(0, descriptor_of(Operation::barrier), 1'000, 2'000).carrier =
      record::Carrier::hierarchical;
  job.add(0, descriptor_of(Operation::barrier), 3'000, 4'000).carrier = record::program_carrier(3);
  const auto parsed = nlohmann::json::parse(data_of(page_of(job.records)));
  const auto& carriers = parsed.at("carriers");
  const auto carrier_of = [&](int call) {
    return parsed.at("ranks")[0].at("flags")[call].get<std::size_t>() >> 9;
  };
  CHECK(carriers[carrier_of(0)] == "shared memory and MPI");
  CHECK(carrier_of(1) == 8);
  CHECK(carriers[6] == "gloo");
}

TEST_CASE("a job without records has a page") {
  CHECK(nlohmann::json::parse(data_of(page_of({}))).at("ranks").empty());
}
