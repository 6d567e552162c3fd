// SPDX-License-Identifier: BSD-3-Clause
// The numbers on which the members of dynamic groups agree.
#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "mesh/detail/group_numbers.hpp"

using rankmesh::detail::GroupNumbers;
using rankmesh::detail::GroupOffer;

namespace {

// Lets some ranks create a group. Returns its number, which must be the same on all of them.
std::int64_t create(const std::vector<GroupNumbers*>& members) {
  std::vector<GroupOffer> offers;
  for (const GroupNumbers* member : members) offers.push_back(member->offer());
  std::set<std::int64_t> numbers;
  for (std::size_t m = 0; m < members.size(); ++m) {
    std::vector<GroupOffer> others = offers;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(m));
    numbers.insert(members[m]->take(others));
  }
  CHECK(numbers.size() == 1);
  return *numbers.begin();
}

}  // namespace

TEST_CASE("the members of a group take the lowest number that none of them uses") {
  GroupNumbers a{7}, b{7}, c{7};
  CHECK(create({&a, &b}) == 8);
  CHECK(create({&b, &c}) == 9);
  CHECK(create({&a, &c}) == 10);
  CHECK(create({&a, &b, &c}) == 11);
  a.give_back(8);
  CHECK(create({&a, &c}) == 8);  // b still uses it, but is not a member
  CHECK(create({&a, &b}) == 12);
  b.give_back(8);
  for (GroupNumbers* member : {&a, &b, &c}) member->give_back(11);
  CHECK(create({&a, &b, &c}) == 11);
}

TEST_CASE("many groups at a time have different numbers, which are used again") {
  GroupNumbers a{0}, b{0}, c{0};
  std::set<std::int64_t> used;
  for (int i = 0; i < 300; ++i) CHECK(used.insert(create({&a, &b})).second);
  CHECK(*used.rbegin() == 300);
  // Another rank knows only its own numbers.
  CHECK(create({&b, &c}) == 301);
  CHECK(create({&a, &c}) == 302);
  for (const std::int64_t number : used) {
    a.give_back(number);
    b.give_back(number);
  }
  CHECK(create({&a, &b, &c}) == 1);
  for (int i = 0; i < 3000; ++i) {
    const std::int64_t number = create({&a, &b});
    CHECK(number == 2);
    a.give_back(number);
    b.give_back(number);
  }
}
