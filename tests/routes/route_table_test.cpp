// SPDX-License-Identifier: BSD-3-Clause
// Tests the meaning of rules and their order.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "place/mesh_file.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/spec/routes.hpp"
#include "support/checks.hpp"

using namespace rankmesh;

namespace {

RouteTable table_of(std::string_view text) {
  return RouteTable::parse(text, RouteSource::code, "test");
}

// Returns the first transport for a call of this size, and all further candidates.
std::string first(const RouteTable& table, const RouteScope& scope, const RouteQuery& query) {
  RouteQuery of_table = query;
  if (query.bytes) of_table.bytes = 0;
  for (const RouteSegment& segment : table.resolve(scope, of_table)) {
    if (query.bytes && *query.bytes >= segment.bytes.end) continue;
    std::string text;
    for (const std::size_t r : segment.rules)
      text += (text.empty() ? "" : ">") + table.rules()[r].transport;
    return text;
  }
  return "no segment";
}

}  // namespace

TEST_CASE("rules are printed in one canonical form, which parses back") {
  const std::pair<const char*, const char*> cases[] = {
      {"*.*=mpi", "*.*=mpi"},
      {" tp . all_reduce : host : 0 - 32K = shm ", ""},
      {"tp.all_reduce:host:0-32K=shm; tp.all_reduce:host:32K-inf=mpi; *.*:device=nccl",
       "tp.all_reduce:host:0-32K=shm; tp.all_reduce:host:32K-inf=mpi; *.*:device=nccl"},
      {"# what was measured\ntp.*:1024-1048576:float=shm\r\n\n;;*.barrier=mpi # the rest",
       "tp.*:1K-1M:float=shm; *.barrier=mpi"},
      {"encoder.tp.broadcast:one_node:half:ranks(2-8):host=shm",
       "encoder.tp.broadcast:host:half:ranks(2-8):one_node=shm"},
      {"*.*:capture:device=nccl;*.*:fp8:eager=nccl", "*.*:device:capture=nccl; *.*:fp8:eager=nccl"},
      {"a.*:ranks(4)=mpi;a.*:ranks(16-inf)=mpi;a.*:1g-3m=mpi", ""},
      {"", ""},
      {"a.*:100-1025:many_nodes=mpi", "a.*:100-1025:many_nodes=mpi"},
  };
  for (const auto& [text, canonical] : cases) {
    CAPTURE(text);
    if (std::string{canonical}.empty() && !std::string{text}.empty()) {
      CHECK_THROWS_AS((void)table_of(text), SpecError);
      continue;
    }
    CHECK(table_of(text).to_string() == canonical);
    CHECK(table_of(table_of(text).to_string()).to_string() == canonical);
  }
}

TEST_CASE(
    "the first match decides, ranges of sizes are half open, and rejected calls use the next "
    "rule") {
  RouteTable table = table_of(
      "tp.all_reduce:host:0-32K=shm; tp.all_reduce:host:32K-inf=mpi; tp.*:half=mpi; tp.*=shm");
  table.append(table_of("*.*:host=mpi; *.*:device=nccl"));
  const RouteScope tp{"tp", 4, 1};
  const RouteScope dp{"dp", 4, 1};
  const auto all_reduce = [](std::int64_t bytes) {
    return RouteQuery{
        .operation = Operation::all_reduce, .bytes = bytes, .type = TypeClass::floating};
  };
  CHECK(first(table, tp, all_reduce(0)) == "shm>shm>mpi");
  CHECK(first(table, tp, all_reduce(32767)) == "shm>shm>mpi");
  CHECK(first(table, tp, all_reduce(32768)) == "mpi");
  CHECK(first(table, dp, all_reduce(8)) == "mpi");
  CHECK(first(table, {}, all_reduce(8)) == "mpi");
  // Without a size, rules with sizes do not match.
  CHECK(first(table, tp, {.operation = Operation::all_reduce, .type = TypeClass::floating}) ==
        "shm>mpi");
  CHECK(first(table, tp,
              {.operation = Operation::all_gather, .bytes = 8, .type = TypeClass::half}) == "mpi");
  CHECK(first(table, tp, {.operation = Operation::barrier}) == "shm>mpi");
  CHECK(first(table, tp, {.kind = MemoryKind::device, .bytes = 8}) == "nccl");
}

TEST_CASE("both ends of a message on the host have the same rules") {
  RouteTable table = table_of("*.recv:int=shm; *.send:one_node=shm; *.send_recv:device=nccl");
  table.append(table_of("*.*:host=mpi; *.*:device=nccl"));
  for (const Operation operation : {Operation::send, Operation::recv, Operation::send_recv}) {
    CHECK(first(table, {"a", 2, 1}, {.operation = operation, .type = TypeClass::integer}) ==
          "shm>mpi");
    CHECK(first(table, {"a", 2, 2}, {.operation = operation}) == "mpi");
    CHECK(first(table, {"a", 2, 1}, {.operation = operation, .kind = MemoryKind::device}) ==
          "nccl");
  }
}

TEST_CASE("rules for v-forms apply to calls without a size, of operations that have v-forms") {
  RouteTable table = table_of("*.*:v_form=shm; *.all_gather:0-inf=mpi");
  table.append(table_of("*.*:host=mpi; *.*:device=nccl"));
  RouteQuery query{.operation = Operation::all_gather, .type = TypeClass::integer};
  CHECK(first(table, {"a", 2, 1}, query) == "shm>mpi");
  query.bytes = 8;
  CHECK(first(table, {"a", 2, 1}, query) == "mpi");
  query = {.operation = Operation::broadcast, .type = TypeClass::integer};
  CHECK(first(table, {"a", 2, 1}, query) == "mpi");
  CHECK(table.to_string().starts_with("*.*:v_form=shm; *.all_gather:0-inf=mpi; "));
}

TEST_CASE("rules distinguish groups by size and nodes") {
  RouteTable table =
      table_of("*.*:ranks(2-4):one_node=shm; *.*:ranks(9-inf)=mpi; *.*:one_node=shm");
  table.append(table_of("*.*:host=mpi; *.*:device=nccl"));
  const RouteQuery query{.bytes = 8, .type = TypeClass::integer};
  CHECK(first(table, {"a", 2, 1}, query) == "shm>shm>mpi");
  CHECK(first(table, {"a", 4, 2}, query) == "mpi");
  CHECK(first(table, {"a", 8, 1}, query) == "shm>mpi");
  CHECK(first(table, {"a", 9, 1}, query) == "mpi");
  CHECK(first(table, {"a", 4, std::nullopt}, query) ==
        "shm>shm>mpi");  // unknown nodes: both may match
}

TEST_CASE("rules distinguish groups by whether their ranks have cores of their own") {
  RouteTable table = table_of("*.*:own_cores=mpi; *.*:shared_cores:one_node=shm");
  table.append(table_of("*.*:host=mpi; *.*:device=nccl"));
  const RouteQuery query{.bytes = 8, .type = TypeClass::integer};
  CHECK(first(table, {"a", 2, 1, true}, query) == "mpi");
  CHECK(first(table, {"a", 2, 1, false}, query) == "shm>mpi");
  CHECK(first(table, {"a", 2, 2, false}, query) == "mpi");
  CHECK(first(table, {"a", 2, 1}, query) == "mpi>shm>mpi");  // unknown cores: both may match
  CHECK(table.to_string().starts_with("*.*:own_cores=mpi; *.*:one_node:shared_cores=shm; "));
  CHECK_THROWS_AS((void)table_of("*.*:own_cores:shared_cores=shm"), SpecError);
  CHECK_THROWS_AS((void)table_of("*.*=mpi; *.*:own_cores=mpi"), SpecError);  // it can never match
}

TEST_CASE("the default rules depend on the number of ranks and on their cores") {
  constexpr std::int64_t kilo = 1024;
  constexpr std::int64_t mega = 1024 * kilo;
  struct Case {
    Operation operation;
    std::int64_t ranks;
    bool own_cores;
    std::int64_t last;  // the largest size of those tried here that shared memory carries
  };
  const Case cases[] = {
      {Operation::all_reduce, 2, true, 128 * kilo},   {Operation::all_reduce, 3, true, 8 * mega},
      {Operation::all_reduce, 4, true, 8 * mega},     {Operation::all_reduce, 8, false, 8 * mega},
      {Operation::reduce, 2, false, 8 * mega},        {Operation::reduce, 3, true, 8 * mega},
      {Operation::all_gather, 2, true, 32 * kilo},    {Operation::all_gather, 4, false, 8 * mega},
      {Operation::gather, 2, true, 64 * kilo},        {Operation::gather, 8, true, 8 * mega},
      {Operation::broadcast, 2, true, 32 * kilo},     {Operation::broadcast, 3, true, 32 * mega},
      {Operation::broadcast, 4, true, 32 * mega},     {Operation::scatter, 2, true, 32 * kilo},
      {Operation::scatter, 4, true, 32 * kilo},       {Operation::scatter, 8, false, 128 * kilo},
      {Operation::all_to_all, 2, false, 16 * kilo},   {Operation::all_to_all, 4, true, 64 * kilo},
      {Operation::all_to_all, 8, false, 128 * kilo},  {Operation::all_to_all, 8, true, 64 * kilo},
      {Operation::reduce_scatter, 2, true, 32 * mega}};
  for (const auto& [operation, ranks, own_cores, last] : cases) {
    CAPTURE(to_string(operation));
    CAPTURE(ranks);
    CAPTURE(own_cores);
    std::int64_t found = 0;
    for (std::int64_t bytes = 8; bytes <= 32 * mega; bytes *= 2)
      if (first(RouteTable::defaults(), {"tp", ranks, 1, own_cores},
                {.operation = operation, .bytes = bytes, .type = TypeClass::floating})
              .starts_with("shm"))
        found = bytes;
    CHECK(found == last);
  }
}

TEST_CASE("comments name the machine on which rules were measured") {
  RouteTable table =
      table_of("# meshinfo tune\n# machine: 4 cores, MPI 1, rankmesh 2 \r\ntp.*=mpi");
  REQUIRE(table.machines().size() == 1);
  CHECK(table.machines().front().text == "4 cores, MPI 1, rankmesh 2");
  CHECK(table.machines().front().origin == "test, line 2");
  table.append(RouteTable::defaults());
  table.append(table_of("*.*=mpi # machine: not a line of its own\n#machine: x"));
  CHECK(table.machines().size() == 2);  // the one after a rule counts too
}

TEST_CASE("rules distinguish eager and captured calls") {
  RouteTable table = table_of("*.*:capture=nccl");
  table.append(table_of("*.*:host=mpi; *.*:device=nccl"));
  RouteQuery query{
      .kind = MemoryKind::device, .bytes = 8, .type = TypeClass::half, .capture = true};
  CHECK(table.resolve({"a", 2, 1}, query).front().rules.front() == 0);
  query.capture = false;
  CHECK(table.resolve({"a", 2, 1}, query).front().rules.front() == 2);
}

// Compares resolve() with a linear search for every size.
TEST_CASE("random tables: segments have the result of a linear search") {
  std::mt19937 random{7};
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int r = below(6); r >= 0; --r) {
      text += std::string{below(2) ? "tp" : "*"} + (below(2) ? ".*" : ".broadcast");
      if (below(3) > 0) {
        const int from = below(20);
        text += ":" + std::to_string(from) + "-" +
                (below(4) > 0 ? std::to_string(from + 1 + below(20)) : "inf");
      }
      if (below(3) == 0) text += below(2) ? ":half" : ":int";
      text += below(2) ? "=shm\n" : "=mpi\n";
    }
    RouteTable table;
    try {
      table = table_of(text);
    } catch (const SpecError& error) {
      CHECK_CONTAINS(error.message(), "can never match");
      continue;
    }
    CAPTURE(text);
    CHECK(table_of(table.to_string()).to_string() == table.to_string());
    table.append(RouteTable::defaults());
    const RouteScope scope{below(2) ? "tp" : "dp", 3, 1};
    const RouteQuery query{.operation = Operation::broadcast,
                           .bytes = 0,
                           .type = below(2) ? TypeClass::half : TypeClass::integer};
    const auto segments = table.resolve(scope, query);
    REQUIRE(segments.front().bytes.begin == 0);
    REQUIRE(segments.back().bytes.end == ByteRange::infinite);
    for (std::int64_t bytes = 0; bytes < 45; ++bytes) {
      std::vector<std::size_t> found;
      for (std::size_t r = 0; r < table.rules().size(); ++r) {
        const RouteRule& rule = table.rules()[r];
        if (!rule.fits(scope) || rule.transport == "nccl" ||
            (rule.operation && rule.operation != query.operation) ||
            (rule.type && rule.type != query.type) ||
            (rule.bytes && (bytes < rule.bytes->begin || bytes >= rule.bytes->end)))
          continue;
        found.push_back(r);
        if (rule.transport == "mpi") break;
      }
      for (const RouteSegment& segment : segments)
        if (segment.bytes.begin <= bytes && bytes < segment.bytes.end)
          CHECK(segment.rules == found);
    }
  }
}

TEST_CASE(
    "rules of the program precede the environment, the file and the defaults, in this order") {
  const MeshSpec spec =
      MeshSpec::parse_toml("mesh = 'dp=2,tp=2'\nroutes = 'tp.barrier=mpi'", "x.toml");
  setenv("RANKMESH_ROUTES", "tp.all_reduce=mpi", 1);
  const RouteTable table = routes_of(spec, spec.plan(), "tp.broadcast=mpi");
  unsetenv("RANKMESH_ROUTES");
  CHECK(table.to_string() == "tp.broadcast=mpi; tp.all_reduce=mpi; tp.barrier=mpi; " +
                                 RouteTable::defaults().to_string());
  const std::pair<RouteSource, const char*> sources[] = {
      {RouteSource::code, "MeshOptions::routes"},
      {RouteSource::environment, "RANKMESH_ROUTES"},
      {RouteSource::file, "x.toml:2"},
      {RouteSource::builtin, "default"}};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(table.rules()[i].source == sources[i].first);
    CHECK(table.rules()[i].origin == sources[i].second);
  }
  CHECK_THROWS_WITH_AS(
      (void)routes_of(spec, spec.plan(), "tq.*=mpi"),
      doctest::Contains(
          "the route 'tq.*=mpi' is for 'tq', but the mesh has no groups of that name"),
      SpecError);
}

TEST_CASE("rules may name transports of the program") {
  const std::vector<std::string> own{"gloo", "rccl"};
  const auto parse = [&](const char* text) {
    return RouteTable::parse(text, RouteSource::code, "x", own);
  };
  const char* const text = "*.*:device=rccl; tp.*:0-1K=gloo; *.*:host:one_node=gloo";
  RouteTable table = parse(text);
  CHECK(table.to_string() == text);
  table.append(RouteTable::defaults());
  const auto rules = [&](RouteQuery query) {
    std::vector<std::string> transports;
    const auto segments = table.resolve({"tp", 2, 1}, query);
    for (const std::size_t r : segments.front().rules)
      transports.push_back(table.rules()[r].transport);
    return transports;
  };
  // They may decline a call, so the rules after them stay candidates.
  CHECK(rules({.operation = Operation::gather, .bytes = 8}) ==
        std::vector<std::string>{"gloo", "gloo", "shm", "mpi"});
  CHECK(rules({.operation = Operation::gather, .kind = MemoryKind::device, .bytes = 8}) ==
        std::vector<std::string>{"rccl", "nccl"});
  CHECK_THROWS_WITH_AS((void)parse("*.*=glo"), doctest::Contains("unknown transport 'glo'"),
                       SpecError);
  CHECK_THROWS_WITH_AS((void)parse("*.*=gloo; tp.*=gloo"), doctest::Contains("can never match"),
                       SpecError);
  for (const char* name :
       {"mpi", "shm", "nccl", "local", "", "Gloo", "2x", "a-b", "_x", "a_name_of_24_characters_"})
    CHECK_FALSE(RouteTable::why_no_name(name).empty());
  for (const char* name : {"gloo", "x", "ucc_2", "a_name_of_23_characters"})
    CHECK(RouteTable::why_no_name(name).empty());
}

TEST_CASE("a mesh file lists the transports of the program that its rules name") {
  const char* const text = "mesh = 'tp=2'\nroutes = '*.*=gloo'\ntransports = ['gloo']\n";
  const MeshSpec spec = MeshSpec::parse_toml(text, "x.toml");
  CHECK(spec.transports() == std::vector<std::string>{"gloo"});
  CHECK(MeshSpec::parse_toml(to_toml(spec), "y.toml").transports() == spec.transports());
  CHECK_FALSE(spec.fits_string());
  CHECK(routes_of(spec, spec.plan()).rules().front().transport == "gloo");
  CHECK(routes_of(spec, spec.plan(), {}, std::vector<std::string>{"gloo"}).rules().front().origin ==
        "x.toml:2");
  CHECK_THROWS_WITH_AS(
      (void)routes_of(spec, spec.plan(), {}, std::vector<std::string>{}),
      doctest::Contains(
          "the mesh needs the transport 'gloo', but the program has none of that name"),
      SpecError);
  CHECK_THROWS_WITH_AS(
      (void)MeshSpec::parse_toml("mesh = 'tp=2'\ntransports = ['mpi']", "x.toml"),
      doctest::Contains("x.toml:2: 'transports': 'mpi' is the name of a transport of rankmesh"),
      SpecError);
}

TEST_CASE(
    "while the nodes are not known, a rule for one node leaves the next rules as candidates") {
  const RouteTable table =
      RouteTable::parse("*.*:host:one_node=mpi; *.*:host=mpi", RouteSource::code, "x");
  const RouteQuery query{.operation = Operation::broadcast};
  const auto rules = [&](std::optional<std::int32_t> nodes) {
    return table.resolve({"a", 2, nodes}, query).front().rules;
  };
  CHECK(rules(std::nullopt) == std::vector<std::size_t>{0, 1});
  CHECK(rules(1) == std::vector<std::size_t>{0});
  CHECK(rules(2) == std::vector<std::size_t>{1});
}
